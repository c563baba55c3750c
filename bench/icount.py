# SPDX-License-Identifier: GPL-2.0
"""Boots a kernel in a QEMU with one CPU whose clock is the number of instructions it executed."""

import collections
import concurrent.futures
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys

from vmlinux import Failure, output_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Seconds, on a machine that is busy with something else.
TIMEOUT = 600
PROGRAMS = ("sh", "mount", "mkdir", "cat", "dd", "sync", "mkfs.xfs", "mkfs.ext4")
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
ARGUMENTS = (
    "console=ttyS0 quiet panic=-1 null_blk.nr_devices=0 kunit.enable=0"
    # Addresses as linked, and the same in every process.
    " nokaslr norandmaps"
    # One CPU would have the lock prefixes taken out of the code.
    " noreplace-smp"
    # For count.sh: each seed starts its windows at another place between two ticks, and has a
    # device of another latency: loops in step with the tick would be counted, and not the kernel.
    " offset={offset} latency={latency} policy={policy}"
)


def initramfs(path):
    """Writes a cpio archive with count.sh as init, and the programs it needs from this machine."""
    files = {
        "init": ROOT / "bench/count.sh",
        "lib.sh": ROOT / "guest/lib.sh",
        "io": pathlib.Path(output_of([ROOT / "guest/tools.sh", "io"]).strip()),
        "loops": pathlib.Path(output_of([ROOT / "guest/tools.sh", "loops"]).strip()),
    }
    for program in PROGRAMS:
        found = shutil.which(program, path=SYSTEM_PATH)
        if not found:
            raise Failure(
                f"no {program}: install it (Debian: coreutils, mount, xfsprogs, e2fsprogs)"
            )
        files[f"bin/{program}"] = pathlib.Path(found)
        libraries = subprocess.run(
            ["ldd", found],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ).stdout
        for library in re.findall(r"(?:^|\s)/(\S+) \(0x", libraries):
            files[library] = pathlib.Path("/", library)
    folders = {str(parent) for name in files for parent in pathlib.Path(name).parents}
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
    """The CPUs of this machine, for one QEMU each, and what all of them boot with.

    When the guest halts, QEMU's main thread moves the clock on to the next timer. On a CPU of its
    own it can see the halt before the other thread has accounted for the instructions up to it, and
    then moves the clock too far: one boot in ten was another after that.
    """

    def __init__(self, out):
        out.mkdir(parents=True, exist_ok=True)
        self.plugin = output_of([ROOT / "setup/plugin.sh"]).strip()
        self.archive = out / "initramfs"
        initramfs(self.archive)
        self.free = queue.SimpleQueue()
        cpus = sorted(os.sched_getaffinity(0))
        for cpu in cpus:
            self.free.put(cpu)
        self.pool = concurrent.futures.ThreadPoolExecutor(len(cpus))

    def boot(self, build, out, seed, policy="kick"):
        """Boots when there is a CPU; returns a future."""
        return self.pool.submit(self.boot_now, build, out, seed, policy)

    def boot_now(self, build, out, seed, policy):
        """Waits for a CPU, and boots."""
        cpu = self.free.get()
        try:
            return boot(build, out, seed, policy, self.archive, self.plugin, cpu)
        finally:
            self.free.put(cpu)


def switches(text, number):
    """How often tasks of each name were switched away from in a window."""
    found = collections.Counter()
    for when, nr, name in re.findall(rf"(before|after) {number} switches (\d+) (\S+)", text):
        task = re.sub(r"^(kworker/u?\d+).*", r"\1", name)
        found[task] += int(nr) if when == "after" else -int(nr)
    return {name: nr for name, nr in found.items() if nr}


def boot(build, out, seed, policy, archive, plugin, cpu):
    """Boots a kernel, and returns what it says of its windows, by name.

    POLICY is that of the windows whose names have none, if the kernel knows policies.
    """
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
        ARGUMENTS.format(offset=seed * 370, latency=95000 + seed * 7919 % 10007, policy=policy),
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
    for number, name, values in re.findall(r"window (\d+) (\S+) (\d+ \d+ -?\d+[ \d]*)", text):
        wanted, done, left, *times = map(int, values.split())
        windows[name] = {"number": int(number), "wanted": wanted, "done": done, "left": left}
        # Of guest/loops.c, in virtual time.
        windows[name]["latency_ns"] = dict(zip(("mean", "p50", "p99", "max"), times, strict=False))
        windows[name]["tasks"] = switches(text, number)
        for key in ("bios", "runs"):
            said = re.findall(rf"(?:before|after) {number} {key} (\d+)", text)
            if len(said) == 2:
                windows[name][f"{key}_said"] = int(said[1]) - int(said[0])
    # Windows of a policy that the kernel has not.
    windows["refused"] = tuple(f"-{policy}" for policy in re.findall(r"no policy (\w+)", text))
    return windows
