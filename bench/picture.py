# SPDX-License-Identifier: GPL-2.0
"""What a page begins with: one sentence and one picture of what uncached I/O gives.

Three panels: how much of the page cache is left to others, how long others wait, and how
fast the writer is. Where the workload that shows one best was not run, another stands in.
"""

import dataclasses
import html

from figures import FIGURES, by_mode, value
from models import MODES
from tables import number
from words import mode_title, modes_in

MIB = 1 << 20
# Of Okabe and Ito's, which the colour-blind tell apart, and which have contrast on white and black.
COLORS = {"buffered": "#8a8a8a", "direct": "#0072b2", "uncached": "#d55e00"}
WIDTH, BAR, GAP, LABEL, HEAD = 360, 20, 8, 152, 62
# What is left of 80 columns.
TEXT_BAR = 46


@dataclasses.dataclass(frozen=True)
class Panel:
    """One of the three: for each mode a number."""

    title: str
    # Below the title, and in the sentence.
    where: str
    words: str
    better: str
    unit: str
    digits: int
    numbers: dict


def left_to_others(cells):
    """MB of the room for page cache that nothing of the run ever took."""
    return min(max(0, c["room_mib"] * MIB / 1e6 - c["peak_file_mb"]) for c in cells)


def figure_of(key, role):
    """The median of a figure, as a function of cells."""
    figure = next(figure for figure in FIGURES if figure.key == key)

    def median(cells):
        found = value(cells, figure, role)
        return found and found.median

    return median


WRITES = ("seqwrite", "seqwrite-uring", "writers")
# Panels: title, what is better, unit, digits, and the workloads that show it, best first,
# each with what it is under the title and in the sentence.
CHOICES = [
    (
        "Page cache left to others",
        "more",
        "MB",
        0,
        [
            (
                name,
                "while 1 GiB is written",
                "writing 1 GiB uncached left {} of page cache to others{}",
                left_to_others,
            )
            for name in WRITES
        ]
        + [
            (
                "seqread",
                "while 1 GiB is read",
                "reading 1 GiB uncached left {} of page cache to others{}",
                left_to_others,
            )
        ],
    ),
    (
        "Slowest of 1000 I/Os",
        "less",
        "ms",
        1,
        [
            (
                "mixed",
                "of buffered readers beside the writer",
                "the slowest of 1000 buffered reads beside such a writer took {}{}",
                figure_of("p999_ms", "readers"),
            )
        ]
        + [
            (
                name,
                "of the writer",
                "the slowest of 1000 writes took {}{}",
                figure_of("p999_ms", "writer"),
            )
            for name in WRITES
        ]
        + [
            (
                "seqread",
                "of the reader",
                "the slowest of 1000 reads took {}{}",
                figure_of("p999_ms", "reader"),
            )
        ],
    ),
    (
        "Throughput",
        "more",
        "MB/s",
        0,
        [
            (
                "mixed",
                "of the writer beside them",
                "that writer wrote at {}{}",
                figure_of("mb_s", "writer"),
            ),
        ]
        + [
            (
                name,
                "of the writer, with fsync",
                "it wrote at {}{}, fsync included",
                figure_of("mb_s", "writer"),
            )
            for name in WRITES
        ]
        + [("seqread", "of the reader", "it read at {}{}", figure_of("mb_s", "reader"))],
    ),
]


def kind(mode):
    """What a mode is to someone who has never heard of policies."""
    if MODES[mode].uncached:
        return "uncached"
    return "direct" if MODES[mode].fio["direct"] else "buffered"


def panel(cells, title, better, unit, digits, sources):
    """A panel from the first source that was run in an uncached and another mode, or None."""
    for workload, where, words, figure in sources:
        numbers = {}
        for mode, found in by_mode(cells, workload).items():
            amount = figure(found)
            if amount is not None:
                numbers[mode] = amount
        if len({kind(mode) for mode in numbers} | {"uncached"}) > 1 and any(
            kind(mode) == "uncached" for mode in numbers
        ):
            ordered = {mode: numbers[mode] for mode in modes_in(cells) if mode in numbers}
            ordered = dict(
                sorted(ordered.items(), key=lambda item: list(COLORS).index(kind(item[0])))
            )
            return Panel(title, where, words, better, unit, digits, ordered)
    return None


def panels(cells):
    """The panels that can be drawn of these cells."""
    found = [panel(cells, *choice) for choice in CHOICES]
    return [one for one in found if one]


def told(one, mode, others, among):
    """The numbers of a panel in words: that of MODE, and those of the OTHERS behind it."""

    def amount(mode):
        return number(one.numbers[mode], one.digits)

    beside = [f"{mode_title(o, among)} {amount(o)}" for o in others if o in one.numbers]
    return one.words.format(
        f"{amount(mode)} {one.unit}", f" ({', '.join(beside)})" if beside else ""
    )


def sentence(cells):
    """What the picture shows, in one sentence; nothing if there is no picture."""
    drawn = panels(cells)
    if not drawn:
        return ""
    among = modes_in(cells)
    uncached = next(
        mode
        for mode in ("paced", "flush", "lazy", "kick", "lazyflag", "c")
        if mode in drawn[0].numbers
    )
    # One of each kind: both kernels have the same.
    kinds = {kind(mode): mode for mode in reversed(among)}
    others = [kinds[other] for other in COLORS if other in kinds and other != "uncached"]
    parts = [told(one, uncached, others, among) for one in drawn if uncached in one.numbers]
    text = ", ".join(parts[:-1]) + (", and " if parts[1:] else "") + parts[-1]
    return f"{text[0].upper()}{text[1:]}."


def panel_svg(one, among, left=0):
    """A panel as SVG, LEFT pixels from the left."""
    height = HEAD + len(one.numbers) * (BAR + GAP)
    most = max(max(one.numbers.values()), 1e-9)
    room = WIDTH - LABEL - 62
    said = f"{one.title} {one.where}, {one.unit}; {one.better} is better"
    lines = []
    lines.append(
        f'<svg class="panel" xmlns="http://www.w3.org/2000/svg" x="{left}" width="{WIDTH}"'
        f' height="{height}" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{html.escape(said)}" font-family="system-ui, sans-serif" font-size="13"'
        f' fill="currentColor">'
        f'<text x="0" y="16" font-weight="600" font-size="14">{one.title}</text>'
        f'<text x="0" y="33">{one.where}</text>'
        f'<text x="0" y="50" font-size="12">{one.unit}; {one.better} is better</text>'
    )
    for nr, (mode, amount) in enumerate(one.numbers.items()):
        y = HEAD + nr * (BAR + GAP)
        wide = max(1, room * amount / most)
        weight = ' font-weight="600"' if kind(mode) == "uncached" else ""
        lines.append(
            f'<text x="{LABEL - 8}" y="{y + 15}" text-anchor="end"{weight}>'
            f"{html.escape(mode_title(mode, among))}</text>"
            f'<rect x="{LABEL}" y="{y}" width="{wide:.1f}" height="{BAR}" fill="{COLORS[kind(mode)]}"/>'
            f'<text x="{LABEL + wide + 6:.1f}" y="{y + 15}"{weight}>'
            f"{number(amount, one.digits)}</text>"
        )
    return "\n".join([*lines, "</svg>"])


def picture(cells):
    """The panels for a page, where they stand side by side if there is room."""
    among = modes_in(cells)
    return "\n".join(panel_svg(one, among) for one in panels(cells))


def picture_file(cells):
    """The panels side by side in one SVG; nothing if there are none."""
    among, drawn = modes_in(cells), panels(cells)
    if not drawn:
        return ""
    step = WIDTH + 30
    height = HEAD + max(len(one.numbers) for one in drawn) * (BAR + GAP)
    inner = "\n".join(panel_svg(one, among, nr * step) for nr, one in enumerate(drawn))
    wide = len(drawn) * step - 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height}" width="{wide}"'
        f' height="{height}" color="#222"><rect width="100%" height="100%" fill="#fff"/>\n{inner}\n</svg>\n'
    )


def picture_text(cells):
    """The panels as lines of bars for a terminal of 80 columns, or for a pipe."""
    among = modes_in(cells)
    lines = []
    for one in panels(cells):
        most = max(max(one.numbers.values()), 1e-9)
        lines += ["", f"{one.title} {one.where}: {one.unit}, {one.better} is better"]
        for mode, amount in one.numbers.items():
            bar = "#" * round(TEXT_BAR * amount / most)
            title = mode_title(mode, among)
            lines.append(f"  {title:21}{number(amount, one.digits):>8}  {bar}".rstrip())
    return lines
