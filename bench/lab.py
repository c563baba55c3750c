#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The lab: C and Rust side by side, in UML guests, one boot for each cell.

run measures and reports; compare says what changed between two reports.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import sys
import textwrap
import time

import count
import guests
import selfcheck
from compare import compare
from models import MEMORY_MIB, MODELS, MODES
from reproduce import reproduce
from words import NEXT, mode_title
from workloads import WORKLOADS

FORMAT = 1
INSTRUMENTS = ["virtual", "smp", "count"]
# What setup/kernel.sh calls the kernel of an instrument.
BUILDS = {"virtual": "virtual", "smp": "um"}
CELL_SECONDS = {"virtual": 8, "smp": 11}
# What is run if nobody says: by --full and instrument. Real time is dear.
DEFAULTS = {
    False: {
        "virtual": {"workloads": list(WORKLOADS), "modes": list(MODES)[:7]},
        "smp": {"workloads": ["writers"], "modes": ["c", "kick", "flush", "lazy", "paced"]},
    },
    True: {
        instrument: {"workloads": list(WORKLOADS), "modes": list(MODES)} for instrument in BUILDS
    },
}


def choice_list(allowed):
    """An argparse type: a comma-separated choice of names."""

    def parse(text):
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(allowed)}")
            if names.count(name) > 1:
                raise argparse.ArgumentTypeError(f"{name!r} is there twice")
        return names

    return parse


class Parser(argparse.ArgumentParser):
    """Says what is wrong, and what to do next, as all else here: nobody has called lab.py."""

    def error(self, message):
        self.exit(2, f"error: {message}\n  next: mend that, or leave it out\n")


def natural(text):
    """An argparse type: a whole number that is not 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def seed(text):
    """An argparse type: what fio takes."""
    if not text.isdecimal() or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {(1 << 63) - 1}")
    return int(text)


def margin(text):
    """An argparse type: a part of 1."""
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 0 to 1, as 0.02 for 2 %")
    return number


def plan(args, instrument, model):
    """The cells to run: shuffled, and in real time as rounds of one repetition each.

    A round has every mode of every workload once, so that what disturbs the
    machine for a while disturbs them alike.
    """
    order = random.Random(args.seed)
    chosen_workloads = args.workloads or DEFAULTS[args.full][instrument]["workloads"]
    chosen_modes = args.modes or DEFAULTS[args.full][instrument]["modes"]
    cells = []
    virtual = instrument == "virtual"
    for number in range(args.variations if virtual else args.repetitions):
        cells_of_round = [
            guests.Cell(
                instrument, model, workload, mode, *((0, number) if virtual else (number, 0))
            )
            for workload in chosen_workloads
            for mode in chosen_modes
            if mode not in WORKLOADS[workload].without
        ]
        order.shuffle(cells_of_round)
        cells += cells_of_round
    if virtual:
        # The self-comparison: the same again, in boots of their own.
        again = order.sample(cells, min(args.repeat, len(cells)))
        cells += [dataclasses.replace(cell, repetition=1) for cell in again]
    return cells


def run_all(args, cells, progress):
    """Runs cells of one instrument; returns figures in the order of the plan, and what failed.

    A cell that fails does not take hours of others with it.
    """
    # Real time is for one guest alone.
    workers = args.jobs if cells[0].instrument == "virtual" else 1
    done = {}
    failed = []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        waiting = {
            pool.submit(guests.run, cell, args.kernels, args.fio, args.out, args.seed): cell
            for cell in cells
        }
        try:
            for future in concurrent.futures.as_completed(waiting):
                cell = waiting[future]
                try:
                    done[cell] = future.result()
                    done[cell]["faults"] = selfcheck.faults(done[cell])
                except guests.CellError as error:
                    failed.append(str(cell))
                    print(f"error: {error}", file=sys.stderr)
                progress.tell(cell)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    found = [done[cell] for cell in cells if cell in done]
    # In real time a machine that is slow, or has other work, is no fault of the cell's.
    kind = "faults" if cells[0].instrument == "virtual" else "cautions"
    for cell, fault in selfcheck.faults_among(found):
        cell.setdefault(kind, []).append(fault)
    return found, failed


class Progress:
    """How many cells are done, and how long the rest will take.

    The first guess is that of a 2 core machine; a cell in real time has it alone.
    """

    def __init__(self, cells, jobs):
        self.jobs = jobs
        self.left = cells
        self.done = 0
        self.total = len(cells)
        self.among = {cell.mode for cell in cells}
        self.start = time.monotonic()
        self.guessed = 0.0

    def guess(self, cell):
        """Seconds that a cell adds to the whole."""
        return CELL_SECONDS[cell.instrument] / (self.jobs if cell.instrument == "virtual" else 1)

    def tell(self, cell):
        """Counts a cell as done and says so."""
        self.done += 1
        self.left.remove(cell)
        self.guessed += self.guess(cell)
        pace = (time.monotonic() - self.start) / self.guessed
        left = pace * sum(map(self.guess, self.left))
        title = textwrap.shorten(WORKLOADS[cell.workload].title, 36, placeholder="...")
        name = f"{title}: {mode_title(cell.mode, self.among)}"
        print(f"  {self.done:3}/{self.total} {name:58} {left:.0f} s left", file=sys.stderr)


def same(cells):
    """Whether what ran twice in virtual time gave the same: (pairs, differences)."""
    first = {guests.name_of(c): c for c in cells if c["repetition"] == 0}
    pairs = 0
    differences = []
    for again in cells:
        name = guests.name_of(again)
        if again["repetition"] == 0 or name not in first:
            continue
        pairs += 1
        for key in ("roles", "samples", "by_reason", "resident"):
            if again[key] != first[name][key]:
                differences.append(f"{' '.join(map(str, name))}: {key}")
    return pairs, differences


def guests_at_a_time():
    """As many as there are processors, and memory: /dev/shm has half of it."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(os.cpu_count(), total // 2 // (MEMORY_MIB << 20)))


def digest(path):
    """A short name for the content of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def kernels_of(args, cells):
    """What the kernels of some cells are, by engine."""
    described = {}
    for cell in cells:
        engine = MODES[cell.mode].kernel
        image = args.kernels[cell.instrument, engine]
        if engine not in described:
            described[engine] = {
                "release": (image.parent / "include/config/kernel.release").read_text().strip(),
                "config": digest(image.parent / ".config"),
                "image": digest(image),
            }
    return described


def command_kernels(args):
    """Prints the kernels that a run would boot, for who builds them."""
    wanted = {
        (BUILDS[cell.instrument], MODES[cell.mode].kernel)
        for instrument in args.instruments
        if instrument in BUILDS
        for cell in plan(args, instrument, args.models[0])
    }
    if "count" in args.instruments:
        wanted |= {("x86", engine) for engine in ("c", "rust")}
    if not wanted:
        print("error: the lab has none of these workloads in these modes", file=sys.stderr)
        print("  next: leave one of them out", file=sys.stderr)
        return 1
    for build, engine in sorted(wanted):
        print(build, engine)
    return 0


def command_run(args):
    """Measures, checks itself, and reports."""
    # Wants matplotlib, which other commands need not find.
    from report import report

    args.out.mkdir(parents=True, exist_ok=True)
    args.kernels = {
        (instrument, engine): args.build / f"{build}-{engine}" / "linux"
        for instrument, build in BUILDS.items()
        for engine in ("c", "rust")
    }
    plans = [
        plan(args, instrument, model)
        for instrument in args.instruments
        if instrument in BUILDS
        for model in args.models
    ]
    progress = Progress([cell for cells in plans for cell in cells], args.jobs)
    print(f"{progress.total} cells, seed {args.seed}", file=sys.stderr)
    runs = []
    try:
        for cells in plans:
            found, failed = run_all(args, cells, progress)
            if not found:
                raise guests.CellError("no cell of an instrument ran")
            virtual = cells[0].instrument == "virtual"
            pairs, differences = same(found) if virtual else (0, [])
            runs.append(
                {
                    "instrument": cells[0].instrument,
                    "model": cells[0].model,
                    "kernels": kernels_of(args, cells),
                    "repeated": pairs,
                    "not_repeated": differences,
                    "failed": failed,
                    "cells": found,
                }
            )
    except guests.CellError as error:
        print(f"error: {error}\n  next: read {args.out}/cells/", file=sys.stderr)
        return 1
    result = {"format": FORMAT, "seed": args.seed, "fio": digest(args.fio), "runs": runs}
    if "count" in args.instruments:
        print("  counting instructions in QEMU, about 180 s", file=sys.stderr)
        kernels = {engine: args.build / f"x86-{engine}" for engine in ("c", "rust")}
        try:
            result["count"] = count.measure(kernels, args.out / "count")
        except count.Failure as error:
            result["not_counted"] = str(error)
    (args.out / "lab.json").write_text(json.dumps(result) + "\n")
    report(result, args.out, args.narrow)
    return verdict(result, args.out)


def verdict(result, out):
    """The last lines of a run, and its exit status."""
    bad = 0
    print()
    for run in result["runs"]:
        bad += len(run["failed"])
        if run["failed"]:
            print(f"failed: {', '.join(run['failed'])}\n  next: read {out}/cells/")
        for cell in run["cells"]:
            bad += len(cell["faults"])
            name = f"{run['instrument']} {run['model']} {cell['workload']} {cell['mode']}"
            for fault in cell["faults"]:
                print(f"fault: {name}: {fault}")
            for caution in cell.get("cautions", []):
                print(f"caution: {name}: {caution}, since this machine is slow or has other work")
        bad += len(run["not_repeated"])
        if run["repeated"]:
            differences = "; ".join(run["not_repeated"])
            print(
                f"{run['repeated']} cells of {run['model']} ran twice in virtual time and "
                + (f"differ in {differences}" if differences else "are equal to the bit")
            )
    if "not_counted" in result:
        bad += 1
        print(f"failed: count: {result['not_counted']}\n  next: read {out}/count/")
    for window, faults in result.get("count", {}).get("faults", {}).items():
        bad += len(faults)
        print(f"count, {window}: {'; '.join(faults)}")
    print(f"{sum(len(run['cells']) for run in result['runs'])} cells, {bad} faults")
    print(f"page: {out}/index.html, figures: {out}/lab.json")
    if not bad:
        print("next: " + "\n      ".join(f"{command:32} # {what}" for command, what in NEXT))
    return 1 if bad else 0


def load(path):
    """A lab.json, or nothing and a complaint."""
    try:
        result = json.loads(path.read_text())
        if result["format"] != FORMAT:
            raise ValueError(f"format {result['format']}, not {FORMAT}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"error: {path}: {error}\n  next: give a lab.json of make bench", file=sys.stderr)
        return None
    return result


def command_tables(args):
    """The tables of the source documents, for Documentation/."""
    result = load(args.result)
    if result is None:
        return 2
    print(reproduce(result))
    return 0


def command_compare(args):
    """Says what changed between two reports."""
    results = load(args.a), load(args.b)
    if None in results:
        return 2
    return compare(*results, args.margin)


def parse_args():
    """The command line; the Makefile passes it on from variables."""
    parser = Parser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="measure and report")
    run.set_defaults(command=command_run)
    run.add_argument("--build", type=pathlib.Path, required=True, help="where kernels are built")
    run.add_argument("--fio", type=pathlib.Path, required=True, help="fio with uncached=2")
    run.add_argument("--out", type=pathlib.Path, required=True, help="directory for the results")
    kernels = commands.add_parser("kernels", help="what run with these options needs")
    kernels.set_defaults(command=command_kernels)
    for command in (run, kernels):
        command.add_argument(
            "--instruments", type=choice_list(INSTRUMENTS), default=INSTRUMENTS, metavar="A,B"
        )
        command.add_argument("--models", type=choice_list(list(MODELS)), default=None)
        command.add_argument("--modes", type=choice_list(list(MODES)), default=None)
        command.add_argument("--workloads", type=choice_list(list(WORKLOADS)), default=None)
        command.add_argument("--repetitions", type=natural, default=5, help="in real time")
        command.add_argument("--variations", type=natural, default=None, help="in virtual time")
        command.add_argument("--repeat", type=int, default=4, help="cells run twice, virtual time")
        command.add_argument("--jobs", type=natural, default=guests_at_a_time())
        command.add_argument("--seed", type=seed, default=1, help="of the order, and of fio")
        command.add_argument("--narrow", action="store_true", help="print what fits 80 columns")
        command.add_argument("--full", action="store_true", help="everything there is")
    against = commands.add_parser("compare", help="what changed between two runs")
    against.set_defaults(command=command_compare)
    against.add_argument("a", type=pathlib.Path)
    against.add_argument("b", type=pathlib.Path)
    against.add_argument("--margin", type=margin, default=0.02, help="of a loss, as a part of 1")
    tables = commands.add_parser("tables", help="those of the source documents, in reST")
    tables.set_defaults(command=command_tables)
    tables.add_argument("result", type=pathlib.Path)
    args = parser.parse_args()
    if getattr(args, "models", 0) is None:
        args.models = list(MODELS) if args.full else ["nvme"]
    if getattr(args, "variations", 0) is None:
        args.variations = 3 if args.full else 1
    return args


def main():
    """Runs the command that was asked for."""
    args = parse_args()
    return args.command(args)


if __name__ == "__main__":
    sys.exit(main())
