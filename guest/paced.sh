# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# The policy "paced": writers wait for the device, what is small gathers, and all of it is
# written soon. Under lazy all of that fails. What is said of unmount, of data and of a killed
# writer holds under any policy. Sourced by functional.sh.

. ./common.sh
. ./errors.sh

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

# footprint_peak DEVICE COMMAND...: the most kB without caching that are to be written there while it runs.
footprint_peak() {
	peak_at=$1
	shift
	"$@" &
	command=$!
	peak=0
	while kill -0 $command 2> /dev/null; do
		now=$(footprint "$peak_at")
		[ "$now" -le "$peak" ] || peak=$now
		sleep 0.005
	done
	wait $command
}

# sectors_written DEVICE
sectors_written() {
	awk '{ print $7 }' "/sys/class/block/$1/stat"
}

# bounded FILE PAGES: much more than that is written, and no more than that waits to be.
bounded() {
	uncached_peak put $DONTCACHE "$1" 0 67108864 65536
	bound_status=$?
	echo "# at most $peak pages were to be written"
	[ $bound_status = 0 ] && [ "$peak" -le "$2" ]
}

# Four that write a file each.
together() {
	writers=
	for nr in 1 2 3 4; do
		put $DONTCACHE "$1.$nr" 0 8388608 1048576 &
		writers="$writers $!"
	done
	for writer in $writers; do
		wait "$writer" || return 1
	done
}

# Who submits waits for the queue of the device before the bound is reached.
queued() {
	trace_while together "$1" || return 1
	below=$(sed -n 's/.*dontcache_pause:.* footprint=\([0-9]*\) .* bound=\([0-9]*\) .*/\1 \2/p' trace |
		awk '$1 + 256 <= $2 { nr++ } END { print nr + 0 }')
	echo "# $below of $(traced_lines dontcache_pause) pauses below the bound"
	# If this guest gets no CPU, more is to be ahead of the device.
	[ "$below" -gt $(($(traced_lines dontcache_pause) / 4)) ]
}

# The bdi of a disk has its own policy and bound, whatever the sysctl says.
knobs() {
	bdi=/sys/block/nullb15/bdi
	set_policy lazy
	# Less than the queue of the device. What is seen of it is of counters of each CPU.
	echo paced > $bdi/dontcache_policy && echo 130000 > $bdi/dontcache_max_bytes &&
		is paced cat $bdi/dontcache_policy && is 131072 cat $bdi/dontcache_max_bytes &&
		bounded "$1" 128
	knobs_status=$?
	set_policy paced
	echo default > $bdi/dontcache_policy && echo 0 > $bdi/dontcache_max_bytes &&
		is default cat $bdi/dontcache_policy && is 0 cat $bdi/dontcache_max_bytes &&
		return $knobs_status
}

# set_wrong FILE VALUE: it is refused, and changes nothing.
set_wrong() {
	before=$(cat "$1")
	! echo "$2" 2> /dev/null > "$1" && is "$before" cat "$1"
}

# A worker that comes while the filesystem is being unmounted lets it be.
unmounted_under_worker() {
	round=0
	while [ $round -lt 20 ]; do
		put $DONTCACHE /mnt/fs/last 0 $len 4096 > put.log && sleep 0.0$((round % 5)) &&
			umount /mnt/fs && mount /dev/nullb15 /mnt/fs || return 1
		round=$((round + 1))
	done
}

# Microseconds in which somebody waited for a device: adds up every two seconds.
io_pressure() {
	sleep 2.1
	sed -n 's/^some.*total=//p' /proc/pressure/io
}

# What a worker writes of it is there, too.
put_all() {
	put "$@" && eventually 5 drained nullb13
}

# What waits is seen: by tracepoints, as pressure of I/O, and as a histogram.
reported() {
	page=/sys/kernel/debug/bdi/$(cat /sys/block/nullb13/dev)/dontcache
	echo 524288 > /sys/block/nullb13/bdi/dontcache_max_bytes
	pressure=$(io_pressure)
	trace_while put_all $DONTCACHE "$1" 0 16777216 65536 || return 1
	pressure=$(($(io_pressure) - pressure))
	waited=$(traced_sum dontcache_pause usecs)
	echo "# $(traced_lines dontcache_decide) decisions, $(traced_lines dontcache_piece) pieces of" \
		"$(traced_sum dontcache_piece started) pages, $(traced_lines dontcache_pause) pauses, $waited us," \
		"$pressure us of pressure"
	echo 0 > /sys/block/nullb13/bdi/dontcache_max_bytes
	cat "$page"
	is $((16777216 / 65536)) traced_lines dontcache_decide &&
		[ "$(traced_sum dontcache_piece started)" = $((16777216 / 4096)) ] &&
		[ "$waited" -gt 0 ] && [ "$pressure" -ge $((waited / 8)) ] &&
		awk '/^pauses/ { nr += $NF } /^written/ { kb = $2 } END { exit !(nr > 0 && kb >= 16384) }' "$page"
}

# uring_beside FILE: io_uring is done before two others that have eight times as much to write each.
uring_beside() {
	put $DONTCACHE "$1.1" 0 16777216 65536 &
	first=$!
	put $DONTCACHE "$1.2" 0 16777216 65536 &
	second=$!
	sleep 0.5
	is "ok, 0 pages cached" io write uring $DONTCACHE "$1" 0 2097152 65536 && kill -0 $first && kill -0 $second
	uring_status=$?
	wait $first && wait $second && return $uring_status
}

# uring_waits FS: where there is no room io_uring does not go on without it, nor is it left waiting. ext4
# refuses what must not sleep, XFS takes an overwrite. The queue of the device has room for all.
uring_waits() {
	nullb nullb19 320 completion_nsec=160000000 hw_queue_depth=64 max_sectors=256 blocksize=4096
	mkfs_on "$1" /dev/nullb19 && mount -t "$1" /dev/nullb19 /mnt/fs &&
		is ok io put 0 none /mnt/fs/uring 0 2097152 65536 && drop_caches || return 1
	echo 2097152 > /sys/block/nullb19/bdi/dontcache_max_bytes
	trace_while footprint_peak nullb19 uring_beside /mnt/fs/uring
	uring_status=$?
	umount /mnt/fs
	echo 0 > /sys/kernel/config/nullb/nullb19/power
	rmdir /sys/kernel/config/nullb/nullb19
	waits=$(grep -c 'iou-wrk.*dontcache_pause:' trace)
	echo "# at most $peak kB were to be written, workers of io_uring have waited $waits times"
	[ $uring_status = 0 ] && [ "$peak" -le 2560 ] && [ "$waits" -gt 0 ]
}

# waits_of FS: what is seen of those that wait, on a device that is slower than a CPU that is emulated: one
# that writers do not keep up with is not waited for.
waits_of() {
	nullb nullb13 320 completion_nsec=40000000 hw_queue_depth=4 max_sectors=256 blocksize=4096
	mkfs_on "$1" /dev/nullb13 && mount -t "$1" /dev/nullb13 /mnt/fs || exit 1
	check "paced: $1, writers wait for the queue" queued /mnt/fs/queued
	check "paced: $1, what waits is seen" reported /mnt/fs/bounded
	umount /mnt/fs
	echo 0 > /sys/kernel/config/nullb/nullb13/power
	rmdir /sys/kernel/config/nullb/nullb13
}

# Who does not call fsync() hears of an error as well, once, and fsync() does in any case.
error_heard() {
	# What there is to write of earlier tests would fail too, and with it the file system.
	umount /mnt/fs && mount /dev/nullb15 /mnt/fs &&
		is ok io put 0 none "$1" 0 $len 65536 && sync "$1" || return 1
	failing nullb15 100
	told=$(put $DONTCACHE "$1" 0 $len 65536)
	# It may have been over before the first request was.
	sleep 1
	failing nullb15 0
	told="$told $(put $DONTCACHE "$1" 0 65536)"
	case $told in
	"EIO ok" | "ok EIO") ;;
	*)
		echo "# told \"$told\""
		return 1
		;;
	esac
	is EIO io write sync 0 "$1" 0 4096 4096 &&
		is ok io put $DONTCACHE none "$1" 0 $len 65536
}

# write_lost FILE: an uncached write that nobody was told of could not be written.
write_lost() {
	umount /mnt/fs && mount /dev/nullb15 /mnt/fs &&
		is ok io put 0 none "$1" 0 $len 65536 && sync "$1" || return 1
	failing nullb15 100
	told=$(put $DONTCACHE "$1" 0 4096)
	sleep 1
	failing nullb15 0
	[ "$told" = ok ]
}

# What fsync() has said is not said again to who writes.
error_told() {
	write_lost "$1" && is EIO io write sync 0 "$1" 65536 4096 4096 &&
		is ok io put $DONTCACHE none "$1" 0 4096 4096
}

# Who is told of an earlier error has written nothing, and fsync() is told as well.
error_comes_first() {
	write_lost "$1" && is EIO io put $DONTCACHE none "$1" $len 4096 4096 &&
		is $len command stat -c %s "$1" &&
		is ok io put $DONTCACHE none "$1" $len 4096 4096 &&
		is $((len + 4096)) command stat -c %s "$1" && ! sync "$1" 2> /dev/null &&
		truncate -s $len "$1"
}

# A write that must not sleep is refused while there is no room, and sees to it that there is: what
# others have left dirty is on no list. XFS may refuse it for other reasons.
refused_for_a_while() {
	rm /mnt/fs/bounded
	is ok io put 0 none "$1" 0 $len 65536 && sync "$1" || return 1
	quiet
	set_policy lazy
	is ok io put $DONTCACHE none "$1.lazy" 0 33554432 4096
	refused_status=$?
	set_policy paced
	echo 524288 > /sys/block/nullb15/bdi/dontcache_max_bytes
	sleep 1
	left=$(awk '$1 == "nr_dirty" { print $2 }' /proc/vmstat)
	refused=$(put $((DONTCACHE | 0x8)) "$1" 0 4096)
	tries=0
	while [ "$(awk '$1 == "nr_dirty" { print $2 }' /proc/vmstat)" -ge 128 ] && [ $tries -lt 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	loud
	echo 0 > /sys/block/nullb15/bdi/dontcache_max_bytes
	rm "$1.lazy"
	echo "# beside $left dirty pages $refused, after $tries tenths of a second there is room"
	[ $refused_status = 0 ] && [ "$left" -gt 3000 ] && [ "$refused" = EAGAIN ] && [ $tries -lt 100 ]
}

# Nobody asks for it to be written.
gone_by_itself() {
	put $DONTCACHE "$1" 0 $len "$2" > put.log && is "0 pages cached" io gone "$1" 0 $len 1000
}

# Hundredths of a second since boot.
now() {
	tr -d . < /proc/uptime | cut -d ' ' -f 1
}

# sync(2) waits for what was dirty when it was called, and not for what a stream adds to it: four of
# five do, since where all is emulated it may have to wait for a CPU, and since one that waits for
# the stream may be lucky once.
sync_is_first() {
	(
		put $DONTCACHE "$1" 0 201326592 1048576 > put.log
		sync_status=$?
		now > end.log
		exit $sync_status
	) &
	stream=$!
	before=$(sectors_written nullb15)
	tries=0
	while [ "$(sectors_written nullb15)" -lt $((before + 8192)) ] && [ $tries -lt 300 ]; do
		sleep 0.01
		tries=$((tries + 1))
	done
	syncs=
	for try in 1 2 3 4 5; do
		start=$(now)
		sync
		syncs="$syncs $(($(now) - start)):$(now)"
	done
	wait $stream || return 1
	end=$(cat end.log)
	soon=0
	for try in $syncs; do
		took=${try%:*}
		rest=$((end - ${try#*:}))
		echo "# sync took $took hundredths of a second, the rest of the stream $rest"
		# 8 to 17 of 120, and 49 or more if it waits for the stream.
		[ $rest -lt 20 ] || [ $((4 * took)) -gt $rest ] || soon=$((soon + 1))
	done
	[ $soon -ge 4 ]
}

# allocations FILE: how many a first write makes in a cgroup that has not written before, in $nth.
# Each fails once, and nothing else does.
allocations() {
	nth=0
	while [ $nth -lt 100 ]; do
		nth=$((nth + 1))
		mkdir $cgroups/nth || return 1
		(
			# shellcheck disable=SC2016 # that of the inner shell
			sh -c 'echo $PPID' > $cgroups/nth/cgroup.procs
			io nth $nth $DONTCACHE "$1" 262144
		) > nth.log
		rm -f "$1"
		rmdir $cgroups/nth || return 1
		case $(cat nth.log) in
		"ok, it failed") ;;
		"ok, there are less") return 0 ;;
		*)
			echo "# allocation $nth: $(cat nth.log)"
			return 1
			;;
		esac
	done
	return 1
}

# What remembers a file, and what counts a cgroup's pages, may be without memory.
without_memory() {
	echo 0 > /sys/kernel/debug/failslab/verbose
	mkdir -p $cgroups && mount -t cgroup2 none $cgroups &&
		echo "+memory +io" > $cgroups/cgroup.subtree_control || return 1
	allocations "$1"
	nth_status=$?
	echo "# $((nth - 1)) allocations"
	umount $cgroups
	[ $nth_status = 0 ] && [ "$nth" -gt 5 ]
}

# What was cached before is written as well, and stays.
overwritten() {
	is ok io put 0 none "$1" 0 $len 65536 && sync "$1" || return 1
	before=$(sectors_written nullb15)
	is ok io put $DONTCACHE none "$1" 0 $len 4096 && sleep 1 || return 1
	written=$(($(sectors_written nullb15) - before))
	echo "# $written sectors of $((len / 512))"
	[ $written -ge $((len / 512)) ] && is $pages io cached "$1" 0 $len
}

# append_sectors FLAGS [MICROSECONDS]: how many sectors 2048 appends of one sector, so long after each
# other, and fsync() after them come to, in $written.
append_sectors() {
	rm -f /mnt/fs/append
	sync
	before=$(sectors_written nullb15)
	is ok io put "$1" append /mnt/fs/append 0 1048576 512 "${2:-0}" && sync /mnt/fs/append || return 1
	written=$(($(sectors_written nullb15) - before))
}

# appended FS: while appends go on, a page is written when it is full, and not before.
appended() {
	# It writes for minutes what no test has asked for.
	[ "$1" != ext4 ] || mount -o remount,noinit_itable /mnt/fs || return 1
	quiet
	append_sectors 0
	append_status=$?
	buffered=$written
	[ $append_status = 0 ] && append_sectors $DONTCACHE 1000
	append_status=$?
	loud
	echo "# $written sectors, $buffered buffered"
	[ $append_status = 0 ] && [ "$written" -ge 2048 ] && [ $((10 * written)) -le $((11 * buffered)) ] &&
		is ok io read sync 0 /mnt/fs/append 0 1048576 65536
}

# A direct write leaves nothing in the page cache that anybody could follow. That of a block device
# comes by where others are followed.
left_alone() {
	trace_while is ok io put $DONTCACHE direct "$1" 0 $len 65536 && is 0 traced_lines dontcache_decide &&
		trace_while is ok io put $DONTCACHE none "$1" 0 $len 65536 &&
		is $((len / 65536)) traced_lines dontcache_decide
}

# not_refused FILE: a write that must not sleep goes through in the end, though nobody waits who would
# find out what for. What is not waited for is forgotten after nine seconds.
not_refused() {
	sleep 10
	tries=0
	start=$(now)
	while
		refused=$(put $((DONTCACHE | 0x8)) "$1" 0 4096)
		[ "$refused" != ok ] && [ $tries -lt 50 ]
	do
		tries=$((tries + 1))
		sleep 0.1
	done
	echo "# $refused after $tries refusals, in $(($(now) - start)) hundredths of a second"
	[ "$refused" = ok ] && [ $tries -gt 2 ]
}

# two_partitions DISK NSEC OPTIONS: ext4 on the first, and xfs on the second.
two_partitions() {
	nullb "$1" 512 "completion_nsec=$2" hw_queue_depth=4 max_sectors=256 blocksize=4096
	addpart "/dev/$1" 1 0 307200 && addpart "/dev/$1" 2 307200 741376 && mkdir -p /mnt/stuck &&
		mkfs_on ext4 "/dev/${1}p1" && mount -t ext4 "/dev/${1}p1" /mnt/stuck &&
		mkfs_on xfs "/dev/${1}p2" && mount -t xfs -o "$3" "/dev/${1}p2" /mnt/fs
}

# leave_stuck BYTES: most of so much is dirty, says $stuck, and nobody can write it any more.
leave_stuck() {
	set_policy lazy
	is ok io put $DONTCACHE none /mnt/stuck/file 0 "$1" 4096 && xfs_io -x -c shutdown /mnt/stuck
	stuck_status=$?
	set_policy paced
	sleep 1
	stuck=$(awk '$1 == "nr_dirty" { print $2 }' /proc/vmstat)
	return $stuck_status
}

# Who writes to one partition does not wait for what nobody can write to another of the disk, but
# for the second after which that is known. Then it is known to those who may not wait as well.
beside_what_cannot_be_written() {
	two_partitions nullb17 4000000 lazytime || return 1
	start=$(now)
	is ok io put $DONTCACHE none /mnt/fs/before 0 33554432 65536 && rm /mnt/fs/before || return 1
	alone=$(($(now) - start))
	quiet
	leave_stuck 33554432
	start=$(now)
	[ $stuck_status = 0 ] && is ok io put $DONTCACHE none /mnt/fs/file 0 33554432 65536
	stuck_status=$?
	took=$(($(now) - start))
	echo "# beside $stuck dirty pages it took $took hundredths of a second, $alone alone"
	[ $stuck_status = 0 ] && not_refused /mnt/fs/file
	stuck_status=$?
	[ $stuck_status = 0 ] && is ok io read sync 0 /mnt/fs/file 0 33554432 65536
	stuck_status=$?
	loud
	umount /mnt/fs /mnt/stuck && [ $stuck_status = 0 ] && [ "$stuck" -gt 3000 ] &&
		[ $took -lt $((500 + 2 * alone)) ]
}

# seen_of DISK NAME: the sum of its numbers of that name in debugfs: pieces, or pauses of all lengths.
seen_of() {
	awk -v name="$2" 'index($1, name) == 1 { nr += $NF } END { print nr + 0 }' \
		"/sys/kernel/debug/bdi/$(cat "/sys/block/$1/dev")/dontcache"
}

# What no worker has, since nobody can write it, is half of the bound of 1024 pages. No worker is called for each
# of 500 small writes to another partition all the same.
gathers_beside_what_cannot_be_written() {
	two_partitions nullb19 1000000 defaults || return 1
	quiet
	leave_stuck 3145728
	pieces=$(seen_of nullb19 pieces)
	[ $stuck_status = 0 ] && is ok io put $DONTCACHE none /mnt/fs/file 0 2048000 4096 2000
	gather_status=$?
	pieces=$(($(seen_of nullb19 pieces) - pieces))
	loud
	echo "# beside $stuck dirty pages 500 are written in $pieces pieces"
	umount /mnt/fs /mnt/stuck && [ $gather_status = 0 ] && [ "$stuck" -gt 512 ] &&
		[ "$stuck" -lt 1024 ] && [ $pieces -lt 250 ]
}

# A writer that waits for a device which takes 1 s for each request can be killed.
killed() {
	nullb nullb16 64 completion_nsec=1000000000 hw_queue_depth=4 blocksize=4096
	exec 9<> /dev/nullb16
	io put $DONTCACHE none /dev/nullb16 0 67108864 65536 > killed.log &
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

# What is in a journal is dirty until that is written: it is not tried without a pause, but 20 times,
# and up to 100 if the file is under writeback (AGAIN_BUSY of pending.rs).
journaled() {
	mkfs_on ext4-journal /dev/nullb15 && mount_kind ext4-journal /dev/nullb15 || return 1
	tried=$(delta dontcache_start is ok io put $DONTCACHE none /mnt/fs/journaled 0 8388608 1048576)
	echo "# $tried pages tried for 2048"
	umount /mnt/fs
	[ "$tried" -le $((2048 * 100)) ]
}

# The driver of a disk goes, and what its queue had of it, while a writer has written all but a page of
# its own that is read from a disk that takes long. What it does then is for KASAN to judge. The page is
# behind a large folio, all of which is read before it is written.
disk_goes() {
	nullb nullb14 64 blocksize=4096 && nullb nullb13 64 completion_nsec=1500000000 blocksize=4096 || return 1
	./io lend $DONTCACHE /dev/nullb13 /dev/nullb14 2101248 > lend.log 2>&1 &
	lender=$!
	for tries in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.1
		case $(readlink /proc/$lender/fd/*) in
		*nullb14*) break ;;
		esac
	done
	sleep 0.7
	kill -0 $lender && echo 0 > /sys/kernel/config/nullb/nullb14/power
	disk_status=$?
	wait $lender
	echo "# after $tries tenths of a second, $(cat lend.log)"
	grep -q '^ok' lend.log || disk_status=1
	rmdir /sys/kernel/config/nullb/nullb14 /sys/kernel/config/nullb/nullb13
	return $disk_status
}

# writes_on FILE: again and again, until "stop" is there.
writes_on() {
	nr=0
	while [ ! -e stop ]; do
		nr=$((nr + 1))
		io put $DONTCACHE none "$1" 0 $len 65536 > "writes.$nr" || return 1
	done
	echo $nr > writes
}

# All tasks are frozen under writers, who may wait for room, and go on. No device is suspended: 9p,
# which has the guest's root, does not come back from that.
suspend_tests() {
	if [ ! -e /sys/power/pm_test ]; then
		skip suspend "not in this kernel"
		return
	fi
	echo 1 > /sys/module/suspend/parameters/pm_test_delay
	mkfs_on xfs "$DISK" && mount -t xfs "$DISK" /mnt/fs || exit 1
	rm -f stop writes
	# So that they wait most of the time.
	echo 524288 > "/sys/block/${DISK#/dev/}/bdi/dontcache_max_bytes"
	paused=$(seen_of "${DISK#/dev/}" pauses)
	writes_on /mnt/fs/file &
	for round in 1 2 3; do
		sleep 1
		check "suspend: writers are frozen, round $round" sh -c 'echo freezer > /sys/power/pm_test && echo freeze > /sys/power/state'
		start=$(stat dontcache_start)
		sleep 1
		check "suspend: and go on" test "$(stat dontcache_start)" -gt "$start"
	done
	: > stop
	wait $!
	check "suspend: no write failed" test -s writes
	check "suspend: they have waited" test "$(seen_of "${DISK#/dev/}" pauses)" -gt "$paused"
	echo 0 > "/sys/block/${DISK#/dev/}/bdi/dontcache_max_bytes"
	check "suspend: all is gone" gone_soon /mnt/fs/file $len
	umount /mnt/fs
}

paced_tests() {
	nullb nullb15 320 completion_nsec=4000000 hw_queue_depth=4 max_sectors=256 blocksize=4096
	set_policy paced
	check "paced: set" is paced cat $policy
	# First, while KASAN has not had to forget what was freed.
	check "paced: a disk that goes under a writer" disk_goes
	for fs in $filesystems; do
		waits_of "$fs"
		check "paced: $fs, io_uring waits in a worker" uring_waits "$fs"
		mkfs_on "$fs" /dev/nullb15 && mount -t "$fs" /dev/nullb15 /mnt/fs || exit 1
		# The lazy policy has 64 MiB. Four, and a quarter more, is the bound.
		check "paced: $fs, a stream stays below the bound" bounded /mnt/fs/bounded 1280
		check "paced: $fs, and leave nothing" is "0 pages cached" io gone /mnt/fs/bounded 0 67108864 1000
		for block in 512 4096 65536; do
			check "paced: $fs, writes of $block go by themselves" gone_by_itself /mnt/fs/small-$block $block
		done
		check "paced: $fs, appends are written once" appended "$fs"
		check "paced: $fs, sync(2) beside a stream" sync_is_first /mnt/fs/bounded
		check "paced: $fs, overwrites of what is cached are written" overwritten /mnt/fs/cached
		check "paced: $fs, a device of its own policy and bound" knobs /mnt/fs/bounded
		if [ -d "$inject" ]; then
			check "paced: $fs, an error is heard by who writes" error_heard /mnt/fs/cached
			check "paced: $fs, what fsync() has told is not" error_told /mnt/fs/cached
			check "paced: $fs, an error comes before a write" error_comes_first /mnt/fs/cached
		else
			skip "paced: $fs, errors" "no CONFIG_FAIL_MAKE_REQUEST"
		fi
		if [ -d /sys/kernel/debug/failslab ]; then
			check "paced: $fs, without memory" without_memory /mnt/fs/nth
		else
			skip "paced: $fs, without memory" "no CONFIG_FAILSLAB"
		fi
		# ext4 refuses all that must not sleep.
		[ "$fs" = ext4 ] || check "paced: $fs, NOWAIT is not refused for ever" refused_for_a_while /mnt/fs/cached
		check "paced: $fs, unmounted under a worker" unmounted_under_worker
		check "paced: $fs, and loses nothing" is ok io read sync 0 /mnt/fs/last 0 $len 65536
		umount /mnt/fs
	done
	case $filesystems in
	*ext4*) check "paced: ext4, data in a journal" journaled ;;
	esac
	check "paced: block, a direct write is left alone" left_alone /dev/nullb15
	for wrong in pace "paced " default1 ""; do
		check "paced: no policy '$wrong'" set_wrong /sys/block/nullb15/bdi/dontcache_policy "$wrong"
	done
	for wrong in -1 x 99999999999999999999; do
		check "paced: no bound $wrong" set_wrong /sys/block/nullb15/bdi/dontcache_max_bytes "$wrong"
	done
	for wrong in 0 3001 x; do
		check "paced: no time $wrong" set_wrong /proc/sys/vm/dontcache_ms "$wrong"
	done
	check "paced: beside what cannot be written" beside_what_cannot_be_written
	check "paced: small writes gather beside it" gathers_beside_what_cannot_be_written
	check "paced: a writer that waits can be killed" killed
	set_policy $default_policy
}
