# SPDX-License-Identifier: GPL-2.0
"""What the source documents measured. Most of it: Linux 6.19, XFS, 80 CPUs, 256 GB, an NVMe drive.

By workload, role and its mode: MB/s, IOPS and latencies in ms, and the peaks of
page cache and of dirty pages in GB. Its dontcache is our flush, that of kernels
before 7.2. Its "direct" was buffered (see Documentation/mm/dontcache-lab.rst).
"""


def row(mb_s=None, iops=None, p50=None, p99=None, p999=None, cache=None, dirty=None):
    """A row of one of its tables; a range is given by its middle."""
    figures = {
        "mb_s": mb_s,
        "iops": iops,
        "p50_ms": p50,
        "p99_ms": p99,
        "p999_ms": p999,
        "peak_file_mb": cache and cache * 1000,
        "peak_dirty_mb": dirty and dirty * 1000,
    }
    return {key: number for key, number in figures.items() if number is not None}


SOURCE = {
    ("seqwrite-uring", "writer"): {
        "buffered": row(575, None, 30.0, 43.8, 51.1, 243),
        "flush": row(1179, None, 3.2, 103.3, 170.9, 4.7),
        "direct": row(1374, None, 11.5, 21.9, 24.2, 242),
        "lazy": row(1442, None, 10.7, 22.2, 23.5, 49),
    },
    ("randwrite", "writer"): {
        "direct": row(326, 83000, p999=0.8),
        "buffered": row(316, 81000, p999=0.9),
        "lazy": row(299, 76000, p999=16.4),
        "flush": row(148, 38000, p999=8.7),
    },
    ("seqread", "reader"): {
        "buffered": row(2259, None, 6.5, None, 12.5, 254),
        "flush": row(2374, None, 6.3, None, 8.2, 5.2),
        "direct": row(2268, None, 6.4, None, 13.6, 254),
        "lazy": row(2343, None, 6.4, None, 8.2, 3.5),
    },
    ("randread", "reader"): {
        "direct": row(567, 145000, p999=0.3),
        "buffered": row(563, 144000, p999=0.3),
        "lazy": row(545, 140000, p999=0.8),
        "flush": row(542, 139000, p999=0.8),
    },
    ("writers", "writer"): {
        "buffered": row(1501, None, None, 41.2, 58, dirty=48),
        "lazy": row(1434, None, None, 38.5, 388, dirty=44),
        "direct": row(980, None, None, 50.1, 59, dirty=45),
        "flush": row(707, None, None, 3.1, 160, dirty=6e-6),
    },
    ("noisy", "writer"): {
        "buffered": row(915),
        "direct": row(1380),
        "lazy": row(1458),
        "flush": row(1323),
    },
    ("noisy", "readers"): {
        "buffered": row(990, p999=0.3),
        "direct": row(985, p999=0.3),
        "lazy": row(27, p999=1974),
        "flush": row(24, p999=44302),
    },
    ("mixed", "writer"): {
        "buffered": row(915),
        "lazy": row(1435, 1435, 0.482, None, 24.0),
    },
    ("mixed", "readers"): {
        "buffered": row(990, p999=0.3),
        "lazy": row(753, 193000, 0.129, None, 0.5),
    },
}
# The patches that brought the batcher: their kernel still flushed after each write.
SOURCE["bdevread", "reader"] = {"buffered": row(1173.7), "flush": row(1828.8)}
SOURCE["bdevwrite", "writer"] = {"buffered": row(3762.5), "flush": row(7699.1)}
# Parallel writeback of XFS: without it, and buffered.
SOURCE["dirs12", "writer"] = {"buffered": row(323.0)}
SOURCE["dirs6", "writer"] = {"buffered": row(428.9)}
SOURCE["seqwrite", "writer"] = SOURCE["seqwrite-uring", "writer"]
