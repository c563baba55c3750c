# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# The shapes of filesystems in which writeback ends in other ways: blocks smaller than
# a page, data in the journal, and files that change between the two while they are
# written. Sourced by functional.sh.

. ./common.sh

# mkfs_on KIND DEVICE: makes one of the kind xfs, xfs-1k, ext4, ext4-1k or ext4-journal.
mkfs_on() {
	case $1 in
	xfs) mkfs.xfs -q -f "$2" ;;
	xfs-1k) mkfs.xfs -q -f -b size=1024 "$2" ;;
	ext4 | ext4-journal) mkfs.ext4 -q -F "$2" ;;
	ext4-1k) mkfs.ext4 -q -F -b 1024 "$2" ;;
	esac > mkfs.log 2>&1 || {
		cat mkfs.log
		return 1
	}
}

# mount_kind KIND DEVICE
mount_kind() {
	case $1 in
	ext4-journal) mount -t ext4 -o data=journal "$2" /mnt/fs ;;
	*) mount -t "${1%-*}" "$2" /mnt/fs ;;
	esac
}

# Data that went to the journal are dirty again once they are in it.
gone_after_checkpoint() {
	sync && sync && is "0 pages cached" io gone "$1" 0 "$2" 1000
}

# kind_tests KIND DEVICE
kind_tests() {
	mkfs_on "$1" "$2" && mount_kind "$1" "$2" || exit 1
	gone=gone_soon
	[ "$1" != ext4-journal ] || gone=gone_after_checkpoint
	missed=$(stat dontcache_missed)
	for flag in $flags; do
		for block in 4096 9999 1048576; do
			file=/mnt/fs/$flag-$block
			is ok io put "$flag" none "$file" 0 $odd $block
			case $1-$ENGINE-$block in
			# A page that two writes share is an overwrite, and upstream's ext4 keeps those.
			ext4*-c-9999 | ext4-journal-c-*) ;;
			*) check "fs: $1 $flag, new file by $block, all gone" $gone "$file" $odd ;;
			esac
			drop_caches
			check "fs: $1 $flag, overwrite by $block" is ok io put "$flag" none "$file" 0 $odd $block
			case $1-$ENGINE in
			ext4*-c) skip "fs: $1 $flag, overwrite by $block, all gone" "upstream's ext4 keeps overwrites" ;;
			*) check "fs: $1 $flag, overwrite by $block, all gone" $gone "$file" $odd ;;
			esac
			# One byte here and there: the rest of the page has to be read.
			check "fs: $1 $flag, bytes" is ok io put "$flag" none "$file" 12345 777 111
			sync "$file"
		done
	done
	[ "$ENGINE" = c ] || check "fs: $1, none was given up" is "$missed" stat dontcache_missed
	umount /mnt/fs && mount_kind "$1" "$2" || exit 1
	for file in /mnt/fs/0x*; do
		check "fs: $1 $(basename "$file") after remount" is ok io read sync 0 "$file" 0 $odd 65536
	done
	umount /mnt/fs
}

# open_tests NAME FILE: a file that is opened to write through, or past the cache.
open_tests() {
	io write sync 0 "$2" 0 $((2 * len)) 1048576 > /dev/null
	for how in dsync sync; do
		for flag in $flags; do
			drop_caches
			# What ends with the data on the disk needs no writeback after it.
			[ "$ENGINE" = c ] || check "open: $1 $how $flag starts nothing" \
				is 0 delta dontcache_start io put "$flag" $how "$2" 0 $len 65536
			case $1-$ENGINE in
			ext4-c) ;;
			*) check "open: $1 $how $flag leaves nothing" put_and_gone "$flag" $how "$2" $len 65536 ;;
			esac
		done
	done
	for flag in $flags; do
		drop_caches
		# The second half is cached, the first is written past the cache.
		io read sync 0 "$2" $len $len 65536 > /dev/null
		cached=$(io cached "$2" $len $len)
		if [ "$ENGINE" = rust ]; then
			check "open: $1 direct $flag drops nothing" \
				is 0 delta dontcache_drop io put "$flag" direct "$2" 0 $len 65536
			check "open: $1 direct $flag starts nothing" \
				is 0 delta dontcache_start io put "$flag" direct "$2" 0 $len 65536
		else
			check "open: $1 direct $flag" is ok io put "$flag" direct "$2" 0 $len 65536
		fi
		check "open: $1 direct $flag leaves what is cached" is "$cached" io cached "$2" $len $len
		check "open: $1 direct $flag is read back" is ok io read sync 0 "$2" 0 $((2 * len)) 65536
	done
}

# A file whose data goes to the journal and no longer does, while others write it. Until the file
# FILE.stop is there.
write_on() {
	rounds=0
	while [ ! -e "$1.stop" ]; do
		for block in 4096 131072; do
			io put $DONTCACHE none "$1" 0 $len $block > "$2" && sync "$1" || return 1
		done
		rounds=$((rounds + 1))
	done
	echo "$rounds rounds" > "$2"
}

flips() {
	set_policy flush
	: > /mnt/fs/flip
	write_on /mnt/fs/flip flip.1 &
	writer=$!
	flip=0
	while [ $flip -lt 20 ]; do
		chattr +j /mnt/fs/flip || break
		sleep 0.1
		chattr -j /mnt/fs/flip || break
		sleep 0.1
		flip=$((flip + 1))
	done
	: > /mnt/fs/flip.stop
	wait $writer || return 1
	echo "# $(cat flip.1) between $flip changes"
	[ $flip = 20 ] && ! grep -q '^0 ' flip.1
}

flip_tests() {
	mkfs_on ext4 "$1" && mount_kind ext4 "$1" || exit 1
	check "fs: chattr +j and -j under uncached writes" flips
	if [ "$ENGINE" = c ]; then
		skip "fs: and then all is gone" "upstream's ext4 keeps overwrites"
	else
		check "fs: and then all is gone" gone_after_checkpoint /mnt/fs/flip $len
	fi
	umount /mnt/fs && mount_kind ext4 "$1" || exit 1
	check "fs: and is on the disk" is ok io read sync 0 /mnt/fs/flip 0 $len 65536
	umount /mnt/fs
}

filesystem_tests() {
	nullb nullb8 400 completion_nsec=200000 hw_queue_depth=8 max_sectors=256
	for kind in xfs-1k ext4-1k ext4-journal; do
		! has "${kind%-*}" || kind_tests $kind /dev/nullb8
	done
	! has ext4 || flip_tests /dev/nullb8
	for fs in $filesystems; do
		mkfs_on "$fs" /dev/nullb8 && mount_kind "$fs" /dev/nullb8 || exit 1
		open_tests "$fs" /mnt/fs/open
		umount /mnt/fs
	done
	exec 9< /dev/nullb8
	open_tests block /dev/nullb8
	exec 9<&-
}
