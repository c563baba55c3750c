# SPDX-License-Identifier: GPL-2.0
"""The lab's judgement, on a run of it: LAB_JSON names its lab.json.

Every fault that the self-check knows is put into cells that ran, and has to be found.
"""

import contextlib
import copy
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

import guests
import selfcheck
from compare import compare
from figures import FIGURES, Value, ratio, value
from models import MODES
from workloads import WORKLOADS, files, job_file

RESULT = json.loads(pathlib.Path(os.environ["LAB_JSON"]).read_text())
CELLS = {
    (cell["workload"], cell["mode"]): cell
    for run in RESULT["runs"]
    for cell in run["cells"]
    if not cell["repetition"]
}


def changed(workload, mode, path, amount):
    """A copy of a cell with another figure at PATH."""
    cell = copy.deepcopy(CELLS[workload, mode])
    place = cell
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = amount
    return cell


def figure(key):
    """A figure by its name."""
    return next(f for f in FIGURES if f.key == key)


class SelfCheck(unittest.TestCase):
    """Each fault in an otherwise good cell."""

    def test_good_cells_have_none(self):
        for name, cell in CELLS.items():
            with self.subTest(name):
                self.assertEqual(selfcheck.faults(cell), [])

    def test_each_fault_is_found(self):
        files = list(CELLS["writers", "lazy"]["opened"])
        plain = dict.fromkeys(files, "0100002")
        cases = [
            ("writers", "lazy", ("room_mib",), 900, "not twice"),
            ("writers", "lazy", ("opened",), {files[0]: plain[files[0]]}, "1 of 4 files"),
            ("writers", "lazy", ("opened",), dict.fromkeys(files, "0140002"), "O_DIRECT"),
            ("writers", "rdirect", ("opened",), plain, "no O_DIRECT"),
            ("writers", "rdirect", ("roles", "writer", "iops"), 520.0, "of the device"),
            ("writers", "lazy", ("roles", "writer", "bytes"), 0, "did nothing"),
            ("writers", "lazy", ("roles", "writer", "seconds"), 2.0, "the device can do"),
            (
                "writers",
                "lazy",
                ("spent", "synced", "device_written"),
                1 << 20,
                "reached the device",
            ),
            ("writers", "lazy", ("spent", "synced", "dontcache_start"), 0, None),
            ("mixed", "lazy", ("spent", "synced", "device_read"), 73728, "never missed"),
        ]
        for workload, mode, path, amount, said in cases:
            with self.subTest(said or path):
                found = selfcheck.faults(changed(workload, mode, path, amount))
                if said:
                    self.assertEqual(len(found), 1, found)
                    self.assertIn(said, found[0])

    def test_decisions_must_fit_the_mode(self):
        cell = copy.deepcopy(CELLS["writers", "lazy"])
        for name in ("start", "skip", "kick"):
            cell["spent"]["synced"][f"dontcache_{name}"] = 0
        self.assertIn("0 decisions", selfcheck.faults(cell)[0])
        cell["mode"] = "c"
        self.assertIn("counters of Rust", selfcheck.faults(cell)[0])

    def test_a_device_that_is_no_bottleneck(self):
        cell = changed("writers", "rdirect", ("roles", "writer", "iops"), 100.0)
        self.assertEqual(len(selfcheck.faults_among([cell])), 1)
        cell["roles"]["writer"]["iops"] = 490.0
        self.assertEqual(selfcheck.faults_among([cell]), [])


class Compare(unittest.TestCase):
    """What is a loss, and what it is worth."""

    def compare(self, new, margin=0.02):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = compare(RESULT, new, margin)
        return status, output.getvalue()

    def test_equal(self):
        status, output = self.compare(RESULT)
        self.assertEqual(status, 0)
        self.assertIn("worse by more than 2.0%: 0", output)

    def test_loss_and_gain(self):
        for key, factor, status in (("mb_s", 0.9, 1), ("mb_s", 1.1, 0), ("mb_s", 0.99, 0)):
            new = copy.deepcopy(RESULT)
            for cell in new["runs"][0]["cells"]:
                cell["roles"]["writer"][key] *= factor
            with self.subTest(factor):
                self.assertEqual(self.compare(new)[0], status)

    def test_what_chance_reaches_is_no_loss(self):
        new = copy.deepcopy(RESULT)
        cells = new["runs"][0]["cells"]
        for cell in list(cells):
            other = copy.deepcopy(cell) | {"variation": 1}
            cell["roles"]["writer"]["mb_s"] *= 0.8
            other["roles"]["writer"]["mb_s"] *= 1.01
            cells.append(other)
        self.assertEqual(self.compare(new)[0], 0)

    def test_counts(self):
        old = {"seed": 1, "runs": []}
        for rust, status in ((100.0, 0), (101.0, 0), (103.0, 1), (97.0, 0)):
            row = {"window": "single", "figure": "worker_per_bio", "c": 50.0}
            old["count"] = {"summary": [row | {"rust": 100.0}]}
            new = old | {"count": {"summary": [row | {"rust": rust}]}}
            with self.subTest(rust), contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(compare(old, new, 0.02), status)

    def test_real_time_never_fails(self):
        new = copy.deepcopy(RESULT)
        new["runs"][0]["instrument"] = "smp"
        self.assertEqual(self.compare(new)[0], 2)


class Figures(unittest.TestCase):
    """Medians and ratios."""

    def test_ratio(self):
        self.assertEqual(ratio(2, [1, 4, None], figure("mb_s")), 0.5)
        self.assertEqual(ratio(2, [1, 4], figure("p99_ms")), 2)
        # Nothing resolved, nothing to divide by.
        self.assertIsNone(ratio(2, [0.001, 4], figure("p99_ms")))
        self.assertIsNone(ratio(None, [1], figure("mb_s")))

    def test_median_and_spread(self):
        cells = [changed("writers", "lazy", ("peak_file_mb",), n) for n in (5, 1, 3)]
        self.assertEqual(value(cells, figure("peak_file_mb"), "writer"), Value(3, 1, 5))

    def test_reasons(self):
        with tempfile.TemporaryDirectory() as name:
            scratch = pathlib.Path(name)
            one = "  kworker/u2:1-20  [000] .....  1.0: writeback_"
            two = "  fio-21  [000] .....  1.0: writeback_"
            (scratch / "trace").write_text(
                f"# tracer: nop\n{one}start: bdi 252:0: nr_pages=1 reason=dontcache cgroup_ino=1\n"
                f"{one}single_inode: bdi 252:0: ino=131 to_write=1024 wrote=1000 cgroup_ino=1\n"
                f"{two}single_inode: bdi 252:0: ino=132 to_write=9 wrote=9 cgroup_ino=1\n"
                f"{one}written: bdi 252:0: nr_pages=0 reason=dontcache cgroup_ino=1\n"
                f"{one}single_inode: bdi 252:0: ino=131 to_write=9 wrote=7 cgroup_ino=1\n"
            )
            (scratch / "trace.stats").write_text("entries: 5\noverrun: 0\n")
            self.assertEqual(guests.by_reason(scratch), {"dontcache": 1000})
            (scratch / "trace.stats").write_text("entries: 5\noverrun: 3\n")
            with self.assertRaises(ValueError):
                guests.by_reason(scratch)


def fio_job(name, moved, runtime, bins=()):
    """What fio says of a writer with latencies of so many ns, each so many times."""
    latency = {"max": max(bins, default=0)}
    if bins:
        points = dict.fromkeys(("50.000000", "99.000000", "99.900000"), min(bins))
        latency |= {"percentile": points, "bins": {str(ns): bins[ns] for ns in bins}}
    write = {"io_bytes": moved, "runtime": runtime, "total_ios": 1000, "lat_ns": latency}
    return {"jobname": name, "error": 0, "write": write}


class Writers(unittest.TestCase):
    """What is of all jobs of a role, and of each."""

    def figures(self, workload, *jobs):
        workload = WORKLOADS[workload]
        roles = {role.name: guests.role_figures(role, jobs) for role in workload.roles}
        return roles, guests.slowest(workload, roles)

    def test_percentiles_are_of_all(self):
        # 999 of 1000 are not 99.9 per cent, as fio counts.
        one, two = (
            fio_job("writer", 0, 9, {1000: 499}),
            fio_job("writer", 0, 9, {3000: 500, 9000: 1}),
        )
        writer = self.figures("writers", one, two, fio_job("writer", 0, 0))[0]["writer"]
        self.assertEqual(
            [writer[key] for key in ("p50_ms", "p99_ms", "p999_ms", "max_ms")],
            [0.003, 0.003, 0.009, 0.009],
        )

    def test_rates_are_of_the_longest(self):
        one, two = (fio_job("writer", 8 << 20, ms, {1: 1000}) for ms in (2000, 4000))
        roles, slowest = self.figures("writers", one, two)
        self.assertEqual(roles["writer"]["mb_s"], 4.194304)
        self.assertEqual(roles["writer"]["iops"], 500)
        self.assertEqual(roles["writer"]["jobs"], [[8 << 20, 2.0], [8 << 20, 4.0]])
        self.assertEqual(slowest, 0.5)

    def test_who_began_late_wrote_less(self):
        jobs = fio_job("writer", 1 << 20, 1000, {1: 1}), fio_job("rival", 4 << 20, 6000, {1: 1})
        self.assertEqual(self.figures("competing", *jobs)[1], 0.25)
        self.assertEqual(
            self.figures("beside", jobs[0], jobs[1] | {"jobname": "neighbour"})[1], 0.25
        )

    def test_one_writer_has_no_other(self):
        job = fio_job("writer", 1, 1, {1: 1})
        self.assertIsNone(self.figures("seqwrite", job)[1])
        # Nor one of small writes in a stream.
        roles = {role.name: {"jobs": [[1, 1.0]]} for role in WORKLOADS["dsync"].roles}
        self.assertIsNone(guests.slowest(WORKLOADS["dsync"], roles))

    def test_of_cells_that_ran(self):
        for (workload, mode), cell in CELLS.items():
            with self.subTest(workload=workload, mode=mode):
                part = value([cell], figure("slowest"), "writer")
                self.assertEqual(part is None, workload == "mixed")
                self.assertTrue(part is None or 0 < part.median <= 1)
        # As files of before.
        cell = copy.deepcopy(CELLS["writers", "lazy"])
        del cell["slowest"]
        self.assertIsNone(value([cell], figure("slowest"), "writer"))


class Table(unittest.TestCase):
    """The workloads themselves."""

    def test_who_is_in_the_cgroup(self):
        sections = job_file("beside-small", MODES["paced"], 1).split("[")
        joined = [part.split("]")[0] for part in sections if "cgroup.procs" in part]
        self.assertEqual(joined, ["neighbour"])
        self.assertNotIn("cgroup.procs", job_file("bdevwrite", MODES["paced"], 1))
        for name, workload in WORKLOADS.items():
            with self.subTest(name):
                self.assertLessEqual(set(workload.members), {role.name for role in workload.roles})
                self.assertTrue(workload.memcg or not workload.members)

    def test_each_writer_has_a_file(self):
        for name, workload in WORKLOADS.items():
            every = [path for role in workload.roles for path in files(name, role)]
            with self.subTest(name):
                self.assertTrue(workload.device or len(every) == len(set(every)))
                self.assertTrue(
                    workload.device or len(every) == sum(r.jobs for r in workload.roles)
                )


if __name__ == "__main__":
    done = unittest.main(verbosity=2, exit=False).result
    # A test with failed parts is one that failed.
    bad = {getattr(test, "test_case", test).id() for test, _ in done.failures + done.errors}
    print(f"{done.testsRun - len(bad)} passed, {len(bad)} failed, 0 skipped")
    sys.exit(1 if bad else 0)
