#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What people see of a run: the run of LAB_JSON, which has the workloads writers and mixed."""

import contextlib
import copy
import html
import io
import json
import os
import pathlib
import re
import tempfile
import unittest

import picture
from models import MODES
from report import report
from words import NEXT, mode_title
from workloads import WORKLOADS

RESULT = json.loads(pathlib.Path(os.environ["LAB_JSON"]).read_text())
CELLS = RESULT["runs"][0]["cells"]
# Names of options that are no words of the field; "buffered", "direct" and "sync" are.
NAMES = {"smp", "nvme", "kick/c", "c", "lazyflag", "rdirect", "rbuffered"} | {
    name for name in WORKLOADS if re.fullmatch(r"[a-z]+(read|write|-uring|[0-9]+)", name)
}


def page_of(result, narrow=False):
    """The page and the text on the terminal."""
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()) as said:
        report(result, pathlib.Path(out), narrow)
        return (pathlib.Path(out) / "index.html").read_text(), said.getvalue()


def words_of(page):
    """What is to be read on a page."""
    page = re.sub(r"(?s)<style.*?</style>|<metadata.*?</metadata>|<!--.*?-->", " ", page)
    return html.unescape(re.sub(r"(?s)<[^>]*>", " ", page))


class Page(unittest.TestCase):
    """The page, and the tables of the terminal."""

    def setUp(self):
        self.result = copy.deepcopy(RESULT)

    def names_in(self, text):
        return NAMES & set(re.findall(r"[a-z0-9/-]+", text))

    def test_words(self):
        cells = self.result["runs"][0]["cells"]
        cells[0]["faults"] = ["a fault"]
        cells[0]["cautions"] = ["a caution"]
        for cell in cells:
            # As the demo has it: one kernel, and none of C to compare with.
            cell["mode"] = {"kick": "rbuffered", "lazy": "lazyflag"}.get(cell["mode"], cell["mode"])
        page, said = page_of(self.result)
        for text in (words_of(page), said):
            self.assertEqual(self.names_in(text), set())
            self.assertIn("a fault", text)
            self.assertIn("a caution", text)

    def test_begins_with_sentence_and_picture(self):
        page, said = page_of(self.result)
        body = page[page.index("</h1>") :]
        places = [body.index(mark) for mark in ('class="lead"', 'class="panel"', "<table")]
        self.assertEqual(places, sorted(places))
        self.assertIn(picture.sentence(CELLS), html.unescape(page))
        self.assertIn(picture.sentence(CELLS)[:40], said)

    def test_narrow(self):
        _, said = page_of(self.result, narrow=True)
        self.assertEqual([line for line in said.splitlines() if len(line) > 80], [])
        for part in ("MB/s", "p99.9 ms", "cache MB", "####", "Slowest of 1000"):
            self.assertIn(part, said)
        self.assertTrue(said.isascii())

    def test_ends_with_what_to_try(self):
        page, _ = page_of(self.result)
        self.assertEqual(
            re.findall(r"<dt><code>(.*?)</code>", page), [c.replace("'", "&#x27;") for c, _ in NEXT]
        )

    def test_namesakes(self):
        self.assertEqual(mode_title("rdirect", ["rdirect"]), "direct")
        self.assertNotEqual(mode_title("rdirect", ["rdirect", "direct"]), "direct")
        titles = [mode_title(mode, MODES) for mode in MODES]
        self.assertEqual(len(titles), len(set(titles)))


class Picture(unittest.TestCase):
    """What it is drawn from."""

    def test_left_to_others(self):
        cells = [
            {"room_mib": 100, "peak_file_mb": 4.8576},
            {"room_mib": 100, "peak_file_mb": 54.8576},
        ]
        self.assertAlmostEqual(picture.left_to_others(cells), 50)
        self.assertEqual(picture.left_to_others([{"room_mib": 1, "peak_file_mb": 9}]), 0)

    def test_others_wait_beside_the_writer(self):
        cells = copy.deepcopy(CELLS)
        for cell in cells:
            if cell["workload"] == "mixed":
                cell["roles"]["readers"]["p999_ms"] = 12345.6
        text = picture.sentence(cells)
        self.assertIn("beside", text)
        self.assertRegex(text, r"1234[56]")
        self.assertEqual(len(picture.panels(cells)), 3)

    def test_stands_in(self):
        cells = [cell for cell in CELLS if cell["workload"] == "writers"]
        self.assertEqual(len(picture.panels(cells)), 3)
        self.assertNotIn("beside", picture.sentence(cells))

    def test_nothing_to_draw(self):
        buffered = [dict(cell, mode="buffered") for cell in CELLS]
        for cells in ([], buffered):
            self.assertEqual(picture.sentence(cells), "")
            self.assertEqual(picture.picture_file(cells), "")


if __name__ == "__main__":
    unittest.main()
