#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What the patches of patches/upstream/ mend, but for the hot-unplug that
# hotunplug.sh has. Run in a QEMU guest; ./env names the PARTS: ext4 nfs migrate.

. ./lib.sh
. ./nfsd.sh
# shellcheck source=/dev/null
. ./env

DONTCACHE=0x80
SYNC=0x4
disk=nvme0n1
mib32=33554432
tracing=/sys/kernel/tracing

# leaves PAGES FLAGS FILE LENGTH BLOCK: so many pages are cached after an uncached write.
leaves() {
	want=$1
	shift
	is "ok, $want pages cached" ./io write sync "$@"
}

# overwrite FLAGS FILE LENGTH BLOCK: of a file that is not cached.
overwrite() {
	drop_caches
	is 0 ./io cached "$2" 0 "$3" || return 1
	leaves 0 "$1" "$2" 0 "$3" "$4"
}

# in_writeback: how many pages are.
in_writeback() {
	awk '$1 == "nr_writeback" { print $2 }' /proc/vmstat
}

# ext4_options OPTIONS: new blocks that ext4 does not convert, and the same file once more.
ext4_options() {
	mount -t ext4 -o "$1" /dev/$disk /mnt/fs || return 1
	check "ext4 $1: new file is dropped" leaves 0 $DONTCACHE "/mnt/fs/$1" 0 $mib32 65536
	check "ext4 $1: overwrite is dropped" overwrite $DONTCACHE "/mnt/fs/$1" $mib32 65536
	check "ext4 $1: data are right" is ok ./io read sync 0 "/mnt/fs/$1" 0 $mib32 65536
	umount /mnt/fs
}

# fails OPTIONS: the first write of an overwrite gets an error from the disk.
fails() {
	mount -t ext4 -o "$1" /dev/$disk /mnt/fs || return 1
	dd if=/dev/zero of=/mnt/fs/fails bs=1M count=4 oflag=direct 2> dd.log
	drop_caches
	# Only what is written is to be read or written after this.
	command stat /mnt/fs/fails > stat.log
	echo 1 > /sys/block/$disk/make-it-fail
	echo 0 > /sys/kernel/debug/fail_make_request/verbose
	echo 100 > /sys/kernel/debug/fail_make_request/probability
	echo 1 > /sys/kernel/debug/fail_make_request/times
	check "ext4 $1: a failed overwrite is reported" is EIO \
		./io write sync $DONTCACHE /mnt/fs/fails 0 65536 65536
	echo 0 > /sys/block/$disk/make-it-fail
	check "ext4 $1: and its writeback ends" eventually 10 is 0 in_writeback
	umount /mnt/fs
	e2fsck -fy /dev/$disk > e2fsck.log 2>&1
}

ext4() {
	mkfs.ext4 -q -F /dev/$disk
	ext4_options delalloc
	ext4_options dioread_lock
	ext4_options nodelalloc
	# Overwritten and new blocks in one bio: the file is 32 MiB long now.
	mount -t ext4 /dev/$disk /mnt/fs
	drop_caches
	check "ext4: overwrite and append are dropped" leaves 0 $DONTCACHE /mnt/fs/delalloc $((mib32 / 2)) $mib32 65536
	check "ext4: data are right" is ok ./io read sync 0 /mnt/fs/delalloc 0 $((mib32 / 2 + mib32)) 65536
	umount /mnt/fs
	fails delalloc
	fails data_err=abort
}

nfs_is_mounted() {
	mount -i -t nfs4 -o vers=4.1,sec=sys,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ /mnt/nfs
}

nfs() {
	mkdir -p /mnt/export /mnt/nfs
	mkfs.xfs -q -f /dev/$disk && mount -t xfs /dev/$disk /mnt/export
	check "nfs: a server" nfs_serve /mnt/export
	check "nfs: and its client" nfs_is_mounted
	check "nfs: unstable writes are dropped" leaves 0 $DONTCACHE /mnt/nfs/unstable 0 $mib32 65536
	check "nfs: stable writes are dropped" leaves 0 $((DONTCACHE | SYNC)) /mnt/nfs/stable 0 $mib32 65536
	check "nfs: stable overwrite is dropped" overwrite $((DONTCACHE | SYNC)) /mnt/nfs/stable $mib32 65536
	check "nfs: stable, parts of pages" leaves 0 $((DONTCACHE | SYNC)) /mnt/nfs/odd 0 1234567 9999
	check "nfs: cached writes stay" leaves 16 $SYNC /mnt/nfs/cached 0 65536 65536
	for file in unstable stable; do
		check "nfs: $file data are right" is ok ./io read sync 0 /mnt/nfs/$file 0 $mib32 65536
	done
	check "nfs: odd data are right" is ok ./io read sync 0 /mnt/nfs/odd 0 1234567 65536
	umount /mnt/nfs
	nfs_stop
	umount /mnt/export
}

# asked_for: how many pages the flusher is asked for after a write of one page.
asked_for() {
	sync
	echo > $tracing/trace
	echo 1 > $tracing/events/writeback/writeback_start/enable
	./io write sync $DONTCACHE /dev/nullb1 67108864 4096 4096 > one
	echo 0 > $tracing/events/writeback/writeback_start/enable
	sed -n 's/.* nr_pages=\(-*[0-9]*\) .*reason=dontcache.*/\1/p' $tracing/trace | head -n 1
}

# Pages that are moved while they wait for a slow disk.
migrate() {
	[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing
	nullb nullb1 128 completion_nsec=40000000 hw_queue_depth=1 max_sectors=256 blocksize=4096
	# The last close of a block device would drop all.
	exec 9< /dev/nullb1
	check "migrate: one page is asked for before" is 1 asked_for
	check "migrate: pages are moved and dropped" is "2048 of 2048 pages moved, 0 of all cached" \
		./io move $DONTCACHE /dev/nullb1 $mib32
	check "migrate: data are right" is ok ./io read sync 0 /dev/nullb1 0 $mib32 65536
	check "migrate: one page is asked for after" is 1 asked_for
	exec 9<&-
}

for part in $PARTS; do
	$part
done
dmesg | grep -v virtme-ng-init > dmesg.log
check "no warnings in the kernel log" awk -f splats.awk dmesg.log
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
