# SPDX-License-Identifier: GPL-2.0
"""What makes a cell something else than it says: a list of sentences, best empty."""

from models import FILE_MIB, MODELS, MODES
from workloads import WORKLOADS, files

O_DIRECT = 0o40000
# What readers must miss of what they read. Less is what a filesystem reads for itself.
MISSED = 0.02
# Of what the device can do with what is asked of it at a time, what direct I/O must reach:
# else something else is the bottleneck.
BOTTLENECK = 0.5


def requests(role, model):
    """Requests to the device for one I/O of a role."""
    block = {"1M": 1024, "128k": 128, "64k": 64, "4k": 4}[role.options["bs"]]
    return -(-block // model.request_kib)


def reached(cell, role, model):
    """How much of what the device can do direct I/O of a role took."""
    return cell["roles"][role.name]["iops"] * requests(role, model) / model.iops


def offered(role, model):
    """How many requests a role can have in flight, as a part of what the device takes."""
    depth = role.options.get("iodepth", 1) * role.jobs * requests(role, model)
    return min(1, depth / model.depth)


def faults(cell):
    """The faults of one cell by itself."""
    workload = WORKLOADS[cell["workload"]]
    mode = MODES[cell["mode"]]
    model = MODELS[cell["model"]]
    spent = cell["spent"]["synced"]
    found = []

    if 2 * cell["room_mib"] > FILE_MIB:
        found.append(f"{FILE_MIB} MiB are not twice the {cell['room_mib']} MiB of room")

    for role in workload.roles:
        direct = role.follows and mode.fio["direct"] == 1
        paths = files(cell["workload"], role)
        # A job may be over before anyone looks, but not one that lasts.
        seen = [path for path in paths if path in cell["opened"]]
        if workload.bound and len(seen) < len(paths):
            found.append(f"{role.name}: {len(seen)} of {len(paths)} files open")
        flags = [int(cell["opened"][path], 8) for path in seen]
        if any(bool(flag & O_DIRECT) != direct for flag in flags):
            found.append(f"{role.name}: {'no ' if direct else ''}O_DIRECT")
        if cell["roles"][role.name]["bytes"] == 0:
            found.append(f"{role.name} did nothing")

    # They end together, but one that was starved began to count late: its bytes are of the
    # longest window too.
    writers = [cell["roles"][role.name] for role in workload.roles if role.writes]
    longest = max((figures["seconds"] for figures in writers), default=1)
    total = sum(figures["bytes"] for figures in writers) / longest / 1e6
    for role in workload.roles:
        if role.follows and mode.fio["direct"] == 1 and reached(cell, role, model) > 1.01:
            found.append(f"{role.name}: {reached(cell, role, model):.0%} of the device")
        if not role.writes and spent["device_read"] < MISSED * cell["roles"][role.name]["bytes"]:
            found.append(f"{role.name} never missed")
    # What was left in memory is not throughput; a part in a hundred is the edges of the run.
    if workload.bound and total > 1.01 * model.mb_s:
        found.append(f"{total:.0f} MB/s written, the device can do {model.mb_s:.0f}")

    asked = sum(cell["roles"][role.name]["bytes"] for role in workload.roles if role.writes)
    timed = any("time_based" in role.options for role in workload.roles)
    if workload.bound and not timed and spent["device_written"] < asked:
        found.append(f"{spent['device_written']} bytes reached the device of {asked}")

    if mode.kernel == "rust":
        decided = sum(spent[f"dontcache_{name}"] for name in ("start", "skip", "kick"))
        wanted = mode.uncached and any(role.writes and role.follows for role in workload.roles)
        if wanted != (decided > 0):
            found.append(f"{decided} decisions after uncached writes")
    elif "dontcache_start" in spent:
        found.append("the C kernel has counters of Rust")
    return found


def faults_among(cells):
    """Faults that only cells together show, as (cell, sentence)."""
    found = []
    for cell in cells:
        workload = WORKLOADS[cell["workload"]]
        model = MODELS[cell["model"]]
        if MODES[cell["mode"]].fio["direct"] == 0 or not workload.bound:
            continue
        # Who shares the device may get little of it; what all take together counts.
        parts = [reached(cell, role, model) for role in workload.roles if role.follows]
        others = [cell["roles"][role.name]["mb_s"] for role in workload.roles if not role.follows]
        part = sum(parts) + sum(others) / model.mb_s
        if part < BOTTLENECK * min(1, sum(offered(role, model) for role in workload.roles)):
            found.append((cell, f"the device is busy with {part:.0%} of what it can do"))
    return found
