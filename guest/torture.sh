#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Tortures task-context bio completion for $TORTURE_SECONDS, unloads the module
# and loads it again many times, and looks for what the kernel says of itself.
# Files are written beside that, so that workers have folios to drop and tasks
# that wait for them. Runs in a QEMU guest; its directory holds the module, io
# and lib.sh.

cd "$(dirname "$0")" || exit 1
. ./lib.sh
# shellcheck source=/dev/null
. ./env

DONTCACHE=0x80
module=rust_bio_torture
# Bios that have not ended after that are lost. A machine that emulates, with KASAN, is slow.
stall=30
cpus=$(cat /sys/devices/system/cpu/online)

# verdicts TEXT: how many runs ended so.
verdicts() {
	grep -sc "$module: --- End of test: $1" messages
}

# load PARAMETER...: fails at once, and not by each of its effects, if the module does not load.
load() {
	insmod ./$module.ko "$@"
}

# A module whose bios are lost waits for them for ever, and no signal ends that.
unload() {
	rmmod $module &
	left=$((10 * (stall + 120)))
	while ! gone && [ $left -gt 0 ]; do
		sleep 0.1
		left=$((left - 1))
	done
	gone
}

gone() {
	! grep -q "^$module " /proc/modules
}

# ends N SECONDS: the Nth verdict comes within that time.
ends() {
	left=$2
	while [ "$(verdicts '')" -lt "$1" ] && [ "$left" -gt 0 ]; do
		sleep 1
		left=$((left - 1))
	done
	[ "$(verdicts '')" -ge "$1" ]
}

loads_again() {
	round=0
	while [ $round -lt 20 ]; do
		load seed=$round order=1 stall=$stall || return
		# Unloaded in its first moment, and in full run.
		[ $((round % 4)) -ne 0 ] || sleep 2
		unload || return
		round=$((round + 1))
	done
}

# A run that ends early says so as well.
all_succeeded() {
	ends 21 30
	is 21 verdicts SUCCESS
}

lines() {
	grep -sc "$module: [0-9]* s: " messages
}

# write_files DIR: uncached writes of DIR/file, fsync and reads until there is a file DIR/stop,
# which it removes unless something failed. How often is in DIR/times.
write_files() {
	number=0
	while [ ! -e "$1/stop" ]; do
		for block in 4096 131072; do
			{
				./io write sync "$DONTCACHE" "$1/file" 0 2097152 $block &&
					./io read sync "$DONTCACHE" "$1/file" 0 2097152 $block
			} > "files.${1##*/}" 2>&1 || return
		done
		number=$((number + 1))
		echo $number > "$1/times"
	done
	rm "$1/stop"
}

# has_files FS MIB: makes one and begins to write to it.
has_files() {
	nullb "nullb$1" "$2" completion_nsec=200000 hw_queue_depth=8 max_sectors=256 blocksize=4096
	mkdir -p "/mnt/$1"
	"mkfs.$1" -q "/dev/nullb$1" && mount -t "$1" "/dev/nullb$1" "/mnt/$1" || return
	write_files "/mnt/$1" &
}

# stop_files FS: it was written to and read until now, and can be unmounted.
stop_files() {
	: > "/mnt/$1/stop"
	left=600
	while [ -e "/mnt/$1/stop" ] && [ $left -gt 0 ]; do
		sleep 0.1
		left=$((left - 1))
	done
	echo "# $1: $(cat "/mnt/$1/times") times; last: $(cat "files.$1")"
	[ "$(cat "/mnt/$1/times")" -gt 0 ] && [ ! -e "/mnt/$1/stop" ] && umount "/mnt/$1"
}

dmesg -n 4
dmesg --follow > messages &
follower=$!

check "xfs is written to" has_files xfs 320
check "ext4 is written to" has_files ext4 64
check "module loads" load "seconds=$TORTURE_SECONDS" "seed=$TORTURE_SEED" order=1 stall=$stall
check "run ends" ends 1 $((TORTURE_SECONDS + 2 * stall + 120))
check "verdict is SUCCESS" [ "$(verdicts SUCCESS)" = 1 ]
check "a line a second, or every other" [ "$(lines)" -ge $((TORTURE_SECONDS / 2)) ]
check "all CPUs are online again" is "$cpus" cat /sys/devices/system/cpu/online
if [ $failed = 0 ]; then
	check "module unloads" unload
	check "module loads and unloads 20 times" loads_again
	check "their verdicts are SUCCESS" all_succeeded
	check "all CPUs are online after that" is "$cpus" cat /sys/devices/system/cpu/online
else
	# Bios that are lost would keep it there, and all of this waiting.
	skip "unload, and load again" "the first run failed"
fi
check "xfs was written to, and read, all the time" stop_files xfs
check "ext4 was written to, and read, all the time" stop_files ext4
dropped=$(stat dontcache_drop)
missed=$(stat dontcache_missed)
check "$dropped pages were dropped" [ "$dropped" -gt 0 ]
check "$missed folios were given up, one in a hundred at most" [ $((100 * missed)) -le "$dropped" ]
# What was printed last has to get there.
sleep 1
kill $follower
grep "$module: " messages | sed "s/^\[ *//"
check "the kernel has nothing to complain about" awk -f splats.awk messages

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
