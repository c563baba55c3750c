# SPDX-License-Identifier: GPL-2.0
"""What the lab runs on: device models, modes of I/O, and the room for page cache."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Model:
    """A null_blk device that keeps its data in memory and completes from a timer."""

    depth: int
    latency_us: int
    request_kib: int = 128

    @property
    def mb_s(self):
        """What it can move at most, in MB/s."""
        return self.depth * self.request_kib * 1024 / self.latency_us

    @property
    def iops(self):
        """How many requests it can finish at most, in one second."""
        return self.depth * 1e6 / self.latency_us

    def attributes(self):
        """Its null_blk attributes in configfs."""
        return (
            f"completion_nsec={self.latency_us * 1000} hw_queue_depth={self.depth}"
            f" max_sectors={self.request_kib * 2} blocksize=4096"
        )

    def __str__(self):
        return (
            f"{self.depth} x {self.request_kib} KiB in flight, {self.latency_us} us:"
            f" at most {self.mb_s:.0f} MB/s and {self.iops:.0f} IOPS"
        )


MODELS = {
    "nvme": Model(8, 2000),
    "slow": Model(2, 2000),
    "fast": Model(64, 100),
    "deep": Model(64, 16000),
    "shallow": Model(1, 250),
}

PAGE = 4096
# A guest's memory, what the device takes of it, and how much is written or read:
# what remains for the page cache is less than half of that.
MEMORY_MIB = 1600
DEVICE_MIB = 1200
FILE_MIB = 1024
# vm.dirty_bytes, twice vm.dirty_background_bytes: a fifth of the room, as by default.
DIRTY_MIB = 68


@dataclasses.dataclass(frozen=True)
class Mode:
    """One row of a table: a kernel, its policy, and what fio asks of it."""

    title: str
    kernel: str
    fio: dict
    policy: str | None = None

    @property
    def uncached(self):
        """Whether writes and reads have one of the flags."""
        return "uncached" in self.fio


BUFFERED = {"direct": 0}
DIRECT = {"direct": 1}
DONTCACHE = {"direct": 0, "uncached": 1}
LAZY = {"direct": 0, "uncached": 2}
MODES = {
    "buffered": Mode("buffered", "c", BUFFERED),
    "direct": Mode("direct", "c", DIRECT),
    "c": Mode("uncached, C", "c", DONTCACHE),
    "kick": Mode("uncached, kick", "rust", DONTCACHE, "kick"),
    "flush": Mode("uncached, flush", "rust", DONTCACHE, "flush"),
    "lazy": Mode("uncached, lazy", "rust", DONTCACHE, "lazy"),
    "paced": Mode("uncached, paced", "rust", DONTCACHE, "paced"),
    # Two controls: they are to do what their namesakes do.
    "lazyflag": Mode("uncached, lazy flag", "rust", LAZY, "kick"),
    "rbuffered": Mode("buffered, Rust kernel", "rust", BUFFERED, "lazy"),
    "rdirect": Mode("direct, Rust kernel", "rust", DIRECT, "lazy"),
}
