# SPDX-License-Identifier: GPL-2.0
"""The tables of the source documents beside what a run of the lab measured, in reST."""

from figures import FIGURES
from models import MODES
from tables import aligned, number, rows_of, source_of, times
from workloads import WORKLOADS

# A table of theirs: its title, our workload and role, its columns.
WRITE = ("mb_s", "p50_ms", "p99_ms", "p999_ms", "peak_dirty_mb", "peak_file_mb")
SMALL = ("mb_s", "iops", "p999_ms")
TABLES = [
    ("Sequential write", "seqwrite", "writer", WRITE),
    ("Sequential write through io_uring", "seqwrite-uring", "writer", WRITE),
    ("Random write", "randwrite", "writer", SMALL),
    ("Sequential read", "seqread", "reader", ("mb_s", "p50_ms", "p999_ms", "peak_file_mb")),
    ("Random read", "randread", "reader", SMALL),
    ("Several writers", "writers", "writer", ("mb_s", "p99_ms", "p999_ms", "peak_dirty_mb")),
    ("Noisy neighbour, the writer", "noisy", "writer", ("mb_s", "p999_ms")),
    ("Noisy neighbour, the readers", "noisy", "readers", ("mb_s", "p999_ms", "max_ms")),
    ("Mixed mode, the writer", "mixed", "writer", ("mb_s", "p50_ms", "p999_ms")),
    ("Mixed mode, the readers", "mixed", "readers", ("mb_s", "iops", "p50_ms", "p999_ms")),
    ("Block device, reads", "bdevread", "reader", ("mb_s", "peak_file_mb")),
    ("Block device, writes", "bdevwrite", "writer", ("mb_s", "max_ms", "peak_file_mb")),
    ("12 files in 12 directories", "dirs12", "writer", ("mb_s", "p999_ms")),
    ("6 files in 6 directories", "dirs6", "writer", ("mb_s", "p999_ms")),
]


def simple_table(rows):
    """A reST table; the first row is its head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rule = "  ".join("=" * width for width in widths)
    head, *rest = aligned(rows)
    return "\n".join([rule, head, rule, *rest, rule])


def entry(this, part, said, digits):
    """Ours with its ratio, and theirs with its ratio."""
    ours = f"{number(this and this.median, digits)} {times(part)}".strip()
    return f"{ours} [{number(said[0], digits)} {times(said[1])}".strip() + "]" if said else ours


def table(cells, workload, role, keys):
    """One table."""
    columns = [figure for figure in FIGURES if figure.key in keys]
    rows = [["mode"] + [figure.title for figure in columns]]
    for mode, row in rows_of(cells, workload, role):
        entries = [
            entry(*row[figure.key], source_of(workload, role, mode, figure), figure.digits)
            for figure in columns
        ]
        rows.append([MODES[mode].title, *entries])
    return simple_table(rows)


def reproduce(result):
    """All tables that the runs of a result have cells for."""
    found = []
    for run in result["runs"]:
        for title, workload, role, keys in TABLES:
            cells = [cell for cell in run["cells"] if cell["workload"] == workload]
            if not cells:
                continue
            title = f"{title} ({run['instrument']})"
            what = WORKLOADS[workload].title
            found.append(
                f"{title}\n{'-' * len(title)}\n\n{what[0].upper()}{what[1:]}.\n\n"
                + table(cells, workload, role, keys)
            )
    return "\n\n".join(found)
