# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# What becomes of pages whose writeback has ended: they are dropped within a second,
# many under one lock, and what cannot be dropped is counted. Sourced by functional.sh.

. ./common.sh

# traced EVENT: what the fields of its lines are, one line each.
traced() {
	sed -n "s/^.* $1: //p" trace
}

# traced_sum EVENT FIELD: all its values together.
traced_sum() {
	traced "$1" | sed -n "s/.*\b$2=\([0-9]*\).*/\1/p" | awk '{ nr += $1 } END { print nr + 0 }'
}

traced_lines() {
	traced "$1" | wc -l
}

tracing=/sys/kernel/tracing

# trace_while COMMAND...: leaves what it did to us in the file trace.
trace_while() {
	[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing
	echo > $tracing/trace
	echo 1 > $tracing/events/dontcache/enable
	"$@" > traced.log 2>&1
	traced_status=$?
	echo 0 > $tracing/events/dontcache/enable
	cat $tracing/trace > trace
	[ $traced_status = 0 ] || cat traced.log
	return $traced_status
}

# gone_soon FILE LENGTH: all is on the disk, and a second later nothing of it is cached.
gone_soon() {
	sync "$1" && is "0 pages cached" io gone "$1" 0 "$2" 1000
}

# put_and_gone FLAGS OPEN FILE LENGTH BLOCK
put_and_gone() {
	is ok io put "$1" "$2" "$3" 0 "$4" "$5" && gone_soon "$3" "$4"
}

# Pages that cannot be dropped when their writeback ends. The device is slow
# enough that something happens to them before that.
meet_tests() {
	nullb nullb1 16 completion_nsec=600000000 hw_queue_depth=64 blocksize=4096
	exec 9< /dev/nullb1
	mapped=$(stat dontcache_mapped)
	# The first page is found by a fault, which takes its mark; it maps 15 more.
	check "meet: mapped pages are left" is "ok, 16 pages cached" \
		io meet map $LAZY /dev/nullb1 65536 1000
	check "meet: and counted" test "$(stat dontcache_mapped)" -gt "$mapped"
	drop_caches
	pinned=$(stat dontcache_pinned)
	io meet pin $LAZY /dev/nullb1 65536 1000 > pinned
	# All 16 where they are one folio.
	check "meet: what is pinned is left" grep -qxE "ok, (1|16) pages cached" pinned
	check "meet: and counted" test "$(stat dontcache_pinned)" -eq $((pinned + 1))
	drop_caches
	drop=$(stat dontcache_drop)
	check "meet: pages dirtied again are dropped" is "ok, 0 pages cached" \
		io meet write $LAZY /dev/nullb1 65536 1000
	check "meet: once each" test $(($(stat dontcache_drop) - drop)) = 16
	exec 9<&-
}

# A device that is done before submission returns, as a RAM disk: who submits has the folio's lock
# then. Small writes have more folios than can be tried again, large ones folios that are a batch.
done_at_once() {
	exec 9< /dev/ram0
	for set in $policies; do
		# That leaves what others write meanwhile.
		[ "$set" != lazy ] || continue
		set_policy "$set"
		for block in 4096 4194304; do
			retry=$(stat dontcache_retry)
			put $DONTCACHE /dev/ram0 0 33554432 $block > put.log
			# Who syncs meanwhile waits for locks that the flusher has, and gets them first.
			sleep 1
			check "at once: all is dropped ($set, $block)" gone_soon /dev/ram0 33554432
			retry=$(($(stat dontcache_retry) - retry))
			check "at once: and not by trying again ($retry)" test $retry -le 64
		done
	done
	set_policy $default_policy
	exec 9<&-
}

# 1024 pages are dirtied again while they are under writeback. The next writeback brings them
# back: they need no other try, and there is no place for so many.
many_dirtied_again() {
	nullb nullb6 64 completion_nsec=2000000000 hw_queue_depth=64 blocksize=4096
	exec 9< /dev/nullb6
	set_policy flush
	retry=$(stat dontcache_retry)
	missed=$(stat dontcache_missed)
	put $DONTCACHE /dev/nullb6 0 $len > put.log
	check "many: are under writeback" test "$(awk '$1 == "nr_writeback" { print $2 }' /proc/vmstat)" -ge 1000
	put 0x80 /dev/nullb6 0 $len > put.log
	check "many: pages dirtied under writeback are dropped" gone_soon /dev/nullb6 $len
	# fsync() may hold the lock of some that are clean; a try for each would be 256 and more.
	check "many: and need no other try" test $(($(stat dontcache_retry) - retry)) -lt 16
	check "many: none is given up" test "$(stat dontcache_missed)" = "$missed"
	exec 9<&-
}

# both COMMAND1 -- COMMAND2: at once.
both_write() {
	io write sync "$1" "$2" 0 $((2 * len)) 4096 > both.1 &
	io write sync "$1" "$3" 0 $((2 * len)) 4096 > both.2
	wait $!
	is "ok, 0 pages cached" cat both.1 && is "ok, 0 pages cached" cat both.2
}

# A batch has folios of the mapping that they came from.
mappings_of_batches() {
	[ "$(traced dontcache_drop | sed -n 's/.*\(dev=[^ ]* ino=[0-9]*\).*/\1/p' | sort -u | wc -l)" -ge 2 ]
}

# Written while the device is busy with the first page, so that the rest goes out together.
new_file() {
	rm -f "$1"
	is ok io put $LAZY none "$1" 0 $len 4096 && gone_soon "$1" $len
}

# folios_a_lock NAME: at least 16 of those of the trace were dropped together. Less is asked
# of a sanitizer's kernel: a run of the worker ends by time as well, and cuts a batch short there.
folios_a_lock() {
	folios=$(traced_sum dontcache_drop folios)
	locks=$(traced_lines dontcache_drop)
	echo "# $1: $folios folios, $locks locks"
	[ "$locks" -gt 0 ] && [ "$folios" -ge $((${FOLIOS_A_LOCK:-16} * locks)) ]
}

dropping_tests() {
	nullb nullb7 320 completion_nsec=100000000 hw_queue_depth=64 blocksize=4096
	for fs in $filesystems; do
		mkfs_on "$fs" /dev/nullb7 && mount -t "$fs" /dev/nullb7 /mnt/fs || exit 1
		file=/mnt/fs/new
		drop=$(stat dontcache_drop)
		check "drop: $fs, a new file is gone within a second" trace_while new_file $file
		check "drop: $fs, by us" test $(($(stat dontcache_drop) - drop)) = $pages
		check "drop: $fs, at least ${FOLIOS_A_LOCK:-16} folios a lock" folios_a_lock "$fs, new file"
		drop_caches
		check "drop: $fs, an overwrite is gone within a second" \
			trace_while put_and_gone $LAZY none $file $len 4096
		check "drop: $fs, at least ${FOLIOS_A_LOCK:-16} folios a lock in it" folios_a_lock "$fs, overwrite"
		check "drop: $fs, two files at once" trace_while both_write $DONTCACHE /mnt/fs/one /mnt/fs/two
		check "drop: $fs, from both mappings" mappings_of_batches
		umount /mnt/fs
	done
	mkfs_on xfs /dev/nullb7 && mount -t xfs /dev/nullb7 /mnt/fs || exit 1
	exec 9< "$DISK"
	drop_caches
	check "drop: a file and a block device at once" trace_while both_write $DONTCACHE /mnt/fs/file "$DISK"
	check "drop: from both mappings" mappings_of_batches
	exec 9<&-
	umount /mnt/fs
	meet_tests
	done_at_once
	many_dirtied_again
}

# Tracepoints and counters say the same.
trace_tests() {
	bios=$(stat bio_task_defer)
	runs=$(stat bio_task_run)
	dropped=$(stat dontcache_drop)
	trace_while io write sync $DONTCACHE "$DISK" 0 $len 4096
	bios=$(($(stat bio_task_defer) - bios))
	runs=$(($(stat bio_task_run) - runs))
	# Single pages where a block is one.
	dropped=$(($(stat dontcache_drop) - dropped))
	check "trace: each of $bios bios is deferred" is "$bios" traced_lines bio_task_defer
	check "trace: $runs runs" is "$runs" traced_lines bio_task_run
	check "trace: of all bios" is "$bios" traced_sum bio_task_run nr
	check "trace: each folio is dropped once" is $dropped traced_sum dontcache_drop folios
}
