#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Four modes of I/O side by side, on XFS on an NVMe-like device, in UML guests.

Every cell (a workload in a mode) runs in a guest of its own. Prints one table
and leaves demo.json, demo.png and demo.svg in the output directory.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODES = ["buffered", "dontcache", "direct", "lazy"]
WORKLOADS = {
    "seqwrite": "sequential write, 1 MiB",
    "writers": "4 writers, a file each, 1 MiB",
    "randwrite": "random overwrite, 4 KiB, 8 writers",
    "seqread": "sequential read, 1 MiB",
}
# What the device can do: 8 requests of at most 128 KiB in 2 ms.
DEVICE_MB_S = 8 * 128 * 1024 / 0.002 / 1e6
DEVICE_IOPS = 8 / 0.002
PAGE = 4096
SIZE_MIB = 1024
DEVICE_MIB = 1200
MEMORY_MIB = 1600


def choice_list(allowed):
    """An argparse type: a comma-separated choice of names."""

    def parse(text):
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(allowed)}")
        return names

    return parse


def run_cell(args, workload, mode):
    """Boots a guest, runs one cell in it, and returns its figures."""
    scratch = args.out / "cells" / f"{workload}-{mode}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    shutil.copy(args.fio, scratch / "fio")
    (scratch / "env").write_text(
        f"MODE={mode}\nWORKLOAD={workload}\nSIZE_MIB={SIZE_MIB}\nDEVICE_MIB={DEVICE_MIB}\n"
    )
    command = [ROOT / "guest/uml.sh", args.kernel, scratch, "180", ROOT / "bench/cell.sh"]
    command += ["ncpus=2", f"mem={MEMORY_MIB}M", f"dontcache.policy={args.policy}"]
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        log = scratch / "log"
        raise RuntimeError(
            f"{workload} in mode {mode} failed (status {done.returncode})\n{done.stderr}"
            + (log.read_text(errors="replace")[-2000:] if log.exists() else "")
        )

    job = json.loads((scratch / "fio.json").read_text())["jobs"][0]
    io = job["read" if workload == "seqread" else "write"]
    samples = [
        [int(number) for number in line.split()]
        for line in (scratch / "samples").read_text().splitlines()
        if len(line.split()) == 3
    ]
    percentile = {name: io["lat_ns"]["percentile"][key] / 1e6 for name, key in PERCENTILES.items()}
    cell = {
        "workload": workload,
        "mode": mode,
        "mb_s": io["bw_bytes"] / 1e6,
        "iops": io["iops"],
        **percentile,
        "peak_dirty_mb": max(dirty + writeback for dirty, writeback, _ in samples) * PAGE / 1e6,
        "peak_file_mb": max(pages for _, _, pages in samples) * PAGE / 1e6,
        "room_mib": int((scratch / "room").read_text()),
        "counters": dict(line.split() for line in (scratch / "counters").read_text().splitlines()),
    }
    return cell | {"faults": faults(cell)}


PERCENTILES = {"p50_ms": "50.000000", "p99_ms": "99.000000", "p999_ms": "99.900000"}


def faults(cell):
    """What makes a cell something else than it says."""
    found = []
    if 2 * cell["room_mib"] > SIZE_MIB:
        found.append(f"the file is not twice the {cell['room_mib']} MiB of room")
    if cell["mb_s"] > DEVICE_MB_S or (
        cell["workload"] == "randwrite" and cell["iops"] > DEVICE_IOPS
    ):
        found.append("faster than the device")
    if cell["mode"] == "direct" and cell["peak_file_mb"] > 32:
        found.append("direct I/O went through the page cache")
    asked = sum(int(cell["counters"][name]) for name in ("start", "skip", "kick"))
    uncached = cell["mode"] in ("dontcache", "lazy") and cell["workload"] != "seqread"
    if uncached != (asked > 0):
        found.append(f"{asked} uncached writes")
    if uncached and cell["workload"] == "randwrite" and cell["counters"]["bios"] == "0":
        found.append("no bio was completed by the worker")
    return found


COLUMNS = [
    ("MB/s", "mb_s", 1),
    ("p50 ms", "p50_ms", 2),
    ("p99 ms", "p99_ms", 2),
    ("p99.9 ms", "p999_ms", 2),
    ("dirty+wb MB", "peak_dirty_mb", 0),
    ("cache MB", "peak_file_mb", 0),
]


def print_table(cells, args):
    """The table of all cells, a block for each workload."""
    print(
        f"\nXFS, UML with 2 CPUs, {cells[0]['room_mib']} MiB room for page cache, {SIZE_MIB} MiB written or read"
    )
    print(
        f"device: 8 x 128 KiB in flight, 2 ms, at most {DEVICE_MB_S:.0f} MB/s and {DEVICE_IOPS:.0f} IOPS"
    )
    print(f"dontcache: RWF_DONTCACHE with policy {args.policy}; lazy: RWF_DONTCACHE_LAZY")
    print(
        "writes end with fsync, its time counts; latencies are total; dirty+wb and cache are peaks\n"
    )
    print(f"{'':11}" + "".join(f"{title:>13}" for title, _, _ in COLUMNS))
    for workload in args.workloads:
        print(WORKLOADS[workload])
        for mode in args.modes:
            cell = next(c for c in cells if (c["workload"], c["mode"]) == (workload, mode))
            row = "".join(f"{cell[key]:13.{digits}f}" for _, key, digits in COLUMNS)
            print(f"  {mode:9}{row}" + "".join(f"  ! {fault}" for fault in cell["faults"]))
    total = {key: sum(int(c["counters"][key]) for c in cells) for key in cells[0]["counters"]}
    print(
        "\nRust decided {start} starts, {skip} skips and {kick} kicks of writeback, and completed"
        " {bios} bios in {runs} runs of the worker".format(**total)
    )


def plot(cells, args):
    """Throughput, tail and footprint, as bars for each workload and mode."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 1, figsize=(9, 10), constrained_layout=True)
    panels = [
        ("mb_s", "MB/s", "linear"),
        ("p999_ms", "p99.9 of total latency, ms", "log"),
        ("peak_file_mb", "peak of file pages, MB", "linear"),
    ]
    colors = dict(zip(MODES, ["#888888", "#d08a28", "#3b7dd8", "#2a9d6f"], strict=True))
    for axis, (key, label, scale) in zip(axes, panels, strict=True):
        for number, mode in enumerate(args.modes):
            places = [place + 0.2 * number for place in range(len(args.workloads))]
            heights = [
                next(c[key] for c in cells if (c["workload"], c["mode"]) == (workload, mode))
                for workload in args.workloads
            ]
            bars = axis.bar(places, heights, width=0.19, color=colors[mode], label=mode)
            axis.bar_label(bars, fmt="%.3g", fontsize=7)
        axis.set_yscale(scale)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.margins(y=0.15)
        axis.set_ylabel(label)
        axis.set_xticks(
            [place + 0.1 * (len(args.modes) - 1) for place in range(len(args.workloads))],
            [WORKLOADS[workload].replace(", ", "\n", 1) for workload in args.workloads],
        )
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(ncols=len(args.modes), frameon=False, loc="upper right")
    axes[0].set_title(f"Uncached I/O on XFS (dontcache: policy {args.policy})")
    for kind in ("png", "svg"):
        figure.savefig(args.out / f"demo.{kind}", dpi=130)


def parse_args():
    """The command line; make demo passes it on from variables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", type=pathlib.Path, required=True, help="a UML kernel")
    parser.add_argument("--fio", type=pathlib.Path, required=True, help="fio with uncached=2")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="directory for the results")
    parser.add_argument("--modes", type=choice_list(MODES), default=MODES)
    parser.add_argument("--workloads", type=choice_list(list(WORKLOADS)), default=list(WORKLOADS))
    parser.add_argument("--policy", choices=["flush", "lazy", "kick"], default="kick")
    parser.add_argument("--seed", type=int, default=None, help="of the order of the cells")
    parser.add_argument("--check-options", action="store_true", help="do nothing else")
    return parser.parse_args()


def main():
    """Runs the cells in a random order, so that no mode always has the quiet machine."""
    args = parse_args()
    if args.check_options:
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    seed = args.seed if args.seed is not None else random.randrange(1 << 16)
    plan = [(workload, mode) for workload in args.workloads for mode in args.modes]
    random.Random(seed).shuffle(plan)
    print(f"{len(plan)} cells, order of seed {seed}", file=sys.stderr)

    cells = []
    start = time.monotonic()
    for number, (workload, mode) in enumerate(plan):
        gone = time.monotonic() - start
        left = gone / number * (len(plan) - number) if number else 11 * len(plan)
        print(
            f"  {number + 1:2}/{len(plan)} {workload} {mode}, about {left:.0f} s left",
            file=sys.stderr,
        )
        try:
            cells.append(run_cell(args, workload, mode))
        except RuntimeError as error:
            print(
                f"error: {error}\n  next: read {args.out}/cells/{workload}-{mode}/", file=sys.stderr
            )
            return 1

    print_table(cells, args)
    (args.out / "demo.json").write_text(
        json.dumps(
            {
                "seed": seed,
                "policy": args.policy,
                "device_mb_s": DEVICE_MB_S,
                "size_mib": SIZE_MIB,
                "cells": cells,
            },
            indent=1,
        )
    )
    plot(cells, args)
    print(f"\nplot: {args.out}/demo.png (and .svg), figures: {args.out}/demo.json")
    return 1 if any(cell["faults"] for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
