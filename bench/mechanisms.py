#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What each mechanism of the engines brings: the same windows on kernels that lack one.

Prints a table for each figure, windows down and kernels across, medians of some
boots each. Leaves them, mechanisms.json, and mechanisms.rst with the tables of
Documentation/mm/dontcache-lab.rst. When a run of a worker ends decides what the next
one finds, so figures of one boot jump; ratios are those of medians. The kernels are
those that setup/mechanisms.sh left in OUT.
"""

import argparse
import concurrent.futures
import json
import statistics
import sys
from pathlib import Path

from count import measure
from counttext import LOOPS
from icount import Cpus
from vmlinux import Failure
from windows import per

WINDOWS = ("single", "batch", "bdev", "stream", "stream128", *LOOPS)
POLICIES = ("lazy", "flush", "paced")


def waited(window, key):
    """Latency of a closed loop, of the one that others are beside."""
    return window["latency_ns"][key] / 1000 if window["latency_ns"] else None


# Name, and the value for one window.
FIGURES = {
    "bios a run": lambda w: per(w["deferred"], w["runs"]),
    "context switches a write": lambda w: per(w["switches"], w["writes"]),
    # Who is done sooner leaves the CPU idle more often, and that is a switch as well.
    "context switches but to idle, a write": lambda w: per(w["switches"] - w["idle"], w["writes"]),
    "instructions of the kernel a write": lambda w: w["per_write"],
    "instructions from bio_endio() to the callback, a bio": lambda w: w["path_per_bio"],
    "instructions of the enqueue, a bio": lambda w: w["enqueue_per_bio"],
    "instructions of the worker, a bio": lambda w: w["worker_per_bio"],
    "locks to drop a folio": lambda w: w["drop_locks_per_folio"],
    "virtual us that a write takes, mean": lambda w: waited(w, "mean"),
    "virtual us that 99 % of writes take": lambda w: waited(w, "p99"),
    "virtual us of the slowest write": lambda w: waited(w, "max"),
}

# What the variants are compared in.
COMPARED = tuple(FIGURES)[1:5] + ("locks to drop a folio",)


def median(boots, name, value):
    """The median of a figure of one window over the boots of a kernel, or None."""
    found = [value(boot[name]) if name in boot else None for boot in boots]
    return None if None in found else statistics.median(found)


def number(figure):
    """With as many digits as it deserves."""
    return (
        f"{figure:.0f}" if figure >= 1000 else f"{figure:.1f}" if figure >= 10 else f"{figure:.3f}"
    )


def table(title, value, kernels):
    """One figure of all windows and kernels, with the ratio to that of the first kernel."""
    lines = [title, "  " + " " * 10 + "".join(f"{kernel:>22}" for kernel in kernels)]
    for name in WINDOWS:
        medians = [median(boots, name, value) for boots in kernels.values()]
        if None in medians:
            continue
        cells = "".join(f"{figure:>14.2f} x{per(figure, medians[0]):<6.3f}" for figure in medians)
        lines.append(f"  {name:10}{cells}")
    return "\n".join(lines)


def rst(head, rows):
    """A simple table of reStructuredText."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    bar = "  ".join("=" * width for width in widths)

    def line(row):
        return "  ".join(
            f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)
        ).rstrip()

    return "\n".join([bar, line(head), bar, *map(line, rows), bar])


def languages(kernels):
    """C and Rust side by side."""
    rows = []
    for title, value in FIGURES.items():
        for name in WINDOWS:
            c, rust = (median(kernels[kernel], name, value) for kernel in ("c", "rust"))
            if c is not None:
                rows.append((title, name, number(c), number(rust), f"{per(rust, c):.3f}"))
    return rst(("figure", "window", "C", "Rust", "ratio"), rows)


def policies(kernels):
    """What follows a write, in Rust; with the option for it where that kernel is there."""
    rows = []
    counted = kernels.get("paced", kernels["rust"])
    for name in WINDOWS:
        for policy in POLICIES:
            window = f"{name}-{policy}"
            boots = counted if policy == "paced" else kernels["rust"]
            if window not in boots[0]:
                continue

            def of(value, window=window, boots=boots):
                return median(boots, window, value)

            whole = of(FIGURES["instructions of the kernel a write"])
            beside = [
                per(whole, median(kernels[kernel], name, lambda w: w["per_write"]))
                for kernel in ("rust", "c")
            ]
            rows.append(
                (
                    name,
                    policy,
                    number(of(lambda w: w["limiter_per_write"])),
                    number(whole),
                    *(f"{ratio:.2f}" for ratio in beside),
                    number(of(FIGURES["bios a run"])),
                    number(of(FIGURES["context switches a write"])),
                )
            )
    head = (
        "window",
        "policy",
        "limiter",
        "whole kernel",
        "to kick",
        "to C",
        "bios a run",
        "switches",
    )
    return rst(head, rows)


def variants(kernels):
    """All kernels beside C's."""
    rows = []
    for title in COMPARED:
        for name in WINDOWS:
            medians = [median(boots, name, FIGURES[title]) for boots in kernels.values()]
            if None not in medians:
                ratios = (f"{per(figure, medians[0]):.3f}" for figure in medians[1:])
                rows.append((title, name, number(medians[0]), *ratios))
    return rst(("figure", "window", *kernels), rows)


def seed_by_seed(kernels):
    """Ratios to C's of boots with the same seed: their mean, and twice its standard error."""
    rows = []
    others = [kernel for kernel in kernels if kernel != "c"]
    for title in ("context switches a write", "instructions of the kernel a write"):
        for name in WINDOWS:
            cells = []
            for kernel in others:
                pairs = zip(kernels["c"], kernels[kernel], strict=True)
                found = [
                    per(FIGURES[title](boot[name]), FIGURES[title](c[name]))
                    for c, boot in pairs
                    if name in c and name in boot
                ]
                if len(found) < 2:
                    cells.append("?")
                    continue
                error = 2 * statistics.stdev(found) / len(found) ** 0.5
                cells.append(f"{statistics.mean(found):.3f} +- {error:.3f}")
            rows.append((title, name, *cells))
    return rst(("ratio to C", "window", *others), rows)


def tasks(kernels):
    """Who is switched away from in closed loops, on average, in C and in Rust."""

    def of_boots(windows):
        return {
            task: statistics.mean(per(w["tasks"].get(task, 0), w["writes"]) for w in windows)
            for task in set().union(*(w["tasks"] for w in windows))
        }

    rows = []
    for name in LOOPS:
        of = [of_boots([boot[name] for boot in kernels[kernel]]) for kernel in ("c", "rust")]
        for task in sorted(set().union(*of), key=lambda task: -max(k.get(task, 0) for k in of)):
            pair = [kernel.get(task, 0.0) for kernel in of]
            if max(pair) >= 0.002:
                rows.append((name, task, *(f"{nr:.4f}" for nr in pair)))
    return rst(("window", "task", "C", "Rust"), rows)


def boot(out, name, seed, cpus):
    """The windows of one boot of a kernel, and what is wrong with them."""
    kind = "c" if name == "c" else "rust"
    # Upstream's policy, so that only the mechanism differs; of "paced" what users get.
    policy = "paced" if name == "paced" else "kick"
    result = measure({kind: out / name}, out / f"counted-{name}-{seed}", (seed,), cpus, policy)
    return result["kernels"][kind], result["faults"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3, help="boots of each kernel (%(default)s)")
    parser.add_argument(
        "kernel", nargs="+", help="c, rust, and directories in OUT to set beside them"
    )
    args = parser.parse_args()
    kernels = {name: [] for name in args.kernel}
    faults = {}
    try:
        cpus = Cpus(args.out.resolve())
        with concurrent.futures.ThreadPoolExecutor() as pool:
            boots = [
                (name, pool.submit(boot, args.out, name, seed, cpus))
                for name in kernels
                for seed in range(1, args.seeds + 1)
            ]
        for name, future in boots:
            windows, wrong = future.result()
            kernels[name].append(windows)
            faults |= {f"{name}: {where}": what for where, what in wrong.items()}
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    text = "\n\n".join(table(title, value, kernels) for title, value in FIGURES.items())
    print(text)
    (args.out / "mechanisms.txt").write_text(text + "\n")
    (args.out / "mechanisms.json").write_text(json.dumps(kernels, indent=1) + "\n")
    if {"c", "rust"} <= set(kernels):
        tables = [make(kernels) for make in (languages, policies, variants, seed_by_seed, tasks)]
        (args.out / "mechanisms.rst").write_text("\n\n".join(tables) + "\n")
    for where, what in faults.items():
        print(f"fault: {where}: {'; '.join(what)}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
