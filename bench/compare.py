# SPDX-License-Identifier: GPL-2.0
"""What got better or worse from one run to another."""

from figures import FIGURES, by_mode, value
from tables import number, roles_of, workloads_of


def changes(old, new, margin):
    """(loss or gain as a part, text) of all figures that moved by more than MARGIN."""
    found = []
    for workload in workloads_of(new):
        if not any(cell["workload"] == workload for cell in old):
            continue
        before, after = by_mode(old, workload), by_mode(new, workload)
        for mode in after:
            if mode not in before:
                continue
            for role in roles_of(new, workload):
                for figure in FIGURES:
                    # What is of the whole cell is said once.
                    if not figure.each_role and role != roles_of(new, workload)[0]:
                        continue
                    a, b = (value(cells[mode], figure, role) for cells in (before, after))
                    if a is None or b is None or abs(a.median - b.median) <= figure.floor:
                        continue
                    # Against nothing, all is infinitely more: what can be resolved stands in.
                    base = max(abs(a.median), figure.floor, 1e-9)
                    # Where chance was measured, what it reaches is no change.
                    measured = a.low != a.high or b.low != b.high
                    if measured and b.low <= a.high and a.low <= b.high:
                        continue
                    more = max(b.median, figure.least) - max(a.median, figure.least)
                    part = figure.better * more / base
                    if abs(part) > margin:
                        name = f"{workload} {mode} {role}: {figure.title}"
                        amounts = f"{number(a.median, figure.digits)} -> {number(b.median, figure.digits)}"
                        found.append((part, f"{name:50} {amounts:24} {part:+.1%}"))
    return sorted(found)


def compare_runs(old, new, margin):
    """Prints the changes of one instrument and model; whether one of them is a failure."""
    print(f"\n{new['instrument']}, device {new['model']}")
    for engine, kernel in new["kernels"].items():
        other = old["kernels"].get(engine)
        print(f"kernel {engine}: " + ("the same" if other == kernel else f"{other} -> {kernel}"))
    found = changes(old["cells"], new["cells"], margin)
    losses = [line for part, line in found if part < 0]
    gains = [line for part, line in reversed(found) if part > 0]
    for title, lines in (("worse", losses), ("better", gains)):
        print(f"{title} by more than {margin:.1%}: {len(lines)}")
        for line in lines:
            print(f"  {line}")
    return bool(losses) and new["instrument"] == "virtual"


def compare_counts(old, new, margin):
    """Prints the changes of what was counted, where less is better; whether there is a loss."""
    print("\ncount")
    before = {(row["window"], row["figure"]): row for row in old["summary"]}
    loss = False
    for row in new["summary"]:
        name = row["window"], row["figure"]
        for kernel in ("c", "rust"):
            a, b = before.get(name, {}).get(kernel), row.get(kernel)
            if a and b is not None and abs(b - a) > margin * a:
                loss |= b > a
                name_of_row = f"{' '.join(name)} {kernel}"
                print(f"  {name_of_row:50} {a:.1f} -> {b:.1f} {(a - b) / a:+.1%}")
    return loss


def compare(old, new, margin):
    """Compares what both have; a loss of what does not vary is worth status 1, bad input 2."""
    earlier = {(run["instrument"], run["model"]): run for run in old["runs"]}
    pairs = [
        (earlier[key], run)
        for run in new["runs"]
        if (key := (run["instrument"], run["model"])) in earlier
    ]
    counted = "count" in old and "count" in new
    if not pairs and not counted:
        print("error: no instrument and device that both have\n  next: compare runs that are alike")
        return 2
    if old["seed"] != new["seed"]:
        print(f"note: seeds differ ({old['seed']}, {new['seed']}), so random offsets do")
    failed = [compare_runs(before, after, margin) for before, after in pairs]
    if counted:
        failed.append(compare_counts(old["count"], new["count"], margin))
    if any(failed):
        print("\nfailed: virtual time and counts do not vary, so a loss is a loss")
        return 1
    return 0
