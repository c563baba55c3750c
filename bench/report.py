# SPDX-License-Identifier: GPL-2.0
"""A run for people: text on the terminal, plots, and one page that holds all of it."""

import html
import textwrap

import count
from picture import picture, picture_file, picture_text, sentence
from plots import plot
from tables import (
    comparable,
    engines_differ,
    header,
    narrow_text,
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
from words import NEXT, mode_title, modes_in, place, workload_title

HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Uncached I/O</title>
<style>
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --line: #ddd; --pale: #666; --bad: #b03a2e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --paper: #161616; --line: #444; --pale: #aaa; --bad: #ff8a75 }
}
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 75rem; padding: 0 1rem;
       color: var(--ink); background: var(--paper); overflow-wrap: anywhere }
section { border-top: 1px solid var(--line); padding: .5rem 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px }
th, td { padding: .2rem .55rem; text-align: right; white-space: nowrap; vertical-align: top }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper) }
tr + tr td { border-top: 1px solid var(--line) }
small { display: block; color: var(--pale) }
.words th, .words td { text-align: left }
.best { font-weight: 600 }
.fault { color: var(--bad) }
svg { max-width: 100%; height: auto }
/* Of matplotlib, which writes black on white. */
section svg { background: #fff }
pre { overflow-x: auto }
.panels { display: flex; flex-wrap: wrap; gap: 1.5rem 2rem; margin: 1.2rem 0 }
.panel { flex: 0 1 360px }
.lead { font-size: 17px; max-width: 52rem }
h1 { font-size: 1.6rem; line-height: 1.2 }
nav a { margin-right: .8em; white-space: nowrap }
</style>
<h1>What uncached I/O gives</h1>
"""
# What it is for, to somebody who has not heard of it.
PURPOSE = (
    "RWF_DONTCACHE is buffered I/O that leaves nothing behind in the page cache. Who writes or"
    " reads much once, as backups, logs and file servers do, leaves memory to others, does not make"
    " them wait, and needs no aligned buffers for it, as direct I/O does."
)


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
    among = modes_in(cells)
    lines = [f"<tr><th>{role}</th>" + "".join(f"<th>{f.title}</th>" for f in columns) + "</tr>"]
    for mode, row in rows:
        line = f"<tr><td>{mode_title(mode, among)}</td>"
        for figure in columns:
            said = source_of(workload, role, mode, figure) if comparable(cells) else None
            line += cell_html(*row[figure.key], said, figure)
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
    lines = [f'<section id="{anchor}"><h3>{html.escape(workload_title(workload))}</h3>']
    lines += [table_html(cells, workload, role) for role in roles_of(cells, workload)]
    lines += [f"<p>{html.escape(line)}</p>" for line in pair_lines(cells, workload)]
    for cell in cells:
        if cell["workload"] != workload:
            continue
        title = mode_title(cell["mode"], modes_in(cells))
        said = cell["faults"] + cell.get("cautions", [])
        lines += [f'<p class="fault">{title}: {html.escape(f)}</p>' for f in said]
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


def lead(result, out):
    """What a page begins with, of the run that has most to say; nothing if none has anything."""
    cells = [run["cells"] for run in result["runs"] if sentence(run["cells"])]
    if not cells:
        return []
    (out / "picture.svg").write_text(picture_file(cells[0]))
    return [
        f'<p class="lead">{html.escape(PURPOSE)}</p>',
        f'<p class="lead">{html.escape(sentence(cells[0]))}</p>',
        f'<div class="panels">{picture(cells[0])}</div>',
    ]


def report(result, out, narrow=False):
    """Prints the tables, NARROW ones or all, and leaves index.html and the plots in OUT."""
    page = [HEAD, *lead(result, out)]
    for run in result["runs"]:
        cells = run["cells"]
        anchor = f"{run['instrument']}-{run['model']}"
        print("\n" + (narrow_text(run) if narrow else text(run)))
        if sentence(cells):
            print("\n".join(picture_text(cells)))
            print("\n" + "\n".join(textwrap.wrap(sentence(cells), 78)))
        page.append(
            f"<h2>{place(run)}</h2><p><small>{'<br>'.join(map(html.escape, header(run)))}</small></p><nav>"
        )
        page += [
            f'<a href="#{anchor}-{name}">{workload_title(name)}</a>' for name in workloads_of(cells)
        ]
        page.append("</nav>" + (summary_html(cells) if engines_differ(run) else ""))
        for name in workloads_of(cells):
            svg = plot(cells, name, out / f"{anchor}-{name}")
            page.append(section_html(cells, name, svg, f"{anchor}-{name}"))
    if "count" in result:
        table = count.report(result["count"])
        print("\n" + table)
        page.append(
            f'<h2>Instructions counted</h2><div class="wide"><pre>{html.escape(table)}</pre></div>'
        )
    page.append("<h2>Try next</h2><dl>")
    page += [
        f"<dt><code>{html.escape(command)}</code></dt><dd>{html.escape(what)}</dd>"
        for command, what in NEXT
    ]
    page.append("</dl>")
    page.append(f"<p><small>Seed {result['seed']}, fio {result['fio']}.</small></p>")
    (out / "index.html").write_text("\n".join(page) + "</html>\n")
