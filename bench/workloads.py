# SPDX-License-Identifier: GPL-2.0
"""What is run: each workload as the fio jobs it is made of.

They are those of the benchmark that the project's source document reports, with
its faults mended: every writer has a file of its own, direct means O_DIRECT,
latency is total, readers run for a time on a hot and a cold set. A run ends with
fsync, whose time counts, or its first part is left out.
"""

import dataclasses

from models import BUFFERED, FILE_MIB

SYNC = {"ioengine": "pvsync2"}
# Writers of fixed size pay for what they left in memory at the end.
PAID = {"end_fsync": 1}
# Jobs of fixed time are measured when memory has taken in what it can, and stop
# together: one that was starved begins to count late, and would end alone.
TIMED = {"time_based": 1, "ramp_time": 3, "runtime": 6, "exitall": 1, "exit_what": "all"}


@dataclasses.dataclass(frozen=True)
class Role:
    """A group of equal fio jobs that is reported as one."""

    name: str
    options: dict
    jobs: int = 1
    # False: buffered whatever the mode of the cell.
    follows: bool = True

    @property
    def writes(self):
        """Whether it writes; if not, it reads."""
        return "write" in self.options["rw"]

    @property
    def syncs(self):
        """Whether it waits for each of its writes in a call of its own."""
        return "fdatasync" in self.options


@dataclasses.dataclass(frozen=True)
class Workload:
    """A workload; sizes are MiB. The first role is the one that bars show."""

    title: str
    roles: tuple
    # Files that are there before: of each role as many MiB as its jobs have files.
    prewrite: dict = dataclasses.field(default_factory=dict)
    agcount: int = 4
    # A bare device, and a cgroup with so many MiB: the roles in it, or none for all.
    device: bool = False
    memcg: int = 0
    members: tuple = ()
    # A cached file to overwrite, a dirty temporary file, ms between calls of sync(2).
    warm: bool = False
    tempfile: int = 0
    syncs: int = 0
    # Whether throughput is what it is about; if not, the device need not be busy.
    bound: bool = True
    without: tuple = ()


def writer(name="writer", jobs=1, block="1M", size=FILE_MIB, **options):
    """A role that writes files of its own from the start to the end."""
    options = {"rw": "write", "bs": block, "size": f"{size}M"} | options
    return Role(name, SYNC | options, jobs)


# Nine reads of ten go to a hundredth of the file, which is small enough to be cached
# before the ramp is over; the rest of the three has no room. A sleep after each, since in
# virtual time a reader that finds all in memory would never let the clock go on.
READER_MIB = 160
READER = SYNC | {
    "rw": "randread",
    "bs": "4k",
    "size": f"{READER_MIB}M",
    "random_distribution": "zoned:90/1:10/99",
    "thinktime": 1000,
}

# Two that write the same device, each a part of its own, neither of which has room in memory.
HALVES = tuple(
    writer(name, size=480, offset=f"{start}M", **TIMED)
    for name, start in (("writer", 0), ("neighbour", FILE_MIB // 2))
)
# fio runs it in a shell of the job's, and appends where its output goes.
JOIN = "exec_prerun=echo $PPID | tee /sys/fs/cgroup/lab/cgroup.procs"

WORKLOADS = {
    "seqwrite": Workload("sequential write, 1 MiB", (writer(**PAID),)),
    "seqwrite-uring": Workload(
        "sequential write, 1 MiB, io_uring with depth 16",
        (writer(ioengine="io_uring", iodepth=16, **PAID),),
    ),
    "randwrite": Workload(
        "random overwrite, 4 KiB, 8 writers",
        (writer(jobs=8, block="4k", size=FILE_MIB // 8, rw="randwrite", io_size="16M", **PAID),),
        prewrite={"writer": FILE_MIB // 8},
    ),
    "seqread": Workload(
        "sequential read, 1 MiB",
        (Role("reader", SYNC | {"rw": "read", "bs": "1M", "size": f"{FILE_MIB}M"}),),
        prewrite={"reader": FILE_MIB},
    ),
    "randread": Workload(
        "random read, 4 KiB, 8 readers",
        (
            Role(
                "reader",
                SYNC | {"rw": "randread", "bs": "4k", "size": "128M", "io_size": "12M"},
                8,
            ),
        ),
        prewrite={"reader": 128},
    ),
    "writers": Workload(
        "4 writers, a file each, 1 MiB", (writer(jobs=4, size=FILE_MIB // 4, **PAID),)
    ),
    "noisy": Workload(
        "a writer and 3 readers in the same mode",
        (writer(size=480, **TIMED), Role("readers", READER | TIMED, 3)),
        prewrite={"readers": READER_MIB},
    ),
    "mixed": Workload(
        "a writer, and 3 readers that are buffered",
        (writer(size=480, **TIMED), Role("readers", READER | TIMED, 3, follows=False)),
        prewrite={"readers": READER_MIB},
    ),
    "competing": Workload(
        "a writer against a buffered one",
        (
            writer(size=480, **TIMED),
            dataclasses.replace(writer("rival", size=480, **TIMED), follows=False),
        ),
    ),
    "files32": Workload(
        "32 writers, a file each, 64 KiB",
        (writer(jobs=32, block="64k", size=FILE_MIB // 32, **PAID),),
    ),
    "bdevread": Workload(
        "block device, sequential read, 1 MiB, in a small cgroup",
        (Role("reader", SYNC | {"rw": "read", "bs": "1M", "size": f"{FILE_MIB}M"}),),
        device=True,
        memcg=96,
    ),
    "bdevwrite": Workload(
        "block device, sequential write, 1 MiB, in a small cgroup",
        (writer(**PAID),),
        device=True,
        memcg=96,
    ),
    "beside": Workload("block device, two writers, each of a half", HALVES, device=True),
    "beside-small": Workload(
        "block device, two writers, each of a half, the neighbour in a small cgroup",
        HALVES,
        device=True,
        memcg=96,
        members=("neighbour",),
    ),
    "append": Workload(
        "appends of 512 bytes, one every millisecond",
        (writer(block="512", size=1, thinktime=1000, **PAID),),
        bound=False,
        without=("direct", "rdirect"),
    ),
    "tempfile": Workload(
        "small writes (4 KiB) beside a dirty temporary file of 96 MiB",
        (writer(block="4k", size=1, rw="randwrite", thinktime=1000),),
        prewrite={"writer": 1},
        tempfile=96,
        bound=False,
    ),
    "overwrite": Workload(
        "overwrite of a cached file, 64 KiB every millisecond, without fsync",
        (writer(block="64k", size=16, thinktime=1000),),
        prewrite={"writer": 16},
        warm=True,
        bound=False,
    ),
    "sync": Workload(
        "sync(2) every 200 ms beside a stream",
        (writer(size=FILE_MIB, **TIMED),),
        syncs=200,
    ),
    "dsync": Workload(
        "O_DSYNC overwrites, 4 KiB, beside a stream of overwrites, 128 KiB",
        (
            writer("dsync", block="4k", size=16, rw="randwrite", sync="dsync", **TIMED),
            writer("stream", block="128k", size=256, **TIMED),
        ),
        prewrite={"dsync": 16, "stream": 256},
    ),
    "fdatasync": Workload(
        "overwrites, 4 KiB, each with fdatasync(2), beside a stream of overwrites, 128 KiB",
        (
            writer("fdatasync", block="4k", size=16, rw="randwrite", fdatasync=1, **TIMED),
            writer("stream", block="128k", size=256, **TIMED),
        ),
        prewrite={"fdatasync": 16, "stream": 256},
    ),
    "stream": Workload(
        "sequential overwrite, 128 KiB, io_uring with depth 32",
        (writer(block="128k", ioengine="io_uring", iodepth=32, size=FILE_MIB // 2, **PAID),),
        prewrite={"writer": FILE_MIB // 2},
    ),
    "dirs12": Workload(
        "12 files in 12 directories, random write, 4 KiB",
        (writer(jobs=12, block="4k", size=40, rw="randwrite", io_size="8M", **PAID),),
        agcount=12,
    ),
    "dirs6": Workload(
        "6 files in 6 directories, random write, 4 KiB",
        (writer(jobs=6, block="4k", size=80, rw="randwrite", io_size="16M", **PAID),),
        agcount=12,
    ),
}


def directory(name, number):
    """Where job NUMBER of a role has its file: dirs12 and dirs6 have one for each."""
    return f"/mnt/fs/d{number}" if name.startswith("dirs") else "/mnt/fs"


def files(name, role):
    """The files of a role, by the names that fio gives them."""
    if WORKLOADS[name].device:
        return ["/dev/nullb0"]
    return [f"{directory(name, n)}/{role.name}.{n}.0" for n in range(role.jobs)]


def job_file(name, mode, seed):
    """The fio job file of a workload in a mode."""
    lines = [
        "[global]",
        "clocksource=clock_gettime",
        "invalidate=0",
        "fallocate=none",
        "lat_percentiles=1",
        "clat_percentiles=0",
        "percentile_list=1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.99",
        f"randseed={seed}",
    ]
    workload = WORKLOADS[name]
    for role in workload.roles:
        options = role.options | (mode.fio if role.follows else BUFFERED)
        lines += [f"[{role.name}]", f"numjobs={role.jobs}"]
        if role.name in workload.members:
            lines.append(JOIN)
        if workload.device:
            lines.append("filename=/dev/nullb0")
        else:
            places = dict.fromkeys(directory(name, n) for n in range(role.jobs))
            lines += ["directory=" + ":".join(places), "filename_format=$jobname.$jobnum.$filenum"]
        lines += [f"{key}={value}" for key, value in options.items()]
    return "\n".join(lines) + "\n"
