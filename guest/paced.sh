# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# The policy "paced": writers wait for the device, what is small gathers, and all of it is
# written soon. Under lazy all of that fails. What is said of unmount, of data and of a killed
# writer holds under any policy. Sourced by functional.sh.

. ./common.sh

# uncached_peak COMMAND...: the most pages that are dirty or under writeback while it runs.
uncached_peak() {
	"$@" > peak.log &
	command=$!
	peak=0
	while kill -0 $command 2> /dev/null; do
		now=$(awk '$1 == "nr_dirty" || $1 == "nr_writeback" { nr += $2 } END { print nr }' /proc/vmstat)
		[ "$now" -le "$peak" ] || peak=$now
		sleep 0.005
	done
	wait $command && is ok cat peak.log
}

# sectors_written DEVICE
sectors_written() {
	awk '{ print $7 }' "/sys/class/block/$1/stat"
}

# More than the bound at once: 4 MiB, and one write of each writer. The lazy policy has 64.
bounded() {
	uncached_peak put $DONTCACHE "$1" 0 67108864 65536
	bound_status=$?
	echo "# at most $peak pages were to be written"
	[ $bound_status = 0 ] && [ "$peak" -le 2048 ]
}

# Nobody asks for it to be written.
gone_by_itself() {
	put $DONTCACHE "$1" 0 $len "$2" > put.log && is "0 pages cached" io gone "$1" 0 $len 1000
}

# What was cached before is written as well, and stays.
overwritten() {
	is ok io put 0 none "$1" 0 $len 65536 && sync "$1" || return 1
	before=$(sectors_written nullb8)
	is ok io put $DONTCACHE none "$1" 0 $len 4096 && sleep 1 || return 1
	written=$(($(sectors_written nullb8) - before))
	echo "# $written sectors of $((len / 512))"
	[ $written -ge $((len / 512)) ] && is $pages io cached "$1" 0 $len
}

unmounted_at_once() {
	put $DONTCACHE /mnt/fs/last 0 $len 4096 > put.log && umount /mnt/fs && mount /dev/nullb8 /mnt/fs
}

# A writer that waits for a device which takes 1 s for each request can be killed.
killed() {
	nullb nullb9 64 completion_nsec=1000000000 hw_queue_depth=4 blocksize=4096
	exec 9<> /dev/nullb9
	io put $DONTCACHE none /dev/nullb9 0 67108864 65536 > killed.log &
	writer=$!
	sleep 2
	kill -0 $writer && kill -9 $writer
	for tries in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.1
		kill -0 $writer 2> /dev/null || break
	done
	echo "# gone at try $tries"
	! kill -0 $writer 2> /dev/null
	killed_status=$?
	wait $writer
	exec 9<&-
	return $killed_status
}

paced_tests() {
	nullb nullb8 320 completion_nsec=4000000 hw_queue_depth=4 max_sectors=256 blocksize=4096
	set_policy paced
	check "paced: set" is paced cat $policy
	for fs in $filesystems; do
		mkfs_on "$fs" /dev/nullb8 && mount -t "$fs" /dev/nullb8 /mnt/fs || exit 1
		check "paced: $fs, writers wait" bounded /mnt/fs/bounded
		check "paced: $fs, and leave nothing" is "0 pages cached" io gone /mnt/fs/bounded 0 67108864 1000
		for block in 512 4096 65536; do
			check "paced: $fs, writes of $block go by themselves" gone_by_itself /mnt/fs/small-$block $block
		done
		check "paced: $fs, overwrites of what is cached are written" overwritten /mnt/fs/cached
		check "paced: $fs, unmount does not wait for a worker" unmounted_at_once
		check "paced: $fs, and loses nothing" is ok io read sync 0 /mnt/fs/last 0 $len 65536
		umount /mnt/fs
	done
	check "paced: a writer that waits can be killed" killed
	set_policy flush
}
