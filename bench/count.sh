#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# The first and only program of the guest in which bench/count.py counts. Says
# "window NUMBER NAME WRITES-WANTED WRITES-DONE PAGES-LEFT" for each of them, of closed
# loops the latencies of guest/loops.c as well, and how many bios the Rust engine says it completed in how many runs.

PATH=/bin
export PATH
# Init must not end before the machine does, that is a panic.
trap './io poweroff' EXIT

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
exec > /dev/console 2>&1
mount -t debugfs debugfs /sys/kernel/debug
mount -t configfs configfs /sys/kernel/config
mount -t tmpfs tmpfs /mnt
mkdir /mnt/fs /mnt/ext4

. ./lib.sh

nullb nullb0 512 blocksize=4096
nullb nullb1 64 blocksize=4096
mkfs.xfs -q -f -m uuid=00000000-0000-4000-8000-000000000001 /dev/nullb0 || exit 1
mount /dev/nullb0 /mnt/fs || exit 1
# Overwrites of what was written before: XFS completes others in a worker of its own.
dd if=/dev/zero of=/mnt/fs/file bs=1M count=64 oflag=direct status=none || exit 1
nullb nullb2 128 blocksize=4096
mkfs.ext4 -q -F -U 00000000-0000-4000-8000-000000000002 -E hash_seed=00000000-0000-4000-8000-000000000003 \
	/dev/nullb2 || exit 1
mount -t ext4 /dev/nullb2 /mnt/ext4 || exit 1
dd if=/dev/zero of=/mnt/ext4/file bs=1M count=64 oflag=direct status=none || exit 1
dd if=/dev/zero of=/dev/nullb1 bs=1M count=64 oflag=direct status=none || exit 1
sync

# No fork in it, and nothing if there are no counters.
bios() {
	while read -r key value; do
		case $key in
		bio_task_complete) echo "$1 bios $value" ;;
		bio_task_run) echo "$1 runs $value" ;;
		esac
	done < /proc/vmstat
}

# Of the kernel's command line.
offset=${offset:-0}
latency=${latency:-100000}
policy=${policy:-kick}
number=0
# window NAME FLAGS FILE BLOCK NR STRIDE STEP each|end
window() {
	title=$1
	shift
	number=$((number + 1))
	drop_caches
	# What is slow the first time: the slabs, the flusher's thread, the nodes of the tree.
	./io count 0 "$offset" "$@" > /mnt/warm || exit 1
	drop_caches
	bios "before $number"
	./io count "$number" "$offset" "$@" > /mnt/counted || {
		cat /mnt/counted
		exit 1
	}
	bios "after $number"
	echo "window $number $title $4 $(cat /mnt/counted)"
}

# loops NAME WRITES ROLE...: closed loops of at least so many writes, see guest/loops.c.
loops() {
	title=$1
	writes=$2
	shift 2
	number=$((number + 1))
	drop_caches
	./loops 0 "$offset" "$uncached" "$@" > /mnt/warm || exit 1
	drop_caches
	bios "before $number"
	./loops "$number" "$offset" "$uncached" "$@" > /mnt/counted || {
		cat /mnt/counted
		exit 1
	}
	bios "after $number"
	echo "window $number $title $writes $(cat /mnt/counted)"
}

uncached=0x80
# A worker run for each bio.
single() {
	window "single$2" "$1" /mnt/fs/file 4096 2000 1 1 each
}
# Many bios a run. Every second page, so that none are merged, and all over the
# file: 1000003 is prime.
batch() {
	window "batch$2" "$1" /mnt/fs/file 4096 4096 2 1000003 end
}
# Many pages a bio.
stream() {
	window "stream$2" "$1" /mnt/fs/file 1048576 64 1 1 end
}
# The stream for which upstream's worker was measured to run once a bio.
stream128() {
	window "stream128$2" "$1" /mnt/fs/file 131072 512 1 1 end
}

sysctl=/proc/sys/vm/dontcache_policy
[ ! -e $sysctl ] || echo "$policy" > $sysctl || exit 1
single "$uncached" ""
batch "$uncached" ""
stream "$uncached" ""
stream128 "$uncached" ""
window bdev "$uncached" /dev/nullb1 4096 4096 2 1000003 end
# Upstream leaves these in the page cache.
[ ! -e $sysctl ] || window ext4 "$uncached" /mnt/ext4/file 4096 4096 2 1000003 end
batch 0 -buffered
stream 0 -buffered
if [ -e $sysctl ]; then
	for name in lazy flush paced; do
		# Not all kernels have all of them.
		echo "$name" > $sysctl 2> /dev/null || {
			echo "no policy $name"
			continue
		}
		single "$uncached" "-$name"
		batch "$uncached" "-$name"
		stream "$uncached" "-$name"
		stream128 "$uncached" "-$name"
	done
fi

[ ! -e $sysctl ] || echo "$policy" > $sysctl
nullb nullb3 64 blocksize=4096 completion_nsec="$latency" hw_queue_depth=64
dd if=/dev/zero of=/dev/nullb3 bs=1M count=64 oflag=direct status=none || exit 1
for depth in 1 2 4 8 16 32; do
	loops "depth$depth" 2048 "/dev/nullb3,4096,2048,$depth,each"
done
loops devices 2048 /dev/nullb1,4096,2048,16,each /dev/nullb3,4096,2048,1,each
dd if=/dev/zero of=/mnt/fs/log bs=1M count=8 oflag=direct status=none || exit 1
# The same stream for each kernel, as long as who syncs is at work in all of them.
loops fdatasync 5120 /mnt/fs/file,65536,512,1,end,8 /mnt/fs/log,4096,1024,1,sync
mkdir /mnt/cgroup
mount -t cgroup2 none /mnt/cgroup
echo +memory +io > /mnt/cgroup/cgroup.subtree_control || exit 1
mkdir /mnt/cgroup/small
echo 12M > /mnt/cgroup/small/memory.max || exit 1
echo 0 > /mnt/cgroup/small/cgroup.procs
loops cgroup 512 /dev/nullb3,65536,512,1,end
echo 0 > /mnt/cgroup/cgroup.procs
echo "all windows"
