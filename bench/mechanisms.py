#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What each mechanism of the engines brings: the same windows on kernels that lack one.

Prints a table for each figure, windows down and kernels across, medians of some
boots each, and leaves mechanisms.json. When a run of a worker ends decides what the
next one finds, so figures of one boot jump; ratios are those of medians. The kernels
are those that setup/mechanisms.sh left in OUT.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from count import measure
from counttext import LOOPS
from vmlinux import Failure
from windows import per

WINDOWS = ("single", "batch", "bdev", "stream", "stream128", *LOOPS)
# Name, and the value for one window.
FIGURES = {
    "bios a run": lambda w: per(w["deferred"], w["runs"]),
    "context switches a write": lambda w: per(w["switches"], w["writes"]),
    "instructions of the kernel a write": lambda w: w["per_write"],
    "instructions from bio_endio() to the callback, a bio": lambda w: w["path_per_bio"],
    "instructions of the enqueue, a bio": lambda w: w["enqueue_per_bio"],
    "instructions of the worker, a bio": lambda w: w["worker_per_bio"],
    "locks to drop a folio": lambda w: w["drop_locks_per_folio"],
    "virtual us that a write takes, mean": lambda w: waited(w, "mean"),
    "virtual us that 99 % of writes take": lambda w: waited(w, "p99"),
    "virtual us of the slowest write": lambda w: waited(w, "max"),
}


def waited(window, key):
    """Latency of the last writer of a closed loop, who is the one that others are beside."""
    return window["latency_ns"][-1][key] / 1000 if window["latency_ns"] else None


def table(title, value, kernels):
    """One figure of all windows and kernels, with the ratio to that of the first kernel."""
    lines = [title, "  " + " " * 10 + "".join(f"{kernel:>22}" for kernel in kernels)]
    for name in WINDOWS:
        found = [[value(boot[name]) for boot in boots] for boots in kernels.values()]
        if None in found[0]:
            continue
        medians = [statistics.median(boots) for boots in found]
        base = medians[0]
        cells = []
        for figure in medians:
            cells.append(f"{figure:>14.2f} x{per(figure, base):<6.3f}")
        lines.append(f"  {name:10}" + "".join(cells))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3, help="boots of each kernel (%(default)s)")
    parser.add_argument("kernel", nargs="+", help="c, and directories in OUT to set beside it")
    args = parser.parse_args()
    seeds = tuple(range(1, args.seeds + 1))
    kernels = {}
    faults = {}
    try:
        for name in args.kernel:
            kind = "c" if name == "c" else "rust"
            kernels[name] = []
            for seed in seeds:
                result = measure({kind: args.out / name}, args.out / f"counted-{name}", (seed,))
                kernels[name].append(result["kernels"][kind])
                faults |= {f"{name}: {where}": what for where, what in result["faults"].items()}
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    text = "\n\n".join(table(title, value, kernels) for title, value in FIGURES.items())
    print(text)
    (args.out / "mechanisms.txt").write_text(text + "\n")
    (args.out / "mechanisms.json").write_text(json.dumps(kernels, indent=1) + "\n")
    for where, what in faults.items():
        print(f"fault: {where}: {'; '.join(what)}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
