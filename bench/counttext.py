# SPDX-License-Identifier: GPL-2.0
"""The counts of bench/count.py as tables of text."""

import collections
import statistics

from windows import NEIGHBOURS, TOP, per

WINDOWS = (
    "single",
    "batch",
    "stream",
    "stream128",
    "bdev",
    "batch-buffered",
    "stream-buffered",
)
# In a kernel that has policies; the others are under "kick", which is upstream's. On ext4
# upstream drops nothing, so there is nothing to compare with.
POLICY_WINDOWS = tuple(
    f"{window}-{policy}" for policy in ("lazy", "flush", "paced") for window in WINDOWS[:4]
) + ("ext4",)
# Closed loops, whose processes go on when their write is done: with 1 to 32 of them on a device
# of 0.1 ms, beside a faster device, fdatasync() beside a stream, and in a cgroup of 12 MiB.
LOOPS = (*(f"depth{depth}" for depth in (1, 2, 4, 8, 16, 32)), "devices", "fdatasync", "cgroup")


def row(label, values, form="{:>12.1f}"):
    cells = "".join(" " * 12 if value is None else form.format(value) for value in values)
    ratio = ""
    if len(values) == 2 and None not in values and values[0]:
        ratio = f"{values[1] / values[0]:>10.3f}"
    return f"  {label:<58}{cells}{ratio}"


def report(result):
    """The tables, as text."""
    kernels = result["kernels"]
    order = [kernel for kernel in ("c", "rust") if kernel in kernels]
    head = f"{'':<60}" + "".join(f"{kernel:>12}" for kernel in order) + f"{'rust/c':>10}"
    lines = []

    def values(name, get):
        return [get(kernels[k][name]) if kernels[k].get(name) else None for k in order]

    lines += ["", "instructions per deferred bio, from bio_endio() to its callback", head]
    for name in ("single", "batch", "stream", "stream128", "bdev", "ext4"):
        lines.append(name)
        for key in ("deferred", "runs"):
            lines.append(row(key, values(name, lambda w, key=key: w[key]), "{:>12d}"))
        a_run = values(name, lambda w: per(w["deferred"], w["runs"]))
        lines.append(row("bios a run", a_run))
        switches = values(name, lambda w: per(w["switches"], w["writes"]))
        lines.append(row("context switches per write", switches, "{:>12.3f}"))
        lines.append(row("enqueue", values(name, lambda w: w["enqueue_per_bio"])))
        lines.append(row("worker", values(name, lambda w: w["worker_per_bio"])))
        both = values(name, lambda w: w["enqueue_per_bio"] + w["worker_per_bio"])
        lines.append(row("both", both))
        path = values(name, lambda w: w["path_per_bio"])
        lines.append(row("all from bio_endio() to the callback", path))
        if name in ("single", "batch"):
            for f in NEIGHBOURS:

                def cost(w, f=f):
                    return per(w["neighbours"].get(f, {}).get("instructions", 0), w["deferred"])

                if any(values(name, cost)):
                    lines.append(row(f"  {f}, per deferred bio", values(name, cost)))

    lines += [
        "",
        "kernel instructions per write, of all that runs; the median of seeds and +- half their range",
        head,
    ]
    for name in WINDOWS + POLICY_WINDOWS:
        found = values(name, lambda w: statistics.median(w["by_seed"]))
        spread = values(name, lambda w: per(max(w["by_seed"]) - min(w["by_seed"]), w["per_write"]))
        if any(found):
            lines.append(
                row(name, found)
                + "  +- "
                + ", ".join(f"{50 * s:.2f} %" for s in spread if s is not None)
            )
    lines.append("  (and of string instructions, counted once above, elements per write)")
    for name in WINDOWS:
        lines.append(row(name, values(name, lambda w: per(w["repeated"], w["writes"]))))

    lines += ["", "closed loops", head]
    for name in LOOPS:
        found = values(name, lambda w: w["per_write"])
        if not any(found):
            continue
        lines.append(name)
        lines.append(row("kernel instructions per write", found))
        switches = values(name, lambda w: per(w["switches"], w["writes"]))
        lines.append(row("context switches per write", switches, "{:>12.3f}"))
        lines.append(row("bios a run", values(name, lambda w: per(w["deferred"], w["runs"]))))
        for key in ("mean", "p99", "max"):

            def microseconds(w, key=key):
                return w["latency_ns"][key] / 1000

            lines.append(row(f"{key}, us", values(name, microseconds)))

    lines += ["", "the limiter: instructions per uncached write", head]
    for name in ("single", "batch", "stream", "bdev", *POLICY_WINDOWS):
        found = values(name, lambda w: w["limiter_per_write"])
        if any(found):
            lines.append(row(name, found))

    lines += ["", "lock acquisitions per dropped folio", head]
    for name in ("single", "batch", "stream", "stream128", "bdev", "ext4"):
        lines.append(name)
        lines.append(row("dropped", values(name, lambda w: w["dropped"]), "{:>12d}"))
        lines.append(row("all locks", values(name, lambda w: w["locks_per_folio"]), "{:>12.3f}"))
        on_drop = values(name, lambda w: w["drop_locks_per_folio"])
        lines.append(row("of them to drop it", on_drop, "{:>12.3f}"))
        every = sorted({f for k in order for f in kernels[k].get(name, {}).get("locks", {})})
        for f in every:

            def taken(w, f=f):
                return per(w["locks"].get(f, 0), w["dropped"])

            if max(filter(None, values(name, taken)), default=0) >= 0.01:
                lines.append(row(f"  {f}", values(name, taken), "{:>12.3f}"))
        atomics = values(name, lambda w: w["atomics_per_folio"])
        lines.append(row("locked instructions", atomics, "{:>12.3f}"))

    for name in ("batch", "stream", "bdev"):
        lines += [
            "",
            f"{name}: where locks are taken, per dropped folio; * mostly on the way to drop it",
            head,
        ]

        def sites(w):
            found = collections.Counter()
            for site in w["lock_sites"]:
                mark = "*" if site["drop_path"] > 0.5 else " "
                function = site["site"].split("+")[0]
                found[f"{mark} {function}: {site['lock']}"] += site["acquired"]
            return found

        taken = {k: sites(kernels[k][name]) for k in order if kernels[k].get(name)}
        every = sum(taken.values(), collections.Counter())
        for site, n in every.most_common():
            found = [
                per(taken[k][site], kernels[k][name]["dropped"]) if k in taken else None
                for k in order
            ]
            if max(filter(None, found), default=0) >= 0.05:
                lines.append(row(site, found, "{:>12.3f}"))

    for kernel in order:
        for name in ("batch", "stream"):
            window = kernels[kernel].get(name)
            if not window:
                continue
            lines += ["", f"{kernel}, {name}: hot spots"]
            for spot in window["hotspots"]:
                each = per(spot["instructions"], window["writes"])
                lines.append(f"  {spot['percent']:>6.2f} %{each:>12.1f}  {spot['function']}")
        window = kernels[kernel].get("batch")
        for part, unit in (("enqueue", "deferred"), ("worker", "deferred"), ("limiter", "writes")):
            if not window:
                continue
            lines += ["", f"{kernel}, batch: {part}"]
            for f, n in sorted(window[part].items(), key=lambda item: -item[1]):
                lines.append(f"  {per(n, window[unit]):>8.2f}  {f}")

    for name in ("batch", "stream"):
        lines += ["", f"{name}: what an uncached write adds to a buffered one, instructions", head]

        def added(k, name=name):
            if name not in kernels[k] or f"{name}-buffered" not in kernels[k]:
                return {}
            uncached, buffered = kernels[k][name], kernels[k][f"{name}-buffered"]
            functions = {"all": 0, **uncached["functions"], **buffered["functions"]}
            of = {
                f: per(uncached["functions"].get(f, 0), uncached["writes"])
                - per(buffered["functions"].get(f, 0), buffered["writes"])
                for f in functions
            }
            of["all"] = uncached["per_write"] - buffered["per_write"]
            return of

        more = {k: added(k) for k in order}
        every = sorted(
            set().union(*more.values()), key=lambda f: -max(of.get(f, 0) for of in more.values())
        )
        for f in every[:TOP]:
            lines.append(row(f, [more[k].get(f) for k in order]))

    lines += ["", "bytes", head]
    for section in (".text", ".rodata", ".data", ".data..percpu", ".bss", ".init.text"):
        found = [result["size"][k]["sections"].get(section, 0) for k in order]
        lines.append(row(f"kernel {section}", found, "{:>12d}"))
    every = sorted({section for k in order for section in result["size"][k]["engine"]})
    for section in every:
        found = [result["size"][k]["engine"].get(section, 0) for k in order]
        lines.append(row(f"engine {section}", found, "{:>12d}"))
    for kernel in order:
        lines.append(f"  symbols of the engine, {kernel}")
        for name, symbol in result["size"][kernel]["symbols"].items():
            lines.append(f"    {symbol['size']:>6d}  {symbol['section']:<14}{name}")
    return "\n".join(lines[1:])
