#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The page PAGE in a real browser, CHROMIUM: as wide as a phone and as a desk, by day and by night.

Leaves a picture of each beside the page.
"""

import itertools
import os
import pathlib
import re
import sys
import unittest

from playwright.sync_api import sync_playwright

PAGE = pathlib.Path(os.environ["PAGE"]).resolve()
WIDTHS = {"phone": 400, "desk": 1300}
SCHEMES = ("light", "dark")
# Elements that stick out of the page without a way to scroll to what is out there.
STICK_OUT = """() => [...document.querySelectorAll("body *")].filter(element => {
    const scrolls = element.closest(".wide, pre");
    return !scrolls && element.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map(element => element.outerHTML.slice(0, 80))"""
COLORS = """() => [...document.querySelectorAll("body, h1, h2, small, .lead, td, a, .panel text")].map(element => {
    let behind = element;
    while (behind && getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)")
        behind = behind.parentElement;
    const style = getComputedStyle(element);
    return [element.closest(".panel") ? style.fill : style.color,
            behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)",
            element.outerHTML.slice(0, 60)];
})"""


def luminance(color):
    """That of "rgb(r, g, b)", as WCAG has it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    """How well ONE is to be read on the OTHER: from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


class Browser(unittest.TestCase):
    """Each width by day and by night."""

    @classmethod
    def setUpClass(cls):
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(
            executable_path=os.environ["CHROMIUM"], args=["--no-sandbox", "--disable-gpu"]
        )

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()

    def each(self):
        """The page in each of them, and what its console said."""
        for (name, width), scheme in itertools.product(WIDTHS.items(), SCHEMES):
            page = self.browser.new_page(
                viewport={"width": width, "height": 900}, color_scheme=scheme
            )
            said = []
            page.on("console", lambda message, said=said: said.append(message.text))
            page.on("pageerror", lambda error, said=said: said.append(str(error)))
            page.on("requestfailed", lambda request, said=said: said.append(request.url))
            page.goto(PAGE.as_uri())
            page.screenshot(path=PAGE.with_name(f"{name}-{scheme}.png"), full_page=True)
            yield page, width, said
            page.close()

    def test_nothing_sticks_out(self):
        for page, width, _ in self.each():
            self.assertLessEqual(page.evaluate("document.scrollingElement.scrollWidth"), width)
            self.assertEqual(page.evaluate(STICK_OUT), [])

    def test_console_is_silent(self):
        for _, _, said in self.each():
            self.assertEqual(said, [])

    def test_contrast(self):
        for page, _, _ in self.each():
            colors = page.evaluate(COLORS)
            self.assertGreater(len(colors), 20)
            for color, behind, element in colors:
                self.assertGreaterEqual(contrast(color, behind), 4.5, (color, behind, element))

    def test_begins_and_ends(self):
        for page, _, _ in self.each():
            texts = page.evaluate(
                "[...document.querySelectorAll('.panel')].map(e => e.textContent)"
            )
            self.assertEqual(len(texts), 3)
            self.assertTrue(all("buffered" in text and "direct" in text for text in texts))
            self.assertEqual(page.evaluate("document.querySelectorAll('dt').length"), 3)


if __name__ == "__main__":
    sys.exit(unittest.main())
