# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# One cell of the demo: one workload in one mode, in a guest of its own, so that
# no cell inherits another's cache, dirty pages or allocator. Sets up an
# NVMe-like device, and leaves fio.json and samples in the scratch directory.
#
# $scratch/env sets MODE, WORKLOAD, SIZE_MIB (of the file) and DEVICE_MIB.

. ./lib.sh
# shellcheck source=/dev/null
. ./env

# shellcheck disable=SC2153 # of ./env
case $MODE in
buffered) mode="--direct=0" ;;
dontcache) mode="--direct=0 --uncached=1" ;;
lazy) mode="--direct=0 --uncached=2" ;;
direct) mode="--direct=1" ;;
esac

# 8 requests of 128 KiB in flight, 2 ms each.
nullb nullb0 "$DEVICE_MIB" completion_nsec=2000000 hw_queue_depth=8 max_sectors=256 blocksize=4096
# The device keeps its data in the guest's memory, which has to be taken first:
# what is left is the room for page cache, and stays the same.
dd if=/dev/zero of=/dev/nullb0 bs=1M oflag=direct status=none 2> /dev/null
mkfs.xfs -q -f /dev/nullb0 && mount /dev/nullb0 /mnt/fs || exit 1

# io_uring would try not to sleep first, and what succeeds then is left to the flusher in every
# policy. So writers are synchronous; where direct needs depth, there are more of them.
fio() {
	./fio --directory=/mnt/fs --ioengine=pvsync2 --clocksource=clock_gettime --randseed=1 --fallocate=none \
		--lat_percentiles=1 --clat_percentiles=0 --group_reporting --invalidate=0 "$@"
}

# prewrite FILES: what fio is to find, all of SIZE_MIB, by the names that fio gives its files.
prewrite() {
	file=0
	while [ $file -lt "$1" ]; do
		dd if=/dev/zero of="/mnt/fs/$WORKLOAD.$file.0" bs=1M count="$((SIZE_MIB / $1))" oflag=direct status=none
		file=$((file + 1))
	done
}

case $WORKLOAD in
seqwrite) set -- --rw=write --bs=1M --size="${SIZE_MIB}M" --end_fsync=1 ;;
writers) set -- --rw=write --bs=1M --numjobs=4 --size="$((SIZE_MIB / 4))M" --end_fsync=1 ;;
randwrite)
	# Overwrites: XFS completes what it has to allocate in a worker of its own, ours has the rest.
	set -- --rw=randwrite --bs=4k --numjobs=8 --size="$((SIZE_MIB / 8))M" --io_size=4M --end_fsync=1
	prewrite 8
	;;
seqread)
	set -- --rw=read --bs=1M --size="${SIZE_MIB}M"
	prewrite 1
	;;
esac

drop_caches
awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo > room
./io sample 25 > samples &
sampler=$!
# shellcheck disable=SC2086 # options
fio --name="$WORKLOAD" $mode "$@" --output-format=json --output=fio.json || exit 1
kill $sampler
[ ! -e "${stats:?}" ] || cat "$stats" > counters
