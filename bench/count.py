#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions instead of time: what an uncached write costs in C and in Rust.

Boots both kernels in QEMU, which emulates one CPU whose clock is the number of
instructions it has executed, and lets bench/hotspots.c count each instruction
between two marks of the guest (bench/count.sh). Prints tables, leaves
count.json, and ends with status 1 if a window did not count what it was for.

The guest has no device of this machine's but a serial line to write to: no
file system shared with it, no disk, no network. Its files come in an initramfs.
Whatever answers at a time of its own choosing moves the guest's ticks, its
random numbers and its free lists, and totals by 0.5 %; without it two boots are
equal to the instruction, on a busy machine as well (--repeat). What is left is
chance that is the same each time, and that a change anywhere in the kernel rolls
anew: other SEEDS show how far totals of one kernel lie apart, so that no less is
taken for a difference of two.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from counttext import LOOPS, POLICY_WINDOWS, WINDOWS, report
from icount import Cpus
from vmlinux import Failure, Image, sizes
from windows import Counts, faults_of, figures, per, total_of

SEEDS = (1, 2, 3)
FIGURES = (
    "enqueue_per_bio",
    "worker_per_bio",
    "path_per_bio",
    "per_write",
    "limiter_per_write",
    "locks_per_folio",
    "drop_locks_per_folio",
    "atomics_per_folio",
)


def count_window(image, out, window):
    path = out / str(window["number"])
    if not path.is_file():
        return None
    result = figures(Counts(image, path), window)
    if "bios_said" in window:
        result["bios_said"] = window["bios_said"]
    return result


def measure(kernels, out, seeds=SEEDS, cpus=None, policy="kick"):
    """Counts in `kernels`, which maps "c" and "rust" to the directories they were built in.

    Who counts several things side by side gives `cpus` to all of them. `policy` is that of windows
    whose names have none; upstream's is kick.
    """
    out = out.resolve()
    cpus = cpus or Cpus(out)
    boots = {
        (kernel, seed): cpus.boot(Path(build), out / f"{kernel}-{seed}", seed, policy)
        for seed in seeds
        for kernel, build in kernels.items()
    }
    said = {key: future.result() for key, future in boots.items()}
    result = {"seeds": list(seeds), "kernels": {}, "size": {}, "faults": {}}
    for kernel, build in kernels.items():
        image = Image(Path(build) / "vmlinux")
        result["size"][kernel] = sizes(image, Path(build) / "vmlinux")
        windows = result["kernels"][kernel] = {}
        expected = WINDOWS + LOOPS + (POLICY_WINDOWS if kernel == "rust" else ())
        for name in expected:
            where = f"{kernel} {name}"
            if name.endswith(said[kernel, seeds[0]].get("refused", ())):
                continue
            for seed in seeds:
                window = said[kernel, seed].get(name)
                at = out / f"{kernel}-{seed}"
                if not window or not (at / str(window["number"])).is_file():
                    result["faults"].setdefault(where, []).append(
                        f"the guest did not get there, read {at / 'console'}"
                    )
                elif seed == seeds[0]:
                    windows[name] = count_window(image, at, window)
                    windows[name]["by_seed"] = [windows[name]["per_write"]]
                    faults = windows[name]["faults"] = faults_of(name, windows[name])
                    if faults:
                        result["faults"].setdefault(where, []).extend(faults)
                elif name in windows:
                    total = total_of(at / str(window["number"]))
                    windows[name]["by_seed"].append(per(total, window["done"]))
    result["summary"] = summary(result["kernels"])
    return result


def summary(kernels):
    """The figures that are compared, side by side."""
    rows = []
    for name in WINDOWS + LOOPS + POLICY_WINDOWS:
        of = {kernel: windows[name] for kernel, windows in kernels.items() if name in windows}
        for figure in FIGURES:
            line = {"window": name, "figure": figure}
            for kernel, window in of.items():
                line[kernel] = (
                    statistics.median(window["by_seed"])
                    if figure == "per_write"
                    else window[figure]
                )
            if line.get("c") and "rust" in line:
                line["ratio"] = line["rust"] / line["c"]
            if any(line.get(kernel) for kernel in of):
                rows.append(line)
    return rows


def repeat(build, out, times=2, seed=SEEDS[0]):
    """Boots one kernel several times alike; returns the relative difference of totals by window.

    It is 0.0 only if the count of each address is the same in all of them.
    """
    out = out.resolve()
    cpus = Cpus(out)
    at = [out / f"repeat-{i}" for i in range(times)]
    boots = [cpus.boot(Path(build), path, seed) for path in at]
    said = [future.result() for future in boots]
    # A window that was not reached is no equal one.
    differences = {name: 1.0 for name in WINDOWS + LOOPS if name not in said[0]}
    for name, window in said[0].items():
        if name == "refused":
            continue
        texts = []
        for path in at:
            counts = path / str(window["number"])
            texts.append(counts.read_text() if counts.is_file() else "")
        if all(text and text == texts[0] for text in texts):
            differences[name] = 0.0
            continue
        differences[name] = 1.0
        if all(texts):
            totals = [total_of(path / str(window["number"])) for path in at]
            # Not 0, even if other instructions make the same sum.
            differences[name] = max(per(max(totals) - min(totals), max(totals)), 1e-9)
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--c", type=Path, help="where the kernel without the option was built")
    parser.add_argument("--rust", type=Path, help="where the kernel with it was built")
    parser.add_argument(
        "--out", type=Path, required=True, help="for count.json and what is counted"
    )
    parser.add_argument(
        "--seeds", type=int, default=len(SEEDS), help="boots of each kernel (%(default)s)"
    )
    parser.add_argument(
        "--repeat", action="store_true", help="boot each kernel twice alike, and compare"
    )
    args = parser.parse_args()
    kernels = {k: getattr(args, k) for k in ("c", "rust") if getattr(args, k)}
    if not kernels:
        parser.error("nothing to count: --c, --rust or both")
    if args.seeds < 1:
        parser.error("--seeds: at least 1")

    try:
        if args.repeat:
            worst = 0.0
            for kernel, build in kernels.items():
                for window, difference in repeat(build, args.out / kernel).items():
                    equal = (
                        "equal to the instruction" if not difference else f"{difference:.4%} apart"
                    )
                    print(f"{kernel} {window}: {equal}")
                    worst = max(worst, difference)
            return 1 if worst else 0
        result = measure(kernels, args.out, tuple(range(1, args.seeds + 1)))
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    (args.out / "count.json").write_text(json.dumps(result, indent=1) + "\n")
    print(report(result))
    for window, faults in result["faults"].items():
        for fault in faults:
            print(f"fault: {window}: {fault}", file=sys.stderr)
    return 1 if result["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
