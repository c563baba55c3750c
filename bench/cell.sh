# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# One cell of the lab: one workload in one mode, in a guest of its own, so that no
# cell inherits another's cache, dirty pages or allocator. Leaves what it counted
# in the scratch directory, for bench/guests.py.
#
# $scratch/env sets MODEL (attributes of null_blk), DEVICE (the device itself or
# empty), AGCOUNT, DEVICE_MIB, FILE_MIB, MEMCG, JOIN, DIRTY and TEMPFILE (MiB), SYNC_MS,
# WARM and TRACE; $scratch/prewrite has a path and MiB a line, $scratch/files the
# files of all jobs.

. ./lib.sh
# shellcheck source=/dev/null
. ./env

tracing=/sys/kernel/tracing

# snapshot NAME: all counters at one time.
snapshot() {
	mkdir "snap.$1"
	cat /proc/vmstat > "snap.$1/vmstat"
	cat /proc/stat > "snap.$1/stat"
	cat /sys/block/nullb0/stat > "snap.$1/disk"
}

# resident NAME: for each file, how many of its pages are cached.
resident() {
	while read -r path; do
		if [ -b "$path" ]; then
			size=$((FILE_MIB << 20))
		else
			size=$(command stat -c %s "$path")
		fi
		echo "$path $size $(./io cached "$path" 0 "$size")"
	done < files > "resident.$1"
}

# What jobs have open, with flags: until all files were seen, or for two seconds, since
# jobs open theirs one after the other and some are soon over.
opened() {
	tries=0
	while [ $tries -lt 100 ] && [ "$(sort -u open.files | wc -l)" -lt "$(wc -l < files)" ]; do
		./io opened "${DEVICE:-/mnt/fs/}" >> open.files
		tries=$((tries + 1))
		sleep 0.02
	done
}

# The hard limit of the kernel follows a threshold down slowly, by 1/32 in 200 ms. Had it
# seen the one of all the memory that is still free now, it would let writers dirty four
# times of what they may, for most of a run.
echo $((DIRTY << 20)) > /proc/sys/vm/dirty_bytes
echo $((DIRTY << 19)) > /proc/sys/vm/dirty_background_bytes

# shellcheck disable=SC2086 # attributes
nullb nullb0 "$DEVICE_MIB" $MODEL
# The device keeps its data in the guest's memory, which has to be taken first:
# what is left is the room for page cache, and stays the same.
dd if=/dev/zero of=/dev/nullb0 bs=1M oflag=direct status=none 2> /dev/null
if [ -z "$DEVICE" ]; then
	mkfs.xfs -q -f -m uuid=6ba7b810-9dad-11d1-80b4-00c04fd430c8 -d "agcount=$AGCOUNT" /dev/nullb0 &&
		mount /dev/nullb0 /mnt/fs || exit 1
	while read -r path; do
		mkdir -p "${path%/*}"
	done < files
fi
while read -r path mib; do
	dd if=/dev/zero of="$path" bs=1M count="$mib" oflag=direct status=none || exit 1
done < prewrite

drop_caches
awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo > room
if [ "$WARM" = 1 ]; then
	while read -r path; do
		cat "$path" > /dev/null
	done < files
fi
if [ "$TEMPFILE" -gt 0 ]; then
	# All of it is to wait for its age, and for nothing else.
	echo $((4 * TEMPFILE << 20)) > /proc/sys/vm/dirty_bytes
	echo $((2 * TEMPFILE << 20)) > /proc/sys/vm/dirty_background_bytes
	dd if=/dev/zero of=/mnt/fs/tempfile bs=1M count="$TEMPFILE" status=none
fi

if [ "$TRACE" = 1 ]; then
	mount -t tracefs tracefs $tracing 2> /dev/null
	echo 8192 > $tracing/buffer_size_kb
	for event in writeback_start writeback_written writeback_single_inode; do
		echo 1 > $tracing/events/writeback/$event/enable
	done
fi
if [ "$MEMCG" -gt 0 ]; then
	mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit 1
	echo "+memory +io" > /sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/lab
	echo "${MEMCG}M" > /sys/fs/cgroup/lab/memory.max
fi

syncs=
./io sample 25 > samples &
sampler=$!
: > open.files
opened &
if [ "$SYNC_MS" -gt 0 ]; then
	# After the ramp of the stream.
	(sleep 3 && exec ./io syncs "$SYNC_MS" > syncs.ns) &
	syncs=$!
fi
snapshot before
(
	[ "$JOIN" = 0 ] || sh -c 'echo $PPID' > /sys/fs/cgroup/lab/cgroup.procs
	exec ./fio job.fio --output-format=json+ --output=fio.json
) || exit 1
[ -z "$syncs" ] || { kill "$syncs" && wait "$syncs"; }
snapshot after
# The worker drops what it drops.
sleep 1
snapshot later
resident later
kill $sampler
if [ "$TRACE" = 1 ]; then
	echo 0 > $tracing/tracing_on
	cat $tracing/trace > trace
	cat $tracing/per_cpu/cpu*/stats > trace.stats
fi
sync
sleep 1
resident synced
snapshot synced
