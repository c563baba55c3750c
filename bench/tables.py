# SPDX-License-Identifier: GPL-2.0
"""A run as tables of text: one for each workload and role, modes as rows."""

import textwrap

from figures import FIGURES, asked, by_mode, ratio, value
from models import DIRTY_MIB, MODELS, MODES, PAGE
from source import SOURCE
from words import ENGINES, device, mode_title, modes_in, place, workload_title
from workloads import WORKLOADS


def rows_of(cells, workload, role):
    """A list of (mode, {figure key: (value, ratio to the best other mode)})."""
    modes = by_mode(cells, workload)
    values = {
        mode: {figure.key: value(found, figure, role) for figure in FIGURES}
        for mode, found in modes.items()
    }
    rows = []
    for mode in [mode for mode in MODES if mode in modes]:
        row = {}
        for figure in FIGURES:
            this = values[mode][figure.key]
            others = [
                values[other][figure.key] and values[other][figure.key].median
                for other in values
                if other != mode
            ]
            row[figure.key] = this, ratio(this and this.median, others, figure)
        rows.append((mode, row))
    return rows


def roles_of(cells, workload):
    """The names of the roles that the cells of a workload report."""
    return list(next(cell for cell in cells if cell["workload"] == workload)["roles"])


def source_of(workload, role, mode, figure):
    """The source document's (figure, ratio to its best other mode), or None."""
    modes = SOURCE.get((workload, role), {})
    this = modes.get(mode, {}).get(figure.key)
    if this is None:
        return None
    others = [row.get(figure.key) for other, row in modes.items() if other != mode]
    return this, ratio(this, others, figure)


def comparable(cells):
    """Whether figures are set beside those of the source: seconds of a busy machine cannot be, and
    who runs one kernel alone has not come for that."""
    return cells[0]["instrument"] == "virtual" and len({MODES[c["mode"]].kernel for c in cells}) > 1


def number(amount, digits):
    """A figure with as many digits as it deserves."""
    if amount is None:
        return "-"
    return f"{amount:.{0 if abs(amount) >= 1000 else digits}f}"


def times(part):
    """A ratio."""
    if part is None:
        return ""
    return f"x{part:.2f}" if 0.1 <= part < 10 else f"x{part:.2g}" if part < 10 else f"x{part:.0f}"


def used(rows, first):
    """The figures that have a value in some row; those of the whole cell for the FIRST role."""
    return [
        figure
        for figure in FIGURES
        if (first or figure.each_role) and any(row[figure.key][0] is not None for _, row in rows)
    ]


def header(run):
    """What the figures of a run are of, as lines."""
    cells = run["cells"]
    rooms = [cell["room_mib"] for cell in cells]
    room = " to ".join(map(str, sorted({min(rooms), max(rooms)})))
    lines = [
        device(run),
        f"room for page cache {room} MiB, of which {DIRTY_MIB} may be dirty",
    ]
    for engine, kernel in run["kernels"].items():
        lines.append(
            f"kernel {kernel['release']} {ENGINES[engine]}: configuration {kernel['config']},"
            f" image {kernel['image']}"
        )
    if run["instrument"] == "virtual":
        most = max(cell["variation"] for cell in cells) + 1
        lines.append(
            "virtual time, 1 CPU whose work costs nothing: policy, queueing and footprint;"
            + (f" medians of {most} variations" if most > 1 else " one run, chance is not known")
        )
    else:
        most = max(cell["repetition"] for cell in cells) + 1
        lines.append(f"real time, 2 CPUs, medians of {most}: believe ratios, not figures")
    lines.append(
        "x: against the best other mode; latencies are of whole calls; unwritten (dirty or under"
        " writeback) and cache are peaks; slowest x is the slowest writer's part of the fastest's rate"
    )
    return lines


def role_tables(cells, workload):
    """Of each role of a workload: its name, its rows, and the figures that have a value in some."""
    for number, role in enumerate(roles_of(cells, workload)):
        rows = rows_of(cells, workload, role)
        yield role, rows, used(rows, not number)


# What 80 columns have room for.
NARROW = ("mb_s", "p50_ms", "p99_ms", "p999_ms", "peak_dirty_mb", "peak_file_mb")


def narrow_table(cells, workload):
    """The same in 80 columns: the figures alone, of fewer."""
    lines = []
    among = modes_in(cells)
    for role, rows, columns in role_tables(cells, workload):
        columns = [figure for figure in columns if figure.key in NARROW]
        wide = [max(7, len(figure.title) + 2) for figure in columns]
        lines.append(
            f"  {role:20}" + "".join(f"{f.title:>{w}}" for f, w in zip(columns, wide, strict=True))
        )
        for mode, row in rows:
            line = f"  {mode_title(mode, among):20}"
            for figure, width in zip(columns, wide, strict=True):
                this = row[figure.key][0]
                line += f"{number(this and this.median, figure.digits):>{width}}"
            lines.append(line)
    return lines + fault_lines(cells, workload)


def fault_lines(cells, workload):
    """What is wrong with cells of a workload."""
    among = modes_in(cells)
    return [
        f"  ! {mode_title(mode, among)}: {said}"
        for mode, found in by_mode(cells, workload).items()
        for cell in found
        for said in cell["faults"] + cell.get("cautions", [])
    ]


def workload_table(cells, workload):
    """The lines of a workload: a table for each role, what the source said, and faults."""
    lines = []
    among = modes_in(cells)
    for role, rows, columns in role_tables(cells, workload):
        lines.append(f"{role:24}" + "".join(f"{figure.title:>12}{'':3}" for figure in columns))
        for mode, row in rows:
            text = f"  {mode_title(mode, among):22}"
            told = f"  {'':14}{'source':>8}"
            for figure in columns:
                this, part = row[figure.key]
                text += f"{number(this and this.median, figure.digits):>9} {times(part):<5}"
                said = source_of(workload, role, mode, figure) if comparable(cells) else None
                told += (
                    f"{number(said[0], figure.digits):>9} {times(said[1]):<5}" if said else " " * 15
                )
            lines.append(text.rstrip())
            if told.split() != ["source"]:
                lines.append(told.rstrip())
    return lines + fault_lines(cells, workload)


# Which engine is better: the same policy in C and Rust, and what ours make of it.
PAIRS = [("kick", "c"), ("lazy", "c"), ("flush", "c"), ("paced", "c"), ("rbuffered", "buffered")]


def pair_lines(cells, workload):
    """Throughput and tail of Rust over C, of pairs that ran in the same round."""
    modes = by_mode(cells, workload)
    lines = []
    for ours, theirs in PAIRS:
        if ours not in modes or theirs not in modes:
            continue
        rounds = {(cell["repetition"], cell["variation"]): cell for cell in modes[theirs]}
        for role in roles_of(cells, workload):
            parts = []
            for figure in FIGURES:
                if figure.key not in ("mb_s", "p99_ms", "p999_ms", "cpu_s"):
                    continue
                found = []
                for cell in modes[ours]:
                    other = rounds.get((cell["repetition"], cell["variation"]))
                    pair = [value([one], figure, role) for one in (cell, other) if one]
                    if len(pair) < 2:
                        continue
                    if all(pair) and pair[1].median > figure.floor:
                        found.append(pair[0].median / pair[1].median)
                if found:
                    found.sort()
                    middle = found[len(found) // 2]
                    spread = f" ({found[0]:.2f} to {found[-1]:.2f})" if len(found) > 1 else ""
                    parts.append(f"{figure.title} x{middle:.2f}{spread}")
            if parts:
                pair = f"{mode_title(ours, modes)} against {mode_title(theirs, modes)}"
                lines.append(f"  {pair}, {role}: " + ", ".join(parts))
    return lines


def reason_lines(cells):
    """Pages written by the reason that the flusher was given, for each page asked for.

    Where the ramp was not counted, nobody knows how many were asked for: parts of all.
    """
    lines = []
    among = modes_in(cells)
    for cell in cells:
        if not cell["by_reason"]:
            continue
        written = cell["spent"]["later"]["written_pages"]
        pages = (asked(cell) or 0) / PAGE
        parts = dict(sorted(cell["by_reason"].items()))
        # fsync, and the range that a write starts itself.
        parts["writers"] = max(0, written - sum(parts.values()))
        parts = {why: number / (pages or written or 1) for why, number in parts.items()}
        told = ", ".join(f"{why} {part:.2f}" for why, part in parts.items() if part >= 0.005)
        unit = "page asked for" if pages else "page written"
        lines.append(f"  {mode_title(cell['mode'], among)} wrote, per {unit}: {told}")
    return lines


# What a summary names the best modes of, and how near to the best is as good.
SUMMARY = ("mb_s", "p999_ms", "peak_file_mb", "written", "resident")
AS_GOOD = 0.02
# More than that have nothing in common but that others are worse.
SEVERAL = 3


def best(rows, figure, among):
    """The modes, AMONG those of the run, that are best in a figure."""
    values = {
        mode: max(row[figure.key][0].median, figure.least)
        for mode, row in rows
        if row[figure.key][0]
    }
    if not values:
        return "-"
    top = max(values.values()) if figure.better > 0 else min(values.values())
    near = max(AS_GOOD * abs(top), figure.floor)
    found = [mode for mode, amount in values.items() if abs(amount - top) <= near]
    if len(found) > SEVERAL:
        return "all" if len(found) == len(values) else f"{len(found)} of {len(values)}"
    return "; ".join(mode_title(mode, among) for mode in found)


def engines_differ(run):
    """Whether there is something to be best at: one kernel's modes are for different ends."""
    return len(run["kernels"]) > 1


def summary(cells):
    """Who is best at what: rows of texts, the first of them a head."""
    figures = [figure for figure in FIGURES if figure.key in SUMMARY]
    among = modes_in(cells)
    rows = [["who is best", "role", *(figure.title for figure in figures)]]
    for workload in workloads_of(cells):
        for number, role in enumerate(roles_of(cells, workload)):
            rows.append(
                [workload_title(workload), role]
                + [
                    best(rows_of(cells, workload, role), figure, among)
                    if figure.each_role or not number
                    else ""
                    for figure in figures
                ]
            )
    return rows


def aligned(rows):
    """Rows of texts as lines of equal columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def workloads_of(cells):
    """The workloads that ran, in the order of the table."""
    return [name for name in WORKLOADS if any(cell["workload"] == name for cell in cells)]


def narrow_text(run):
    """A run as text for a terminal of 80 columns."""
    # The first line of the head says what the place is, the last is about ratios, of which are none.
    head = [f"{place(run)}: {MODELS[run['model']]}", *header(run)[1:-1]]
    lines = [part for line in head for part in textwrap.wrap(line, 78)]
    for workload in workloads_of(run["cells"]):
        lines += ["", workload_title(workload), *narrow_table(run["cells"], workload)]
    return "\n".join(lines)


def text(run):
    """A run as text."""
    lines = [place(run), *header(run)]
    for workload in workloads_of(run["cells"]):
        lines += ["", workload_title(workload)]
        lines += workload_table(run["cells"], workload)
        lines += pair_lines(run["cells"], workload)
        mine = by_mode(run["cells"], workload)
        lines += reason_lines([mine[mode][0] for mode in MODES if mode in mine])
    if engines_differ(run):
        lines += ["", *aligned(summary(run["cells"]))]
    return "\n".join(lines)
