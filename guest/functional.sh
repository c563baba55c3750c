# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# The guest tests: what programs may expect of uncached I/O, on XFS, ext4 and
# the raw block device, and that the engine which ran is the one that was asked
# for. Run in a guest by guest/uml.sh or guest/qemu.sh.
#
# $scratch/env sets ENGINE (rust or c) and DISK (a block device, or nullb).

. ./lib.sh
# shellcheck source=/dev/null
. ./env

DONTCACHE=0x80
LAZY=0x200
policy=/proc/sys/vm/dontcache_policy
len=4194304
odd=$((len + 1234))
pages=$((len / 4096))

# shellcheck disable=SC2153 # of ./env
case $ENGINE in
rust) flags="$DONTCACHE $LAZY" ;;
*) flags=$DONTCACHE ;;
esac

io() {
	./io "$@"
}

fresh() {
	drop_caches
	is 0 io cached "$1" 0 $len
}

# The first half is cached, then all is read with the flag: what was there
# stays, what the read brought in is gone.
read_keeps_what_was_there() {
	drop_caches
	is ok io read sync 0 "$1" 0 $((len / 2)) 65536 || return 1
	half=$(io cached "$1" 0 $len)
	# Readahead may have brought in more than the half.
	if [ "$half" -lt $((pages / 2)) ] || [ "$half" -ge "$pages" ]; then
		echo "# $half of $pages pages cached by a read of the half"
		return 1
	fi
	is ok io read "$2" "$3" "$1" 0 $len 65536 || return 1
	is "$half" io cached "$1" 0 $len
}

read_leaves_nothing() {
	drop_caches
	is ok io read "$2" "$3" "$1" 0 $len 65536 && is 0 io cached "$1" 0 $len
}

# rw_tests NAME FILE-PREFIX: FILE-PREFIX and a tag are a file of its own, but
# for a device, which is one file.
rw_tests() {
	for engine in sync uring; do
		for flag in $flags; do
			tag=$engine-$flag
			file=$2
			if [ -b "$2" ]; then
				# The last close would drop what is cached. Pages of an earlier
				# write would not be new ones.
				exec 9< "$2"
				drop_caches
			else
				file=$2/$tag
			fi
			check "$1 $tag write" is "ok, 0 pages cached" io write $engine "$flag" "$file" 0 $len 65536
			[ -b "$2" ] || rm "$file"
			check "$1 $tag write 4k" is "ok, 0 pages cached" io write $engine "$flag" "$file" 0 $len 4096
			[ -b "$2" ] || rm "$file"
			# A page that two writes share is an overwrite if writeback came in between.
			case $1-$ENGINE in
			ext4-c) check "$1 $tag write odd" io write $engine "$flag" "$file" 0 $odd 9999 ;;
			*) check "$1 $tag write odd" is "ok, 0 pages cached" io write $engine "$flag" "$file" 0 $odd 9999 ;;
			esac
			check "$1 $tag read back" is ok io read sync 0 "$file" 0 $odd 65536
			check "$1 $tag read cold" read_leaves_nothing "$file" $engine "$flag"
			check "$1 $tag read warm" read_keeps_what_was_there "$file" $engine "$flag"
			exec 9<&-
		done
	done
}

# After a remount nothing but the disk can have the data.
remount_tests() {
	umount /mnt/fs && mount "$DISK" /mnt/fs
	for file in /mnt/fs/*-*; do
		check "$1 $(basename "$file") after remount" is ok io read sync 0 "$file" 0 $odd 65536
	done
}

flag_tests() {
	file=$2
	[ -b "$2" ] || file=$2/flags
	for engine in sync uring; do
		for op in write read; do
			check "$1 $engine $op unknown flag" is EOPNOTSUPP io $op $engine 0x400 "$file" 0 4096 4096
			if [ "$ENGINE" = rust ]; then
				check "$1 $engine $op both flags" \
					is EINVAL io $op $engine $((DONTCACHE | LAZY)) "$file" 0 4096 4096
			else
				check "$1 $engine $op lazy flag" is EOPNOTSUPP io $op $engine $LAZY "$file" 0 4096 4096
			fi
		done
		# tmpfs does not support it.
		for flag in $flags; do
			check "$1 $engine $flag on tmpfs" is EOPNOTSUPP io write $engine "$flag" /tmp/flags 0 4096 4096
		done
	done
}

# verified FILE ARGUMENT...: fio reads back from the disk what it wrote.
verified() {
	file=$1
	shift
	set -- --name=verify --filename="$file" --size=8m --iodepth=16 --rw=randwrite --bs=4k \
		--verify=crc32c --verify_fatal=1 --minimal --output=fio.log "$@"
	drop_caches
	./fio --do_verify=0 "$@" && drop_caches && ./fio --verify_only "$@"
}

fio_tests() {
	uncached=1
	for flag in $flags; do
		for engine in pvsync2 io_uring; do
			check "$1 fio $engine uncached=$uncached" \
				verified "$2" --ioengine=$engine --uncached=$uncached
			[ -b "$2" ] || rm -f "$2"
		done
		uncached=2
	done
}

overwrite_is_dropped() {
	fresh "$1" || return 1
	is "ok, 0 pages cached" io write sync "$2" "$1" 0 $len 65536
}

# delta NAME COMMAND...: by how much COMMAND moves a counter.
delta() {
	counter=$1
	shift
	before=$(stat "$counter")
	"$@" > /dev/null || return 1
	echo $(($(stat "$counter") - before))
}

moves() {
	[ "$(delta "$@")" -gt 0 ]
}

rust_ran() {
	check "rust: batcher in kallsyms" grep -q ' bio_task_enqueue$' /proc/kallsyms
	check "rust: no C worker in kallsyms" sh -c "! grep -q ' bio_complete_work_fn$' /proc/kallsyms"
	check "rust: no C hotplug callbacks in kallsyms" sh -c "! grep -q bio_complete_batch_cpu /proc/kallsyms"
	check "rust: $(stat bios) bios in $(stat runs) runs" test "$(stat bios)" -gt 0 -a "$(stat runs)" -gt 0 \
		-a "$(stat bios)" -ge "$(stat runs)"
	check "rust: bios gathered $(stat gathered) times" test "$(stat gathered)" -gt 0
	check "rust: of these $(stat hurried) were cut short by who waits" test "$(stat hurried)" -gt 0
	check "rust: $(stat drop) pages were dropped" test "$(stat drop)" -gt 0
	check "rust: writeback was started" test "$(stat start)" -gt 0
	check "rust: busy mappings were skipped" test "$(stat skip)" -gt 0
}

c_ran() {
	check "c: C worker in kallsyms" grep -q ' bio_complete_work_fn$' /proc/kallsyms
	check "c: no Rust in kallsyms" sh -c "! grep -q ' bio_task_enqueue$' /proc/kallsyms"
	check "c: no counters" test ! -e $stats
	check "c: no policy" test ! -e $policy
}

policy_refuses() {
	env printf '%s\n' "$1" 2> err > $policy && return 1
	grep -q 'Invalid argument' err || return 1
	is "$2" cat $policy
}

write_one() {
	rm -f "$1"
	io write "$2" "$3" "$1" 0 4096 4096
}

# io_uring tries without sleeping first. What that wrote is left to the flusher,
# the rest is written by a worker that may sleep.
nowait_kicks() {
	echo flush > $policy
	rm -f "$1"
	kick=$(stat kick)
	start=$(stat start)
	io write uring $DONTCACHE "$1" 0 $len 4096 > /dev/null || return 1
	kick=$(($(stat kick) - kick))
	start=$(($(stat start) - start))
	echo "# of $pages writes $kick did not sleep, $start could"
	[ $kick -gt 0 ] && [ $((kick + start)) = $pages ]
}

# Each policy by what it does after one write to an idle file.
policy_tests() {
	file=/mnt/fs/policy
	check "policy: default" is lazy cat $policy
	check "policy: mode" is "644 0 0" command stat -c '%a %u %g' $policy
	check "policy: others read" is lazy setpriv --reuid=65534 --clear-groups cat $policy
	check "policy: others do not write" sh -c \
		"! setpriv --reuid=65534 --clear-groups sh -c 'echo kick > $policy' 2> /dev/null"
	for name in flush kick lazy; do
		echo $name > $policy
		check "policy: set $name" is $name cat $policy
		case $name in
		kick) counter=kick ;;
		*) counter=start ;;
		esac
		sync
		check "policy: $name does $counter" is 1 delta $counter write_one $file sync $DONTCACHE
		sync
		check "policy: the lazy flag under $name" is 1 delta start write_one $file sync $LAZY
		sync
		check "policy: a read under $name does nothing" is 0 delta $counter io read sync $DONTCACHE $file 0 4096 4096
		for bad in Lazy LAZY laz lazyy 'lazy kick' 0 1 2 -1 none lazylazylazylazylazy ''; do
			check "policy: $name refuses '$bad'" policy_refuses "$bad" $name
		done
	done
	check "policy: NOWAIT kicks and starts nothing" nowait_kicks $file
	echo lazy > $policy
	check "policy: cached writes do nothing" is 0 delta start write_one $file sync 0
}

# What /sys/kernel/debug/dontcache has of the time bios wait, when it is wanted.
bios_timed() {
	awk '{ nr += $2 } END { print nr }' /sys/kernel/debug/dontcache/times
}

times_tests() {
	timing=/sys/kernel/debug/dontcache/timing
	check "times: none by default" is 0 bios_timed
	echo 1 > $timing
	bios=$(stat bios)
	io write sync $DONTCACHE "$DISK" 0 $len 4096 > /dev/null
	bios=$(($(stat bios) - bios))
	echo 0 > $timing
	check "times: of each of $bios bios" is "$bios" bios_timed
	io write sync $DONTCACHE "$DISK" 0 $len 4096 > /dev/null
	check "times: none after that" is "$bios" bios_timed
	trace_tests
	check "cpus: a line for each, with as many bios" test "$(stat bios)" = \
		"$(awk 'NR > 1 { nr += $3 } END { print nr }' /sys/kernel/debug/dontcache/cpus)"
}

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

trace_tests() {
	tracing=/sys/kernel/tracing
	[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing
	echo > $tracing/trace
	echo 1 > $tracing/events/dontcache/enable
	bios=$(stat bios)
	runs=$(stat runs)
	io write sync $DONTCACHE "$DISK" 0 $len 4096 > /dev/null
	bios=$(($(stat bios) - bios))
	runs=$(($(stat runs) - runs))
	echo 0 > $tracing/events/dontcache/enable
	cat $tracing/trace > trace
	check "trace: each of $bios bios is deferred" is "$bios" traced_lines bio_task_defer
	check "trace: $runs runs" is "$runs" traced_lines bio_task_run
	check "trace: of all bios" is "$bios" traced_sum bio_task_run nr
	check "trace: which waited for a time" test "$(traced_sum bio_task_run waited)" -gt 0
	check "trace: all pages are dropped" is $((len / 4096)) traced_sum dontcache_drop pages
}

# Pages that cannot be dropped when their writeback ends. The device is slow
# enough that something happens to them before that.
meet_tests() {
	nullb nullb1 16 completion_nsec=300000000 hw_queue_depth=64 blocksize=4096
	exec 9< /dev/nullb1
	# The first page is found by a fault, which takes its mark; it maps 15 more.
	check "meet: mapped pages are left" is "ok, 16 pages cached" \
		io meet map $LAZY /dev/nullb1 65536 1000
	check "meet: and counted" test "$(stat mapped)" -gt 0
	drop_caches
	referenced=$(stat referenced)
	io meet pin $LAZY /dev/nullb1 65536 1000 > pinned
	# All 16 where they are one folio.
	check "meet: what is pinned is left" grep -qxE "ok, (1|16) pages cached" pinned
	check "meet: and counted" test "$(stat referenced)" -eq $((referenced + 1))
	drop_caches
	retry=$(stat retry)
	check "meet: pages dirtied again are dropped" is "ok, 0 pages cached" \
		io meet write $LAZY /dev/nullb1 65536 1000
	check "meet: and were tried again" test "$(stat retry)" -gt "$retry"
	exec 9<&-
}

if [ "$DISK" = nullb ]; then
	nullb nullb0 512 completion_nsec=200000 hw_queue_depth=8 max_sectors=256 blocksize=4096
	DISK=/dev/nullb0
fi
mkdir -p /mnt/fs

for fs in xfs ext4; do
	case $fs in
	xfs) mkfs.xfs -q -f "$DISK" ;;
	ext4) mkfs.ext4 -q -F "$DISK" ;;
	esac > mkfs.log 2>&1 || { cat mkfs.log; exit 1; }
	check "$fs mount" mount -t $fs "$DISK" /mnt/fs || exit 1
	rw_tests $fs /mnt/fs
	remount_tests $fs
	flag_tests $fs /mnt/fs
	fio_tests $fs /mnt/fs/fio
	if [ "$fs-$ENGINE" = ext4-c ]; then
		skip "$fs overwrite is dropped" "upstream's ext4 completes overwrites in interrupts and keeps the pages"
	else
		for flag in $flags; do
			check "$fs $flag overwrite is dropped" overwrite_is_dropped /mnt/fs/sync-0x80 "$flag"
		done
	fi
	if [ "$fs-$ENGINE" = xfs-rust ]; then
		policy_tests
	fi
	umount /mnt/fs
done

rw_tests block "$DISK"
flag_tests block "$DISK"
fio_tests block "$DISK"
if [ "$ENGINE" = rust ]; then
	meet_tests
	times_tests
fi
"${ENGINE}_ran"

# Not the kernel's: virtme-ng misses ip, for a network that nobody needs.
dmesg | grep -v virtme-ng-init > dmesg.log
check "no warnings in the kernel log" sh -c "! grep -E 'WARNING|BUG|Oops|hung task|Call Trace' dmesg.log"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
