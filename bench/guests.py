# SPDX-License-Identifier: GPL-2.0
"""Boots a UML guest for one cell and turns what it left into figures."""

import collections
import dataclasses
import fractions
import json
import pathlib
import re
import shlex
import shutil
import subprocess

from models import DEVICE_MIB, DIRTY_MIB, FILE_MIB, MEMORY_MIB, MODELS, MODES, PAGE
from workloads import WORKLOADS, files, job_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECTOR = 512
SECONDS = 240
VARIATION_KIB = 256


@dataclasses.dataclass(frozen=True)
class Cell:
    """One measurement: what is run, on what, and the how-manieth time.

    A repetition in virtual time is the same again. A variation has some pages of memory
    more, which no figure should depend on; where one does, that is how far chance goes.
    """

    instrument: str
    model: str
    workload: str
    mode: str
    repetition: int = 0
    variation: int = 0

    def __str__(self):
        number = f"{self.repetition}.{self.variation}"
        return f"{self.instrument} {self.model} {self.workload} {self.mode} {number}"

    @property
    def path(self):
        """A name for its directory."""
        return str(self).replace(" ", "-")


def name_of(figures):
    """What a cell has in common with its repetitions."""
    return figures["workload"], figures["mode"], figures["variation"]


class CellError(RuntimeError):
    """A guest that did not do what it was told."""


def prepare(cell, scratch, fio, seed):
    """Writes what bench/cell.sh wants to find in its scratch directory."""
    workload = WORKLOADS[cell.workload]
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    shutil.copy(fio, scratch / "fio")
    env = {
        "MODEL": MODELS[cell.model].attributes(),
        "DEVICE_MIB": DEVICE_MIB,
        "FILE_MIB": FILE_MIB,
        "DEVICE": "/dev/nullb0" if workload.device else "",
        "AGCOUNT": workload.agcount,
        "MEMCG": workload.memcg,
        # Whether all of fio is in it.
        "JOIN": int(workload.memcg > 0 and not workload.members),
        "DIRTY": DIRTY_MIB,
        "TEMPFILE": workload.tempfile,
        "SYNC_MS": workload.syncs,
        "WARM": int(workload.warm),
        # Costs no time where CPU work costs none.
        "TRACE": int(cell.instrument == "virtual"),
    }
    lines = (f"{key}={shlex.quote(str(value))}" for key, value in env.items())
    (scratch / "env").write_text("\n".join(lines) + "\n")
    (scratch / "job.fio").write_text(job_file(cell.workload, MODES[cell.mode], seed))
    every = [path for role in workload.roles for path in files(cell.workload, role)]
    (scratch / "files").write_text("".join(f"{path}\n" for path in every))
    (scratch / "prewrite").write_text(
        "".join(
            f"{path} {workload.prewrite[role.name]}\n"
            for role in workload.roles
            if role.name in workload.prewrite
            for path in files(cell.workload, role)
        )
    )


def run(cell, kernels, fio, out, seed):
    """Runs a cell and returns its figures, or raises CellError."""
    scratch = out / "cells" / cell.path
    mode = MODES[cell.mode]
    prepare(cell, scratch, fio, seed)
    kernel = kernels[cell.instrument, mode.kernel]
    command = [ROOT / "guest/uml.sh", kernel, scratch, str(SECONDS), ROOT / "bench/cell.sh"]
    command.append(f"mem={MEMORY_MIB * 1024 + cell.variation * VARIATION_KIB}K")
    # Where a process is mapped decides how many pages of tables it takes, and so when reclaim begins.
    command += ["norandmaps", "kunit.enable=0"]
    command.append("time-travel=inf-cpu" if cell.instrument == "virtual" else "ncpus=2")
    if mode.policy:
        command.append(f"sysctl.vm.dontcache_policy={mode.policy}")
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        log = scratch / "log"
        tail = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        raise CellError(f"{cell} failed (status {done.returncode})\n{done.stderr}{tail}")
    try:
        figures = collect(cell, scratch)
    except (KeyError, ValueError, IndexError, OSError) as error:
        raise CellError(f"{cell} left something unreadable: {error!r}") from error
    # A large run would leave gigabytes.
    for name in ("fio", "io", "trace"):
        (scratch / name).unlink(missing_ok=True)
    return figures


def keyed(path):
    """A file of names and numbers."""
    return {key: int(value) for key, value in map(str.split, path.read_text().splitlines())}


def snapshot(scratch, name):
    """The counters that bench/cell.sh saw at one time."""
    where = scratch / f"snap.{name}"
    vm = keyed(where / "vmstat")
    disk = [int(field) for field in (where / "disk").read_text().split()]
    cpu = [int(field) for field in (where / "stat").read_text().split("\n")[0].split()[1:]]
    switches = re.search(r"^ctxt (\d+)$", (where / "stat").read_text(), re.MULTILINE)
    return {
        "written_pages": vm["nr_written"],
        "device_read": disk[2] * SECTOR,
        "device_written": disk[6] * SECTOR,
        "device_reads": disk[0],
        "device_writes": disk[4],
        "device_busy_ms": disk[9],
        # User, nice, system, irq and softirq, in hundredths of a second.
        "cpu_ms": 10 * (cpu[0] + cpu[1] + cpu[2] + cpu[5] + cpu[6]),
        "switches": int(switches.group(1)),
        **{k: v for k, v in vm.items() if k.startswith(("dontcache_", "bio_task_"))},
    }


def residency(scratch, name):
    """How many pages the files of all jobs have, and how many of them are cached."""
    rows = [line.split() for line in (scratch / f"resident.{name}").read_text().splitlines()]
    return {
        "pages": sum((int(size) + PAGE - 1) // PAGE for _, size, _ in rows),
        "cached": sum(int(cached) for _, _, cached in rows),
    }


def percentiles(histograms):
    """The percentiles of all jobs, in ns, as fio makes those of one: off the bins it counts in."""
    # Who was starved has none.
    histograms = [histogram for histogram in histograms if "bins" in histogram]
    bins = collections.Counter()
    for histogram in histograms:
        bins.update({int(ns): count for ns, count in histogram["bins"].items()})
    found = {}
    below = 0
    left = sorted(map(float, histograms[0]["percentile"]))
    for ns, count in sorted(bins.items()):
        below += count
        # Exactly: in doubles, 99.9 per cent of 1000 are 999, and fio's long ones are a bit more.
        while left and below >= fractions.Fraction(left[0]) / 100 * bins.total():
            found[left.pop(0)] = ns
    return found


def latency(histograms):
    """What fio says of a latency of some jobs, in ms."""
    points = {percent: ns / 1e6 for percent, ns in percentiles(histograms).items()}
    return {
        "p50_ms": points[50],
        "p99_ms": points[99],
        "p999_ms": points[99.9],
        "max_ms": max(histogram["max"] for histogram in histograms) / 1e6,
        "distribution": sorted(points.items()),
    }


def role_figures(role, jobs):
    """The figures of a role, out of fio's of each of its jobs."""
    jobs = [job for job in jobs if job["jobname"] == role.name]
    for job in jobs:
        if job["error"]:
            raise ValueError(f"fio says error {job['error']} of {role.name}")
    each = [job["write" if role.writes else "read"] for job in jobs]
    moved = sum(io["io_bytes"] for io in each)
    longest = max(io["runtime"] for io in each)
    return {
        "mb_s": 1000 * moved // max(longest, 1) / 1e6,
        "iops": round(1000 * sum(io["total_ios"] for io in each) / max(longest, 1), 6),
        "bytes": moved,
        "seconds": longest / 1000,
        "jobs": [[io["io_bytes"], io["runtime"] / 1000] for io in each],
        **latency(
            [job["sync"]["lat_ns"] for job in jobs] if role.syncs else [io["lat_ns"] for io in each]
        ),
    }


def slowest(workload, roles):
    """The slowest writer as a part of the fastest, of several that write alike, or None.

    Who writes for a time is measured by the bytes, since one that was starved begins to count
    late; who writes so many bytes by the bytes in a second.
    """
    writers = [role for role in workload.roles if role.writes]
    if len({role.options["bs"] for role in writers}) != 1:
        return None
    rates = [
        moved / (1 if "time_based" in role.options else max(seconds, 0.001))
        for role in writers
        for moved, seconds in roles[role.name]["jobs"]
    ]
    return min(rates) / max(rates) if len(rates) > 1 and max(rates) else None


def sync_figures(scratch):
    """The latencies of sync(2), as those of a role."""
    times = sorted(int(line) / 1e6 for line in (scratch / "syncs.ns").read_text().split())

    def at(percent):
        return times[min(len(times) - 1, int(len(times) * percent / 100))]

    return {
        "mb_s": None,
        "iops": None,
        "bytes": 0,
        "p50_ms": at(50),
        "p99_ms": at(99),
        "p999_ms": at(99.9),
        "max_ms": times[-1],
        "distribution": [[percent, at(percent)] for percent in range(0, 100, 5)],
    }


def by_reason(scratch):
    """Pages that the flusher wrote, by the reason it was given."""
    stats = (scratch / "trace.stats").read_text()
    if any(int(lost) for lost in re.findall(r"^overrun: (\d+)$", stats, re.MULTILINE)):
        raise ValueError("the trace buffer was too small")
    event = re.compile(r"^\s*(\S+)\s+\[.*?: (writeback_\w+): .*?(?:reason=(\w+)|wrote=(\d+))")
    reason = {}
    pages = {}
    for line in (scratch / "trace").read_text(errors="replace").splitlines():
        found = event.match(line)
        if not found:
            continue
        task, name, why, wrote = found.groups()
        if name == "writeback_start":
            reason[task] = why
        elif name == "writeback_written":
            reason.pop(task, None)
        elif int(wrote) > 0 and task in reason:
            pages[reason[task]] = pages.get(reason[task], 0) + int(wrote)
    return pages


def collect(cell, scratch):
    """All figures of a cell that ran."""
    workload = WORKLOADS[cell.workload]
    jobs = json.loads((scratch / "fio.json").read_text())["jobs"]
    snaps = {name: snapshot(scratch, name) for name in ("before", "after", "later", "synced")}
    samples = [
        [int(number) for number in line.split()]
        for line in (scratch / "samples").read_text().splitlines()
        if len(line.split()) == 4
    ]
    opened = [line.split() for line in (scratch / "open.files").read_text().splitlines()]
    roles = {role.name: role_figures(role, jobs) for role in workload.roles}
    if workload.syncs:
        roles["sync(2)"] = sync_figures(scratch)
    return {
        **dataclasses.asdict(cell),
        "room_mib": int((scratch / "room").read_text()),
        "roles": roles,
        "slowest": slowest(workload, roles),
        "peak_dirty_mb": max(dirty + wb for dirty, wb, _, _ in samples) * PAGE / 1e6,
        "peak_file_mb": max(pages for _, _, pages, _ in samples) * PAGE / 1e6,
        "spent": {
            name: {key: snaps[name][key] - snaps["before"][key] for key in snaps["before"]}
            for name in ("after", "later", "synced")
        },
        "resident": {name: residency(scratch, name) for name in ("later", "synced")},
        "by_reason": by_reason(scratch) if (scratch / "trace").exists() else None,
        # Dirty, writeback and file pages, and ms since the first.
        "samples": samples,
        "opened": {path: flags for path, flags in opened},
    }
