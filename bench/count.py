#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts instructions instead of time: what an uncached write costs in C and in Rust.

Boots both kernels in QEMU, which emulates one CPU whose clock is the number of
instructions it has executed, and lets bench/hotspots.c count each instruction
between two marks of the guest (bench/count.sh). Prints tables, leaves
count.json, and ends with status 1 if a window did not count what it was for.

The guest has no device of this machine's but a serial line to write to: no
file system shared with it, no disk, no network. Its files come in an initramfs.
Whatever answers at a time of its own choosing moves the guest's ticks, its
random numbers and its free lists, and totals by 0.5 %; without it two boots are
equal to the instruction, on a busy machine as well (--repeat). What is left is
chance that is the same each time, and that a change anywhere in the kernel rolls
anew: other SEEDS show how far totals of one kernel lie apart, so that no less is
taken for a difference of two.
"""

import argparse
import bisect
import collections
import concurrent.futures
import json
import os
import queue
import re
import shutil
import statistics
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WINDOWS = ("single", "batch", "stream", "bdev", "batch-buffered", "stream-buffered")
# In a kernel that has policies; the others are under "kick", which is upstream's.
POLICY_WINDOWS = tuple(
    f"{window}-{policy}" for policy in ("lazy", "flush") for window in WINDOWS[:3]
)
SEEDS = (1, 2, 3)
FIGURES = (
    "enqueue_per_bio",
    "worker_per_bio",
    "per_write",
    "limiter_per_write",
    "locks_per_folio",
    "atomics_per_folio",
)
# Seconds, on a machine that is busy with something else.
TIMEOUT = 600
TOP = 25

PROGRAMS = ("sh", "mount", "mkdir", "cat", "dd", "sync", "mkfs.xfs")
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
ARGUMENTS = (
    "console=ttyS0 quiet panic=-1 null_blk.nr_devices=0 kunit.enable=0"
    # Addresses as linked, and the same in every process.
    " nokaslr norandmaps"
    # One CPU would have the lock prefixes taken out of the code.
    " noreplace-smp"
    # For count.sh: each seed starts its windows at another place between two ticks.
    " offset={offset}"
)

ENQUEUE = re.compile(
    r"(__bio_complete_in_task|bio_task_enqueue)$|.*\bdontcache::(bio|batch)\b.*(enqueue|push)"
)
WORKER = re.compile(
    r"bio_complete_work_fn$"
    r"|.*\bdontcache::(?!(limiter|mapping)\b)(?!.*(enqueue|push|::init|alloc_wq))"
)
LIMITER = re.compile(
    r"filemap_dontcache_(write|kick_writeback)$|dontcache_(limit|count)$"
    r"|rust_helper_dontcache_|.*\bdontcache::(limiter|mapping)\b"
)
HELPER = re.compile(r"rust_helper_(?!dontcache_)")
WORK_FN = re.compile(r"bio_complete_work_fn$|.*\bBatch>::work_fn$")
ENGINE = re.compile(
    r"(__)?bio_complete_(in_task|batch|work_fn|wq)|bio_task_(?!test|context|hotunplug|suite|cases)"
    r"|(filemap_)?dontcache_|rust_helper_dontcache_|.*\bkernel::dontcache\b(?!.*\btests\b)"
)
LOCK = re.compile(
    r"_raw_(spin|read|write)_(try)?lock|mutex_(try)?lock|down_(read|write)(_|$)"
    r"|queued_(spin|read|write)_lock_slowpath"
)
# What the enqueue and the worker make others do. The same code in both kernels, so
# these differ if it is called more often.
NEIGHBOURS = (
    "bio_endio",
    "queue_work_on",
    "__queue_work",
    "kick_pool",
    "kick_pool_pick",
    "try_to_wake_up",
    "__schedule",
    "worker_thread",
    "process_one_work",
    "process_scheduled_works",
)


class Failure(Exception):
    """What cannot be counted, and what to do about it."""


class Image:
    """The symbols and the code of a vmlinux."""

    def __init__(self, vmlinux):
        self.at, self.names, self.address = [], [], {}
        self.data = []
        listing = subprocess.run(
            ["nm", "-CnS", vmlinux], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        for line in listing.splitlines():
            match = re.match(r"([0-9a-f]+) (?:([0-9a-f]{16}) )?(\w) (.*)", line)
            if not match:
                continue
            at, size, kind, name = match.groups()
            at = int(at, 16)
            if size:
                self.data.append((name, at, int(size, 16)))
            if kind not in "tTwW" or name.startswith("__pi_"):
                continue
            self.address.setdefault(name, at)
            if self.at and self.at[-1] == at:
                # Of aliases, the one that the sources use.
                if len(name) < len(self.names[-1]):
                    self.names[-1] = name
                continue
            self.at.append(at)
            self.names.append(name)
        self.segments = list(self.load(vmlinux.read_bytes()))

    @staticmethod
    def load(elf):
        """Yields the segments of a 64-bit ELF file as (address, bytes)."""
        (offset,) = struct.unpack_from("<Q", elf, 32)
        size, nr = struct.unpack_from("<HH", elf, 54)
        for i in range(nr):
            kind, _, start, at, _, length = struct.unpack_from("<IIQQQQ", elf, offset + i * size)
            if kind == 1:
                yield at, elf[start : start + length]

    def function(self, at):
        """The name of the function at an address, and the offset in it."""
        i = bisect.bisect_right(self.at, at) - 1
        return (self.names[i], at - self.at[i]) if i >= 0 else ("?", 0)

    def code(self, at, length):
        for start, data in self.segments:
            if start <= at < start + len(data):
                return data[at - start : at - start + length]
        return b""

    def target(self, at):
        """Where a direct call or a jump out of line goes, or None."""
        code = self.code(at, 5)
        if len(code) < 5 or code[0] not in (0xE8, 0xE9):
            return None
        return at + 5 + struct.unpack("<i", code[1:])[0]

    def branch(self, at):
        """Where a conditional jump goes if it is taken, or None."""
        code = self.code(at, 6)
        if len(code) < 6 or code[0] != 0x0F or code[1] >> 4 != 8:
            return None
        return at + 6 + struct.unpack("<i", code[2:])[0]

    def calls_pointer(self, at):
        """Whether there is a CALL through a register or through memory."""
        code = self.code(at, 3)
        if code and 0x40 <= code[0] <= 0x4F:
            code = code[1:]
        return len(code) > 1 and code[0] == 0xFF and code[1] >> 3 & 7 == 2


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
                times = self.at[at]
                return sum(min(self.at[at], times) for at in executed[i - 2 :]), times
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

    def reached(self, *names):
        """The functions that were reached from some of them, without calls through pointers."""
        seen, todo = set(), list(names)
        while todo:
            f = todo.pop()
            if f not in seen and not LOCK.match(f) and self.of[f]:
                seen.add(f)
                todo += self.callees[f]
        return seen


def per(number, of):
    return number / of if of else 0.0


def figures(counts, window):
    """The figures of one window; `window` has what the guest said of it."""
    inlined, times = counts.inlined_enqueue()
    deferred = times + counts.entries("__bio_complete_in_task")
    enqueue = counts.group(ENQUEUE)
    if inlined:
        enqueue["bio_endio, from local_irq_save()"] = inlined
    worker = counts.group(WORKER)
    limiter = counts.group(LIMITER)
    run = next((f for f in counts.of if WORK_FN.match(f)), None)
    completed = sum(
        n
        for at, n in counts.at.items()
        if WORKER.match(counts.image.function(at)[0]) and counts.image.calls_pointer(at)
    )
    dropped = counts.called("folio_unmap_invalidate", "__filemap_remove_folio")
    writes = window["done"]
    locks = {f: counts.entries(f) for f in counts.of if LOCK.match(f)}
    locks = {f: n for f, n in sorted(locks.items(), key=lambda item: -item[1]) if n}
    # The last reference is the one that folio_end_writeback() holds.
    drop_path = counts.reached("folio_end_dropbehind", "folio_unmap_invalidate", "__folio_put")
    sites = [
        {
            "site": f"{caller}+{offset:#x}",
            "lock": callee,
            "acquired": n,
            "drop_path": caller in drop_path,
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
        "deferred": deferred,
        "completed": completed,
        "runs": counts.entries(run) if run else 0,
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
            f: {"entries": counts.entries(f), "instructions": counts.of[f]}
            for f in sorted(drop_path, key=lambda f: -counts.of[f])
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


def output_of(command):
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise Failure(f"{command[0]} failed")
    return done.stdout


def initramfs(path):
    """Writes a cpio archive with count.sh as init, and the programs it needs from this machine."""
    files = {
        "init": ROOT / "bench/count.sh",
        "lib.sh": ROOT / "guest/lib.sh",
        "io": Path(output_of([ROOT / "guest/tools.sh"]).strip()),
    }
    for program in PROGRAMS:
        found = shutil.which(program, path=SYSTEM_PATH)
        if not found:
            raise Failure(f"no {program}: install it (Debian: coreutils, mount, xfsprogs)")
        files[f"bin/{program}"] = Path(found)
        libraries = subprocess.run(
            ["ldd", found],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ).stdout
        for library in re.findall(r"(?:^|\s)/(\S+) \(0x", libraries):
            files[library] = Path("/", library)
    folders = {str(parent) for name in files for parent in Path(name).parents}
    folders |= {"dev", "mnt", "proc", "sys"}
    entries = [(name, 0o040755, b"") for name in sorted(folders - {"."})]
    entries += [(name, 0o100755, source.read_bytes()) for name, source in sorted(files.items())]
    # Else the kernel has nowhere to say what goes wrong before count.sh mounts /dev.
    entries += [("dev/console", 0o020600, b""), ("TRAILER!!!", 0, b"")]
    with path.open("wb") as archive:
        for inode, (name, mode, data) in enumerate(entries, 1):
            device = (5, 1) if mode == 0o020600 else (0, 0)
            name = name.encode() + b"\0"
            fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
            head = b"070701" + b"".join(b"%08x" % field for field in fields) + name
            archive.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))


class Cpus:
    """The CPUs of this machine, for one QEMU each.

    When the guest halts, QEMU's main thread moves the clock on to the next timer. On a CPU of its
    own it can see the halt before the other thread has accounted for the instructions up to it, and
    then moves the clock too far: one boot in ten was another after that.
    """

    def __init__(self):
        self.free = queue.SimpleQueue()
        cpus = sorted(os.sched_getaffinity(0))
        for cpu in cpus:
            self.free.put(cpu)
        self.pool = concurrent.futures.ThreadPoolExecutor(len(cpus))

    def boot(self, *arguments):
        """Boots when there is a CPU; returns a future."""
        return self.pool.submit(self.boot_now, *arguments)

    def boot_now(self, *arguments):
        cpu = self.free.get()
        try:
            return boot(*arguments, cpu)
        finally:
            self.free.put(cpu)


def boot(build, out, seed, archive, plugin, cpu):
    """Boots a kernel, and returns what it says of its windows, by name."""
    kernel = build / "arch/x86/boot/bzImage"
    for file in (kernel, build / "vmlinux"):
        if not file.is_file():
            raise Failure(f"no {file}: setup/kernel.sh builds it")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    qemu = shutil.which("qemu-system-x86_64")
    if not qemu:
        raise Failure("no qemu-system-x86_64: install it (Debian: qemu-system-x86)")
    taskset = shutil.which("taskset")
    if not taskset:
        raise Failure("no taskset: install it (Debian: util-linux)")
    quoted = {name: str(path).replace(",", ",,") for name, path in (("so", plugin), ("out", out))}
    command = [
        taskset,
        "-c",
        str(cpu),
        qemu,
        "-machine",
        "q35",
        "-cpu",
        "max",
        "-smp",
        "1",
        "-m",
        "1G",
    ]
    command += ["-nodefaults", "-display", "none", "-no-reboot"]
    command += ["-serial", f"file:{quoted['out']}/console"]
    command += ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]
    # Seeds what the CPU and the firmware give the kernel for random numbers.
    command += ["-seed", str(seed), "-rtc", "base=2026-01-01,clock=vm"]
    command += ["-plugin", f"{quoted['so']},out={quoted['out']}"]
    command += [
        "-kernel",
        kernel,
        "-initrd",
        archive,
        "-append",
        ARGUMENTS.format(offset=seed * 370),
    ]
    with (out / "qemu").open("wb") as log:
        try:
            subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            log.write(b"no end after %d s\n" % TIMEOUT)
    # Such as that the plugin does not fit.
    complaint = (out / "qemu").read_text(errors="replace").strip()
    if complaint:
        print(f"{out / 'qemu'}: {complaint}", file=sys.stderr)
    if not (out / "console").is_file():
        return {}
    text = (out / "console").read_text(errors="replace")
    windows = {}
    for number, name, *values in re.findall(r"window (\d+) (\S+) (\d+) (\d+) (-?\d+)", text):
        wanted, done, left = map(int, values)
        windows[name] = {"number": int(number), "wanted": wanted, "done": done, "left": left}
        bios = re.findall(rf"(?:before|after) {number} (\d+)", text)
        if len(bios) == 2:
            windows[name]["bios_said"] = int(bios[1]) - int(bios[0])
    return windows


def count_window(image, out, window):
    path = out / str(window["number"])
    if not path.is_file():
        return None
    result = figures(Counts(image, path), window)
    if "bios_said" in window:
        result["bios_said"] = window["bios_said"]
    return result


def sizes(image, vmlinux):
    """Bytes of a kernel's sections, and of the symbols of the engines in them."""
    sections = []
    for line in output_of(["size", "-A", "-d", vmlinux]).splitlines():
        field = line.split()
        if len(field) == 3 and field[1].isdigit() and int(field[2]):
            sections.append((int(field[2]), int(field[1]), field[0]))
    engine, symbols = collections.Counter(), {}
    for name, at, size in image.data:
        if not ENGINE.match(name) or "::tests::" in name:
            continue
        section = next((n for start, length, n in sections if start <= at < start + length), "?")
        engine[section] += size
        symbols[name] = {"section": section, "size": size}
    return {
        "sections": {name: size for _, size, name in sections},
        "engine": dict(engine),
        "symbols": symbols,
    }


def total_of(path):
    """Kernel instructions of a window, without who executed them."""
    return sum(
        int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith("ffff")
    )


def measure(kernels, out, seeds=SEEDS):
    """Counts in `kernels`, which maps "c" and "rust" to the directories they were built in."""
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    plugin = output_of([ROOT / "setup/plugin.sh"]).strip()
    archive = out / "initramfs"
    initramfs(archive)
    cpus = Cpus()
    boots = {
        (kernel, seed): cpus.boot(Path(build), out / f"{kernel}-{seed}", seed, archive, plugin)
        for seed in seeds
        for kernel, build in kernels.items()
    }
    said = {key: future.result() for key, future in boots.items()}
    result = {"seeds": list(seeds), "kernels": {}, "size": {}, "faults": {}}
    for kernel, build in kernels.items():
        image = Image(Path(build) / "vmlinux")
        result["size"][kernel] = sizes(image, Path(build) / "vmlinux")
        windows = result["kernels"][kernel] = {}
        expected = WINDOWS + (POLICY_WINDOWS if kernel == "rust" else ())
        for name in expected:
            where = f"{kernel} {name}"
            for seed in seeds:
                window = said[kernel, seed].get(name)
                at = out / f"{kernel}-{seed}"
                if not window or not (at / str(window["number"])).is_file():
                    result["faults"].setdefault(where, []).append(
                        f"the guest did not get there, read {at / 'console'}"
                    )
                elif seed == seeds[0]:
                    windows[name] = count_window(image, at, window)
                    windows[name]["by_seed"] = [windows[name]["per_write"]]
                    faults = windows[name]["faults"] = faults_of(name, windows[name])
                    if faults:
                        result["faults"].setdefault(where, []).extend(faults)
                elif name in windows:
                    total = total_of(at / str(window["number"]))
                    windows[name]["by_seed"].append(per(total, window["done"]))
    result["summary"] = summary(result["kernels"])
    return result


def summary(kernels):
    """The figures that are compared, side by side."""
    rows = []
    for name in WINDOWS + POLICY_WINDOWS:
        of = {kernel: windows[name] for kernel, windows in kernels.items() if name in windows}
        for figure in FIGURES:
            line = {"window": name, "figure": figure}
            for kernel, window in of.items():
                line[kernel] = (
                    statistics.median(window["by_seed"])
                    if figure == "per_write"
                    else window[figure]
                )
            if line.get("c") and "rust" in line:
                line["ratio"] = line["rust"] / line["c"]
            if any(line.get(kernel) for kernel in of):
                rows.append(line)
    return rows


def repeat(build, out, times=2, seed=SEEDS[0]):
    """Boots one kernel several times alike; returns the relative difference of totals by window.

    It is 0.0 only if the count of each address is the same in all of them.
    """
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    plugin = output_of([ROOT / "setup/plugin.sh"]).strip()
    archive = out / "initramfs"
    initramfs(archive)
    cpus = Cpus()
    at = [out / f"repeat-{i}" for i in range(times)]
    boots = [cpus.boot(Path(build), path, seed, archive, plugin) for path in at]
    said = [future.result() for future in boots]
    # A window that was not reached is no equal one.
    differences = {name: 1.0 for name in WINDOWS if name not in said[0]}
    for name, window in said[0].items():
        texts = []
        for path in at:
            counts = path / str(window["number"])
            texts.append(counts.read_text() if counts.is_file() else "")
        if all(text and text == texts[0] for text in texts):
            differences[name] = 0.0
            continue
        differences[name] = 1.0
        if all(texts):
            totals = [total_of(path / str(window["number"])) for path in at]
            # Not 0, even if other instructions make the same sum.
            differences[name] = max(per(max(totals) - min(totals), max(totals)), 1e-9)
    return differences


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
    for name in ("single", "batch", "stream", "bdev"):
        lines.append(name)
        for key in ("deferred", "runs"):
            lines.append(row(key, values(name, lambda w, key=key: w[key]), "{:>12d}"))
        lines.append(row("enqueue", values(name, lambda w: w["enqueue_per_bio"])))
        lines.append(row("worker", values(name, lambda w: w["worker_per_bio"])))
        both = values(name, lambda w: w["enqueue_per_bio"] + w["worker_per_bio"])
        lines.append(row("both", both))
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

    lines += ["", "the limiter: instructions per uncached write", head]
    for name in ("single", "batch", "stream", "bdev", *POLICY_WINDOWS):
        found = values(name, lambda w: w["limiter_per_write"])
        if any(found):
            lines.append(row(name, found))

    lines += ["", "lock acquisitions per dropped folio", head]
    for name in ("single", "batch", "stream", "bdev"):
        lines.append(name)
        lines.append(row("dropped", values(name, lambda w: w["dropped"]), "{:>12d}"))
        lines.append(row("all locks", values(name, lambda w: w["locks_per_folio"]), "{:>12.3f}"))
        every = sorted({f for k in order for f in kernels[k].get(name, {}).get("locks", {})})
        for f in every:

            def taken(w, f=f):
                return per(w["locks"].get(f, 0), w["dropped"])

            if max(filter(None, values(name, taken)), default=0) >= 0.01:
                lines.append(row(f"  {f}", values(name, taken), "{:>12.3f}"))
        atomics = values(name, lambda w: w["atomics_per_folio"])
        lines.append(row("locked instructions", atomics, "{:>12.3f}"))

    for name in ("batch", "stream"):
        lines += [
            "",
            f"{name}: where locks are taken, per dropped folio; * on the way to drop it",
            head,
        ]

        def sites(w):
            found = collections.Counter()
            for site in w["lock_sites"]:
                mark = "*" if site["drop_path"] else " "
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--c", type=Path, help="where the kernel without the option was built")
    parser.add_argument("--rust", type=Path, help="where the kernel with it was built")
    parser.add_argument(
        "--out", type=Path, required=True, help="for count.json and what is counted"
    )
    parser.add_argument(
        "--seeds", type=int, default=len(SEEDS), help="boots of each kernel (%(default)s)"
    )
    parser.add_argument(
        "--repeat", action="store_true", help="boot each kernel twice alike, and compare"
    )
    args = parser.parse_args()
    kernels = {k: getattr(args, k) for k in ("c", "rust") if getattr(args, k)}
    if not kernels:
        parser.error("nothing to count: --c, --rust or both")
    if args.seeds < 1:
        parser.error("--seeds: at least 1")

    try:
        if args.repeat:
            worst = 0.0
            for kernel, build in kernels.items():
                for window, difference in repeat(build, args.out / kernel).items():
                    equal = (
                        "equal to the instruction" if not difference else f"{difference:.4%} apart"
                    )
                    print(f"{kernel} {window}: {equal}")
                    worst = max(worst, difference)
            return 1 if worst else 0
        result = measure(kernels, args.out, tuple(range(1, args.seeds + 1)))
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    (args.out / "count.json").write_text(json.dumps(result, indent=1) + "\n")
    print(report(result))
    for window, faults in result["faults"].items():
        for fault in faults:
            print(f"fault: {window}: {fault}", file=sys.stderr)
    return 1 if result["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
