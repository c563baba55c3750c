# SPDX-License-Identifier: GPL-2.0
"""A run for people: text on the terminal, plots, and one page that holds all of it."""

import html

import count
from models import MODES
from plots import plot
from tables import (
    header,
    number,
    pair_lines,
    reason_lines,
    roles_of,
    rows_of,
    source_of,
    summary,
    text,
    times,
    used,
    workloads_of,
)
from workloads import WORKLOADS

HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>dontcache lab</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 75rem; padding: 0 1rem;
       color: #222; background: #fff }
section { border-top: 1px solid #ddd; padding: .5rem 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px }
th, td { padding: .2rem .55rem; text-align: right; white-space: nowrap; vertical-align: top }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff }
tr + tr td { border-top: 1px solid #eee }
small { display: block; color: #777 }
.words th, .words td { text-align: left }
.best { font-weight: 600 }
.fault { color: #b03a2e }
svg { max-width: 100%; height: auto }
nav a { margin-right: .8em; white-space: nowrap }
</style>
<h1>dontcache lab</h1>
"""


def cell_html(this, part, said, figure):
    """A figure with its ratio, its spread, and what the source document had."""
    if this is None:
        return "<td>-</td>"
    best = part is not None and (part >= 1) == (figure.better > 0)
    lines = [
        f'<span class="best">{number(this.median, figure.digits)}</span>'
        if best
        else number(this.median, figure.digits)
    ]
    if part is not None:
        lines.append(f"<small>{times(part)}</small>")
    if this.low != this.high:
        low, high = number(this.low, figure.digits), number(this.high, figure.digits)
        lines.append(f"<small>{low} to {high}</small>")
    if said:
        lines.append(f"<small>source {number(said[0], figure.digits)} {times(said[1])}</small>")
    return f"<td>{''.join(lines)}</td>"


def table_html(cells, workload, role):
    """The table of a role."""
    rows = rows_of(cells, workload, role)
    columns = used(rows, role == roles_of(cells, workload)[0])
    lines = [f"<tr><th>{role}</th>" + "".join(f"<th>{f.title}</th>" for f in columns) + "</tr>"]
    for mode, row in rows:
        line = f"<tr><td>{MODES[mode].title}</td>"
        for figure in columns:
            line += cell_html(*row[figure.key], source_of(workload, role, mode, figure), figure)
        lines.append(line + "</tr>")
    return '<div class="wide"><table>' + "\n".join(lines) + "</table></div>"


def reasons_html(cells):
    """Who wrote the pages of each mode."""
    lines = [html.escape(line) for line in reason_lines(cells)]
    return f"<p><small>{'<br>'.join(lines)}</small></p>" if lines else ""


def section_html(cells, workload, svg, anchor):
    """One workload."""
    mine = [
        cell
        for cell in cells
        if cell["workload"] == workload and not cell["repetition"] and not cell["variation"]
    ]
    lines = [f'<section id="{anchor}"><h2>{html.escape(WORKLOADS[workload].title)}</h2>']
    lines += [table_html(cells, workload, role) for role in roles_of(cells, workload)]
    lines += [f"<p>{html.escape(line)}</p>" for line in pair_lines(cells, workload)]
    for cell in cells:
        if cell["workload"] != workload:
            continue
        lines += [f'<p class="fault">{cell["mode"]}: {html.escape(f)}</p>' for f in cell["faults"]]
    lines.append(reasons_html(mine))
    # What precedes the element is for a file of its own.
    lines.append(svg[svg.index("<svg") :])
    return "\n".join(lines) + "</section>"


def summary_html(cells):
    """Who is best at what."""
    head, *rows = summary(cells)
    lines = ["<tr>" + "".join(f"<th>{text}</th>" for text in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{text}</td>" for text in row) + "</tr>" for row in rows]
    return '<div class="wide"><table class="words">' + "\n".join(lines) + "</table></div>"


def report(result, out):
    """Prints the tables and leaves index.html and the plots in OUT."""
    page = [HEAD, f"<p>Seed {result['seed']}, fio {result['fio']}.</p>"]
    for run in result["runs"]:
        cells = run["cells"]
        place = f"{run['instrument']}-{run['model']}"
        print("\n" + text(run))
        page.append(f"<h1>{place}</h1><p>{'<br>'.join(map(html.escape, header(run)))}</p><nav>")
        page += [f'<a href="#{place}-{name}">{name}</a>' for name in workloads_of(cells)]
        page.append("</nav>" + summary_html(cells))
        for name in workloads_of(cells):
            svg = plot(cells, name, out / f"{place}-{name}")
            page.append(section_html(cells, name, svg, f"{place}-{name}"))
    if "count" in result:
        table = count.report(result["count"])
        print("\n" + table)
        page.append(f'<h1>count</h1><div class="wide"><pre>{html.escape(table)}</pre></div>')
    (out / "index.html").write_text("\n".join(page) + "</html>\n")
