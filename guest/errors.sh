# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Devices that fail, and little memory: errors get to fsync(), pages do not stay, and
# nothing waits for ever. Sourced by functional.sh.

. ./common.sh

inject=/sys/kernel/debug/fail_make_request

# failing DEVICE PERCENT: so many of its bios fail from now on; 0 ends that.
failing() {
	echo "$2" > $inject/probability
	echo -1 > $inject/times
	echo 1 > $inject/interval
	# Each would print a stack.
	echo 0 > $inject/verbose
	echo $(($2 > 0)) > "/sys/block/$1/make-it-fail"
}

# error_tests NAME DEVICE FILE: of a file that is there already, since a log that cannot be
# written shuts the filesystem down.
error_tests() {
	for flag in $flags; do
		drop_caches
		# The inode is not what is to fail.
		command stat "$3" > /dev/null
		failing "$2" 100
		check "errors: $1 $flag, fsync has it" is EIO io write sync "$flag" "$3" 0 $len 65536
		failing "$2" 0
		# Where a write was told of it, fsync() is yet to be.
		sync "$3" 2> /dev/null || echo "# a write was told"
		case $1-$ENGINE in
		ext4-c | block-c) skip "errors: $1 $flag, no page stays" "upstream keeps what buffer heads failed to write" ;;
		*) check "errors: $1 $flag, no page stays" is "0 pages cached" io gone "$3" 0 $len 1000 ;;
		esac
		check "errors: $1 $flag, fsync of a later write has none" io write sync "$flag" "$3" 0 $len 65536
		check "errors: $1 $flag, all is read back" is ok io read sync 0 "$3" 0 $len 65536
	done
}

# Some bios of each write fail, in many writes: whatever the folios then are, they are let go.
some_fail() {
	# What was read without the flag stays.
	drop_caches
	failing "$1" 20
	round=0
	while [ $round -lt 20 ]; do
		# Some of these say EIO.
		io write sync $DONTCACHE "$2" 0 $len 65536 > some.log
		round=$((round + 1))
	done
	failing "$1" 0
	sync "$2"
	is "ok, 0 pages cached" io write sync $DONTCACHE "$2" 0 $len 65536
}

# footprint DEVICE: kB of uncached pages that are dirty or under writeback, of all its cgroups. By the
# shell alone: what gathers does not wait for programs to start.
footprint() {
	read -r number < "/sys/block/$1/dev"
	kb=0
	while read -r name value _; do
		[ "$name" != footprint ] || kb=$((kb + value))
	done < "/sys/kernel/debug/bdi/$number/dontcache" && echo $kb
}

# drained DEVICE: nothing is to be written there that was written without caching.
drained() {
	is 0 footprint "$1" > drained.log
}

# fill FILE: four write to FILE.1 to FILE.4 until each is told that the disk is full.
fill() {
	# There is no room for an inode then.
	touch "$1.1" "$1.2" "$1.3" "$1.4"
	writers=
	for nr in 1 2 3 4; do
		# What waits for ever is not to keep the others from being seen.
		timeout 60 ./io put $DONTCACHE none "$1.$nr" 0 67108864 65536 > "full.$nr" &
		writers="$writers $!"
	done
	for writer in $writers; do
		wait "$writer"
	done
	for nr in 1 2 3 4; do
		is ENOSPC cat "full.$nr" || return 1
	done
}

# filled FILE: what was written before that is on the disk.
filled() {
	drop_caches
	for nr in 1 2 3 4; do
		size=$(command stat -c %s "$1.$nr")
		echo "# $size bytes"
		is ok io read sync 0 "$1.$nr" 0 "$size" 65536 || return 1
	done
}

# full_tests NAME DEVICE: nobody asks for anything to be written.
full_tests() {
	fallocate -l $(($(df -B 1 --output=avail /mnt/fs | tail -n 1) - 16777216)) /mnt/fs/rest || exit 1
	check "errors: $1, four writers are told that the disk is full" fill /mnt/fs/full
	check "errors: $1, nothing waits to be written then" eventually 2 drained "$2"
	check "errors: $1, what found room is read back" filled /mnt/fs/full
	rm /mnt/fs/rest
	check "errors: $1, with room again another file is written" \
		is ok timeout 60 ./io put $DONTCACHE none /mnt/fs/other 0 16777216 65536
	check "errors: $1, by itself" eventually 2 drained "$2"
	check "errors: $1, and dropped" is "0 pages cached" io gone /mnt/fs/other 0 16777216 1000
	rm /mnt/fs/full.* /mnt/fs/other
}

# read_only DEVICE FILE: what has gathered when the file system becomes read-only is written, and
# later writes are.
read_only() {
	gathered=0
	for round in 1 2 3 4 5 6 7 8 9 10; do
		is ok io put $DONTCACHE none "$2" 0 100000 512 || return 1
		[ "$(footprint "$1")" = 0 ] || gathered=$((gathered + 1))
		mount -o remount,ro /mnt/fs && is 0 footprint "$1" || return 1
		echo 3 > /proc/sys/vm/drop_caches
		is ok io read sync 0 "$2" 0 100000 4096 && ! touch "$2" 2> /dev/null &&
			mount -o remount,rw /mnt/fs && rm "$2" || return 1
	done
	echo "# $gathered of $round times there was something to be written"
	[ $gathered -gt 0 ]
}

paced_error_tests() {
	if [ $default_policy != paced ]; then
		skip "errors: a full disk, and one that is read-only" "this kernel does not pace writers"
		return
	fi
	set_policy paced
	nullb nullb20 320 completion_nsec=4000000 hw_queue_depth=4 max_sectors=256 blocksize=4096
	for fs in $filesystems; do
		mkfs_on "$fs" /dev/nullb20 && mount_kind "$fs" /dev/nullb20 || exit 1
		full_tests "$fs" nullb20
		check "errors: $fs becomes read-only under what gathers" read_only nullb20 /mnt/fs/file
		umount /mnt/fs
	done
	echo 0 > /sys/kernel/config/nullb/nullb20/power
	rmdir /sys/kernel/config/nullb/nullb20
}

failing_tests() {
	paced_error_tests
	if [ ! -d $inject ]; then
		skip "errors" "no CONFIG_FAIL_MAKE_REQUEST"
		return
	fi
	nullb nullb9 320 completion_nsec=200000 hw_queue_depth=8 max_sectors=256 blocksize=4096
	for fs in $filesystems; do
		mkfs_on "$fs" /dev/nullb9 && mount_kind "$fs" /dev/nullb9 || exit 1
		io write sync 0 /mnt/fs/file 0 $len 65536 > /dev/null
		sync
		error_tests "$fs" nullb9 /mnt/fs/file
		check "errors: $fs can be unmounted" umount /mnt/fs
	done
	exec 9< /dev/nullb9
	error_tests block nullb9 /dev/nullb9
	check "errors: block, a fifth of all bios" some_fail nullb9 /dev/nullb9
	exec 9<&-
}

cgroups=/mnt/cgroup

# in_cgroup COMMAND...: with 32 MiB for all, page cache included.
in_cgroup() {
	(
		# shellcheck disable=SC2016 # that of the inner shell
		sh -c 'echo $PPID' > "$cgroups/small/cgroup.procs"
		"$@"
	)
}

# out_of_memory: how often the cgroup was.
out_of_memory() {
	awk '$1 == "oom_kill" || $1 == "oom" { nr += $2 } END { print nr }' $cgroups/small/memory.events
}

# small FLAG FILE: twice what the cgroup may have.
small() {
	in_cgroup io put "$1" none "$2" 0 67108864 65536 > small.log
	is ok cat small.log && gone_soon "$2" 67108864 && is 0 out_of_memory
}

memory_tests() {
	mkdir -p $cgroups
	mount -t cgroup2 none $cgroups && echo +memory > $cgroups/cgroup.subtree_control && mkdir $cgroups/small ||
		exit 1
	echo 33554432 > $cgroups/small/memory.max
	nullb nullb10 400 completion_nsec=1000000 hw_queue_depth=8 max_sectors=256
	mkfs_on xfs /dev/nullb10 && mount_kind xfs /dev/nullb10 || exit 1
	in_cgroup io put 0 none /mnt/fs/cached 0 67108864 65536 > small.log
	check "memory: without the flag it is short" test "$(awk '$1 == "max" { print $2 }' $cgroups/small/memory.events)" -gt 0
	if [ "$ENGINE" = c ]; then
		check "memory: 64 MiB in a cgroup of 32" small $DONTCACHE /mnt/fs/small
	else
		for name in $policies; do
			set_policy "$name"
			check "memory: 64 MiB in a cgroup of 32, $name" small $DONTCACHE "/mnt/fs/small.$name"
			# The disk has no room for all of them.
			rm -f "/mnt/fs/small.$name"
		done
		set_policy $default_policy
	fi
	umount /mnt/fs
	rmdir $cgroups/small
	umount $cgroups
}

# That a task that waits for ever would be reported, by one that waits for long.
hung_tests() {
	if [ ! -e /proc/sys/kernel/hung_task_timeout_secs ]; then
		skip "a hung task is reported" "no CONFIG_DETECT_HUNG_TASK"
		return
	fi
	nullb nullb11 16 completion_nsec=4000000000 hw_queue_depth=8 blocksize=4096
	# That one is not what the kernel's log is judged by in the end.
	dmesg | grep -v virtme-ng-init >> dmesg.log
	dmesg -C
	timeout_before=$(cat /proc/sys/kernel/hung_task_timeout_secs)
	echo 1 > /proc/sys/kernel/hung_task_check_interval_secs
	echo 1 > /proc/sys/kernel/hung_task_timeout_secs
	io write sync $DONTCACHE /dev/nullb11 0 4096 4096 > /dev/null
	check "a hung task is reported" sh -c "dmesg | grep -q 'blocked.* for more than'"
	dmesg -C
	echo "$timeout_before" > /proc/sys/kernel/hung_task_timeout_secs
	echo 10 > /proc/sys/kernel/hung_task_check_interval_secs
}
