# SPDX-License-Identifier: GPL-2.0
"""A workload as three plots: throughput, latency distribution, footprint over time."""

import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from figures import FIGURES, by_mode, value
from models import MODES, PAGE
from tables import roles_of
from words import mode_title
from workloads import WORKLOADS

# Of Okabe and Ito's, which the colour-blind tell apart; controls have the colour of their namesakes.
COLORS = {
    "buffered": "#8a8a8a",
    "direct": "#0072b2",
    "c": "#000000",
    "kick": "#e69f00",
    "flush": "#d55e00",
    "lazy": "#009e73",
    "paced": "#cc79a7",
    "lazyflag": "#56b4e9",
    "rbuffered": "#8a8a8a",
    "rdirect": "#0072b2",
}
# And lines by more than colour.
DASHES = {
    "buffered": "--",
    "direct": "-.",
    "kick": (0, (5, 1)),
    "lazy": (0, (3, 1, 1, 1)),
    "lazyflag": (0, (1, 1)),
    "rbuffered": (0, (5, 3)),
    "rdirect": (0, (3, 3, 1, 3)),
}
# A latency of nothing has no place on a log axis.
LEAST_MS = 1e-3


def bars(axis, modes, workload, role):
    """Throughput of each mode, with the spread of its repetitions."""
    figure = next(f for f in FIGURES if f.key == "mb_s")
    names = list(modes)
    values = [value(modes[mode], figure, role) for mode in names]
    heights = [v.median for v in values]
    spread = [
        [v.median - v.low for v in values],
        [v.high - v.median for v in values],
    ]
    drawn = axis.barh(
        [mode_title(mode, modes) for mode in names],
        heights,
        xerr=spread if any(map(sum, spread)) else None,
        color=[COLORS[m] for m in names],
    )
    axis.bar_label(drawn, fmt="%.4g", fontsize=8)
    axis.invert_yaxis()
    axis.margins(x=0.15)
    axis.set_xlabel(f"{role}, MB/s")
    axis.set_title(WORKLOADS[workload].title, fontsize=10)


def latencies(axis, modes, role):
    """The distribution of total latency of each mode, its tail stretched out."""
    for mode, cells in modes.items():
        points = cells[0]["roles"][role]["distribution"]
        axis.plot(
            [max(ms, LEAST_MS) for _, ms in points],
            [1 - percent / 100 for percent, _ in points],
            drawstyle="steps-post",
            color=COLORS[mode],
            ls=DASHES.get(mode, "-"),
            label=mode_title(mode, modes),
        )
    axis.set_xscale("log")
    axis.set_xlim(left=LEAST_MS)
    axis.set_xlabel(f"{role}: latency of a call, ms")
    axis.set_yscale("log")
    axis.set_ylabel("part of I/Os that took longer")


def footprint(axis, modes):
    """File pages (solid) and those dirty or under writeback (dotted) over time."""
    for mode, cells in modes.items():
        samples = cells[0]["samples"]
        seconds = [ms / 1000 for *_, ms in samples]
        axis.plot(
            seconds, [pages * PAGE / 1e6 for *_, pages, _ in samples], color=COLORS[mode], lw=1.2
        )
        axis.plot(
            seconds,
            [(dirty + wb) * PAGE / 1e6 for dirty, wb, *_ in samples],
            color=COLORS[mode],
            lw=0.9,
            ls=":",
        )
    axis.set_xlabel("s")
    axis.set_ylabel("page cache, MB (dotted: unwritten)")


def plot(cells, workload, path):
    """Saves the plots of a workload as PATH.png and .svg, and returns the SVG as text."""
    found = by_mode(cells, workload)
    modes = {mode: found[mode] for mode in MODES if mode in found}
    # What is of interest of two roles is what the second one suffers.
    roles = roles_of(cells, workload)
    # Text stays text: it is smaller, and can be searched.
    with plt.rc_context({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": workload}):
        figure, axes = plt.subplots(3, 1, figsize=(5, 8.4), constrained_layout=True)
        bars(axes[0], modes, workload, roles[0])
        latencies(axes[1], modes, roles[-1])
        footprint(axes[2], modes)
        for axis in axes:
            axis.spines[["top", "right"]].set_visible(False)
        figure.legend(
            *axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
        )
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
        path.with_suffix(".svg").write_text(svg.getvalue())
        figure.savefig(path.with_suffix(".png"), dpi=110)
        plt.close(figure)
    return svg.getvalue()
