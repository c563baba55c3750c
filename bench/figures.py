# SPDX-License-Identifier: GPL-2.0
"""The figures of a cell by name, and how those of repetitions become one."""

import dataclasses
import statistics
import typing

from workloads import WORKLOADS


@dataclasses.dataclass(frozen=True)
class Figure:
    """One column: how it is called, which way is better, where it comes from."""

    key: str
    title: str
    better: int
    digits: int
    of: typing.Callable
    # Of each role, or of the whole cell.
    each_role: bool = False
    # What a single one of differs by without meaning anything.
    floor: float = 0.0
    # What is as good as it gets: less than was asked is not written better, but later.
    least: float = 0.0


def asked(cell):
    """Bytes that writers asked for, or None where the ramp was not counted."""
    workload = WORKLOADS[cell["workload"]]
    if any("time_based" in role.options for role in workload.roles):
        return None
    return sum(cell["roles"][role.name]["bytes"] for role in workload.roles if role.writes)


def written_per_asked(cell):
    """Bytes at the device for each byte that was written to files, a second later."""
    total = asked(cell)
    return cell["spent"]["later"]["device_written"] / total if total else None


def read_per_byte(cell):
    """Bytes read from the device for each byte read or written."""
    if asked(cell) is None:
        return None
    total = sum(role["bytes"] for role in cell["roles"].values())
    return cell["spent"]["later"]["device_read"] / total if total else None


def resident(cell):
    """Per cent of the files' pages that are cached a second later."""
    pages = cell["resident"]["later"]
    return 100 * pages["cached"] / pages["pages"] if pages["pages"] else None


def cpu(cell):
    """Seconds of CPU; none in virtual time, where work costs nothing."""
    return cell["spent"]["after"]["cpu_ms"] / 1000 if cell["instrument"] == "smp" else None


def of_role(key):
    """A figure of a role."""
    return lambda cell, role: cell["roles"][role][key]


FIGURES = [
    Figure("mb_s", "MB/s", 1, 1, of_role("mb_s"), True),
    Figure("iops", "IOPS", 1, 0, of_role("iops"), True),
    Figure("p50_ms", "p50 ms", -1, 3, of_role("p50_ms"), True, 0.01),
    Figure("p99_ms", "p99 ms", -1, 2, of_role("p99_ms"), True, 0.01),
    Figure("p999_ms", "p99.9 ms", -1, 2, of_role("p999_ms"), True, 0.01),
    Figure("max_ms", "max ms", -1, 1, of_role("max_ms"), True, 0.01),
    Figure("cpu_s", "CPU s", -1, 2, cpu),
    Figure("peak_dirty_mb", "unwritten MB", -1, 1, lambda cell: cell["peak_dirty_mb"], floor=1),
    Figure("peak_file_mb", "cache MB", -1, 1, lambda cell: cell["peak_file_mb"], floor=1),
    Figure("written", "written x", -1, 2, written_per_asked, least=1.0),
    Figure("read", "read x", -1, 2, read_per_byte, floor=0.01),
    Figure("resident", "stays %", -1, 1, resident, floor=0.1),
    # Files of before have none.
    Figure("slowest", "slowest x", 1, 2, lambda cell: cell.get("slowest"), floor=0.01),
]


@dataclasses.dataclass(frozen=True)
class Value:
    """A figure over all repetitions of a cell."""

    median: float
    low: float
    high: float


def value(cells, figure, role):
    """The figure of some repetitions, or None if it has no meaning there."""
    found = [figure.of(cell, role) if figure.each_role else figure.of(cell) for cell in cells]
    found = [number for number in found if number is not None]
    return Value(statistics.median(found), min(found), max(found)) if found else None


def by_mode(cells, workload):
    """The repetitions of a workload's cells by mode."""
    found = {}
    for cell in cells:
        # A repetition in virtual time is a check, and the same.
        if cell["workload"] == workload and (cell["instrument"] == "smp" or not cell["repetition"]):
            found.setdefault(cell["mode"], []).append(cell)
    return found


def ratio(this, others, figure):
    """This over the best of the others, or None."""
    others = [other for other in others if other is not None]
    if this is None or not others:
        return None
    best = max(others) if figure.better > 0 else max(min(others), figure.least)
    # Nothing is a fair divisor below what a figure can resolve.
    if abs(best) <= figure.floor:
        return None
    return this / best
