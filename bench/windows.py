# SPDX-License-Identifier: GPL-2.0
"""What a guest of bench/count.py executed in one window, as figures, and what is wrong with it."""

import collections
import re

TOP = 25
ENQUEUE = re.compile(
    r"(__bio_complete_in_task|bio_task_enqueue)$|.*\bdontcache::completion\b.*(enqueue|push)"
)
WORKER = re.compile(
    r"bio_complete_work_fn$|.*\bdontcache::completion\b(?!.*(enqueue|push|::init|prepare_cpu))"
)
LIMITER = re.compile(
    r"filemap_dontcache_(writeback|kick_writeback)$|dontcache_write$"
    r"|rust_helper_dontcache_mapping_busy$|.*\bdontcache::writeback\b"
)
HELPER = re.compile(r"rust_helper_(?!dontcache_mapping_busy)")
# Where folios are dropped: C's, ours, and what in a window nearly all that is freed goes through.
DROP = re.compile(
    r"folio_(end_dropbehind|unmap_invalidate)$|folios_remove_clean$|__folio_put$|__page_cache_release$"
    r"|free_one_page$|dontcache_(end_writeback|drop_batch)$|.*\bdontcache::dropping\b"
)
LOCK = re.compile(
    r"_raw_(spin|read|write)_(try)?lock|mutex_(try)?lock|down_(read|write)(_|$)"
    r"|queued_(spin|read|write)_lock_slowpath"
)
# Where a worker of a workqueue calls the function of an item; compilers put the one in the other.
WORK_ITEMS = ("process_one_work", "process_scheduled_works")
# What the enqueue and the worker make others do. The same code in both kernels, so
# these differ if it is called more often.
NEIGHBOURS = (
    "bio_endio",
    "wake_up_process",
    "queue_work_on",
    "__queue_work",
    "kick_pool",
    "kick_pool_pick",
    "try_to_wake_up",
    "__schedule",
    "schedule_timeout",
    "__mod_timer",
    "timer_delete_sync",
    "worker_thread",
    "process_one_work",
    "process_scheduled_works",
)


class Counts:
    """What one window executed."""

    def __init__(self, image, path):
        self.image = image
        self.at = {}
        self.of = collections.Counter()
        self.locked = self.repeated = self.user = self.other = 0
        for line in path.read_text().splitlines():
            where, executed, repeated, flags = line.split()
            executed = int(executed)
            if where == "user":
                self.user = executed
                continue
            if where == "other":
                self.other = executed
                continue
            at = int(where, 16)
            self.at[at] = executed
            self.of[image.function(at)[0]] += executed
            self.repeated += int(repeated)
            self.locked += executed if flags == "l" else 0
        self.total = sum(self.of.values())
        # Executions of calls and tail calls: (caller, offset, callee) -> how often.
        self.calls = collections.Counter()
        # caller -> callees; conditional tail calls too, which may or may not be taken.
        self.callees = collections.defaultdict(set)
        for at, executed in self.at.items():
            caller, offset = image.function(at)
            target, branch = image.target(at), image.branch(at)
            callee, into = image.function(target or branch or 0)
            if into or callee == caller:
                continue
            self.callees[caller].add(callee)
            if target:
                self.calls[caller, offset, callee] += executed

    def entries(self, name):
        return self.at.get(self.image.address.get(name), 0)

    def called(self, caller, callee):
        return sum(n for (f, _, g), n in self.calls.items() if f == caller and g == callee)

    def inlined_enqueue(self):
        """What bio_endio() executed from its own local_irq_save() on: (instructions, times).

        Compilers put __bio_complete_in_task() in line there, where no symbol tells it from the
        rest. The ways past it share its return, hence no instruction counts more often than it
        was entered; with bios that were split (stream) the sum can still be 2 a bio too high.
        """
        start = self.image.address.get("bio_endio", 0)
        executed = sorted(
            at for at in self.at if at >= start and self.image.function(at)[0] == "bio_endio"
        )
        for i, at in enumerate(executed):
            # PUSHF, POP, CLI
            if i >= 2 and self.image.code(at, 1) == b"\xfa":
                i -= 2
            else:
                continue
            times = self.at[at]
            return sum(min(self.at[at], times) for at in executed[i:]), times
        return 0, 0

    def group(self, pattern):
        """The functions of a part of the engine with their instructions.

        The helpers are those of all Rust code: each part has those that it calls.
        """
        part = {f: n for f, n in self.of.items() if pattern.match(f)}
        for helper in [f for f in self.of if HELPER.match(f)]:
            entries = self.entries(helper)
            calls = sum(
                n for (f, _, g), n in self.calls.items() if g == helper and pattern.match(f)
            )
            if entries and calls:
                part[helper] = round(self.of[helper] * calls / entries)
        return part

    def shares(self, share, stop=LOCK):
        """For each function that some of them reach, what share of its calls they are behind.

        `share` has those to start with. Without what `stop` matches, and without calls through
        pointers. A function is taken to do the same for all its callers.
        """
        into = collections.defaultdict(collections.Counter)
        for (caller, _, callee), n in self.calls.items():
            if callee not in share and not stop.match(callee):
                into[callee][caller] += n
        share = dict(share)
        # Deeper than any path through the page cache.
        for _ in range(12):
            for callee, callers in into.items():
                entries = max(self.entries(callee), callers.total())
                if entries:
                    found = sum(n * share.get(f, 0.0) for f, n in callers.items()) / entries
                    if found:
                        share[callee] = found
        return share

    def through_pointers(self, functions):
        """How many calls through pointers some functions executed."""
        return sum(
            n
            for at, n in self.at.items()
            if self.image.function(at)[0] in functions and self.image.calls_pointer(at)
        )

    def deferral(self, runs):
        """For each function that deferring bios is made of, what share of its calls it is behind.

        From bio_endio() to the callback, with what is called on the way: the worker's waking,
        the worker of the workqueue for its share of work items, timers, and switching away
        from it. Not what drops folios, which follows callbacks, nor what the scheduler calls
        through pointers, the same in both kernels for each run.
        """
        share = {f: 1.0 for f in self.of if ENQUEUE.match(f) or WORKER.match(f)}
        # Where compilers put the enqueue; it queues nothing else.
        queued = self.called("bio_endio", "queue_work_on")
        if queued:
            share["queue_work_on"] = queued / self.entries("queue_work_on")
        items = self.through_pointers(WORK_ITEMS)
        if items and self.entries("bio_complete_work_fn"):
            share |= dict.fromkeys(WORK_ITEMS + ("worker_thread",), min(1.0, runs / items))
        sleeps = self.entries("schedule_timeout")
        if sleeps:
            ours = sum(self.called(f, "schedule_timeout") for f in share)
            share["process_timeout"] = ours / sleeps
        return self.shares(share, DROP)


def per(number, of):
    return number / of if of else 0.0


def figures(counts, window):
    """The figures of one window; `window` has what the guest said of it."""
    inlined, times = counts.inlined_enqueue()
    deferred = times + counts.entries("__bio_complete_in_task")
    enqueue = counts.group(ENQUEUE)
    if inlined:
        enqueue["bio_endio, where it defers"] = inlined
    worker = counts.group(WORKER)
    limiter = counts.group(LIMITER)
    runs = window.get("runs_said", counts.entries("bio_complete_work_fn"))
    completed = counts.through_pointers({f for f in counts.of if WORKER.match(f)})
    deferral = counts.deferral(runs)
    dropped = sum(
        counts.called(f, "__filemap_remove_folio")
        for f in ("folio_unmap_invalidate", "folios_remove_clean")
    )
    writes = window["done"]
    locks = {f: counts.entries(f) for f in counts.of if LOCK.match(f)}
    locks = {f: n for f, n in sorted(locks.items(), key=lambda item: -item[1]) if n}
    # The last reference is the one that folio_end_writeback() holds.
    drop_path = counts.shares({f: 1.0 for f in counts.of if DROP.match(f)})
    sites = [
        {
            "site": f"{caller}+{offset:#x}",
            "lock": callee,
            "acquired": n,
            "drop_path": drop_path.get(caller, 0.0),
        }
        for (caller, offset, callee), n in counts.calls.most_common()
        if LOCK.match(callee)
    ]
    hot = [
        {"function": f, "instructions": n, "percent": 100 * per(n, counts.total)}
        for f, n in counts.of.most_common(TOP)
    ]
    return {
        "writes": writes,
        "wanted": window["wanted"],
        "pages_left": window["left"],
        "latency_ns": window["latency_ns"],
        "tasks": window["tasks"],
        "deferred": deferred,
        "completed": completed,
        "runs": runs,
        "switches": counts.entries("__switch_to"),
        "idle": counts.entries("set_next_task_idle"),
        "dropped": dropped,
        "instructions": counts.total,
        "repeated": counts.repeated,
        "user": counts.user,
        "outside_text": counts.other,
        "atomics": counts.locked,
        "per_write": per(counts.total, writes),
        "enqueue_per_bio": per(sum(enqueue.values()), deferred),
        "worker_per_bio": per(sum(worker.values()), deferred),
        "limiter_per_write": per(sum(limiter.values()), writes),
        "path_per_bio": per(
            inlined + sum(counts.of[f] * share for f, share in deferral.items()), deferred
        ),
        "drop_locks_per_folio": per(
            sum(site["acquired"] * site["drop_path"] for site in sites), dropped
        ),
        "enqueue": enqueue,
        "worker": worker,
        "limiter": limiter,
        "neighbours": {
            f: {"entries": counts.entries(f), "instructions": counts.of[f]}
            for f in NEIGHBOURS
            if f in counts.of
        },
        "locks": locks,
        "locks_per_folio": per(sum(locks.values()), dropped),
        "atomics_per_folio": per(counts.locked, dropped),
        "lock_sites": sites,
        "drop_path": {
            f: {"entries": counts.entries(f), "instructions": counts.of[f], "share": drop_path[f]}
            for f in sorted(drop_path, key=lambda f: -counts.of[f] * drop_path[f])
        },
        "hotspots": hot,
        "functions": {f: n for f, n in counts.of.most_common() if n * 10000 > counts.total},
    }


def faults_of(name, window):
    """Why what was counted is not what the window is for."""
    faults = []
    if window["writes"] < window["wanted"]:
        faults.append(f"{window['writes']} writes instead of {window['wanted']}")
    if not window["instructions"]:
        faults.append("no instructions counted")
    if window["instructions"] and not window["user"]:
        faults.append("no instructions of the program that writes")
    if name.endswith("-buffered"):
        if window["deferred"]:
            faults.append(f"{window['deferred']} bios deferred by writes that are not uncached")
        return faults
    if not window["deferred"]:
        faults.append("no bio was deferred")
    elif window["deferred"] < window["writes"] and not name.startswith("stream"):
        faults.append(f"{window['deferred']} bios deferred by {window['writes']} writes of a page")
    if window["completed"] != window["deferred"]:
        faults.append(f"{window['deferred']} bios deferred, {window['completed']} completed")
    if not window["runs"]:
        faults.append("no run of the worker")
    if not window["dropped"]:
        faults.append("no folio was dropped")
    if window["pages_left"]:
        faults.append(f"{window['pages_left']} pages left in the cache")
    if not window["limiter"]:
        faults.append("nothing decided about writeback")
    if not window["enqueue"] or not window["worker"]:
        faults.append("no code of the batcher was found")
    said = window.get("bios_said")
    if said is not None and said != window["deferred"]:
        faults.append(f"{window['deferred']} bios deferred, {said} by the kernel's own counter")
    return faults


def total_of(path):
    """Kernel instructions of a window, without who executed them."""
    return sum(
        int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith("ffff")
    )
