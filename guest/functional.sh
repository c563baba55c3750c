# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# The guest tests: what programs may expect of uncached I/O, on XFS, ext4 and
# the raw block device, and that the engine which ran is the one that was asked
# for. Run in a guest by guest/uml.sh or guest/qemu.sh; the parts are in files of
# their own.
#
# $scratch/env sets ENGINE (rust or c), DISK (a block device, or nullb) and PARTS,
# those that are run (by default all but "boot" and "offline", which need a command line).

. ./common.sh
for part in flags policy device filesystems dropping paced tool errors nfs offline; do
	# shellcheck source=/dev/null
	. ./$part.sh
done

fresh() {
	drop_caches
	is 0 io cached "$1" 0 $len
}

# idle DISK: nothing is in flight. Readahead may be when a read has ended.
idle() {
	read -r reads writes < "/sys/class/block/${1##*/}/inflight"
	[ "$reads$writes" = 00 ]
}

# The first half is cached, then all is read with the flag: what was there
# stays, what the read brought in is gone.
read_keeps_what_was_there() {
	drop_caches
	is ok io read sync 0 "$1" 0 $((len / 2)) 65536 && eventually 10 idle "$DISK" || return 1
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

rust_ran() {
	check "rust: batcher in kallsyms" grep -q ' bio_task_enqueue$' /proc/kallsyms
	check "rust: no C worker in kallsyms" sh -c "! grep -q ' bio_complete_work_fn$' /proc/kallsyms"
	check "rust: no C hotplug callbacks in kallsyms" sh -c "! grep -q bio_complete_batch_cpu /proc/kallsyms"
	# What a writer that was killed has at its device comes back until then, and so do bios of what
	# is written later: both are to be of one time.
	for _ in $(seq 40); do
		bios=$(stat bio_task_defer)
		completed=$(stat bio_task_complete)
		[ "$completed" != "$bios" ] || break
		sleep 1
	done
	check "rust: all of $bios bios were completed" test "$completed" = "$bios"
	# NFS has none, nor have new files on XFS.
	[ "$PARTS" = nfs ] || [ "$PARTS" = tool ] || check "rust: there were bios" test "$bios" -gt 0
}

c_ran() {
	check "c: C worker in kallsyms" grep -q ' bio_complete_work_fn$' /proc/kallsyms
	check "c: no Rust in kallsyms" sh -c "! grep -q ' bio_task_enqueue$' /proc/kallsyms"
	check "c: no counters" sh -c "! grep -q '^bio_task_' /proc/vmstat"
	check "c: no policy" test ! -e $policy
}

# wants PART: whether it is one of those that were asked for.
wants() {
	case " $PARTS " in *" $1 "*) ;; *) false ;; esac
}

rw_parts() {
	for fs in $filesystems; do
		case $fs in
		xfs) mkfs.xfs -q -f "$DISK" ;;
		ext4) mkfs.ext4 -q -F "$DISK" ;;
		esac > mkfs.log 2>&1 || { cat mkfs.log; exit 1; }
		check "$fs mount" mount -t "$fs" "$DISK" /mnt/fs || exit 1
		rw_tests "$fs" /mnt/fs
		remount_tests "$fs"
		flag_tests "$fs" /mnt/fs
		fio_tests "$fs" /mnt/fs/fio
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
}

: "${PARTS:=rw filesystems errors memory nfs hung device dropping suspend paced tool}"

# What waits for ever is to be known before the test is over.
hung_timeout=/proc/sys/kernel/hung_task_timeout_secs
if [ -e $hung_timeout ]; then
	echo 40 > $hung_timeout
	echo 10 > /proc/sys/kernel/hung_task_check_interval_secs
	echo -1 > /proc/sys/kernel/hung_task_warnings
fi

mkdir -p /mnt/fs
: > dmesg.log
has ext4 || skip ext4 "not in this kernel"
if wants boot; then
	# What the command line asked for.
	check "boot: sysctl.vm.dontcache_policy=$BOOT_POLICY" is "$FOUND_POLICY" cat $policy
fi
if [ "$DISK" = nullb ]; then
	nullb nullb0 512 completion_nsec=200000 hw_queue_depth=8 max_sectors=256 blocksize=4096
	DISK=/dev/nullb0
fi

! wants rw || rw_parts
! wants filesystems || filesystem_tests
! wants errors || failing_tests
! wants memory || memory_tests
! wants nfs || nfs_tests
! wants hung || hung_tests
if [ "$ENGINE" = rust ]; then
	! wants device || device_tests
	if wants dropping; then
		dropping_tests
		trace_tests
	fi
	if wants paced && grep -q dontcache_write_checks /proc/kallsyms; then
		paced_tests
	elif wants paced; then
		skip paced "not in this kernel"
	fi
	! wants suspend || suspend_tests
	! wants tool || tool_tests
	! wants offline || offline_tests
fi
wants boot || "${ENGINE}_ran"

# Not the kernel's: virtme-ng misses ip, for a network that nobody needs.
dmesg | grep -v virtme-ng-init >> dmesg.log
check "no warnings in the kernel log" awk -f splats.awk dmesg.log
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
