# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# An NFS client whose server is the same guest: writeback ends when the server has
# answered, and for unstable writes with a COMMIT after that. Sourced by functional.sh.

. ./common.sh
. ./nfsd.sh
. ./paced.sh

nfs_mount() {
	mkdir -p /mnt/nfs
	mount -i -t nfs4 -o "vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,$1" 127.0.0.1:/ /mnt/nfs
}

# What is paced on the client is on the server too, if that does not cache either: each has its
# bound of 4 MiB.
served() {
	echo 1 > /sys/kernel/debug/nfsd/io_cache_write && set_policy paced && nfs_mount hard || return 1
	before=$(sectors_written nullb12)
	uncached_peak put $DONTCACHE /mnt/nfs/served 0 67110098 65536 && sync /mnt/nfs/served || return 1
	written=$(($(sectors_written nullb12) - before))
	echo "# at most $peak pages were to be written, $written sectors of $((67110098 / 512))"
	# The first bound of the client, 16 MiB, and that of the server, 4, and a quarter more.
	[ "$peak" -le 6400 ] && [ $written -le $((67110098 * 101 / 100 / 512)) ] &&
		is "0 pages cached" io gone /mnt/nfs/served 0 67110098 1000 &&
		is "0 pages cached" io gone /mnt/export/served 0 67110098 1000
	served_status=$?
	echo 0 > /sys/kernel/debug/nfsd/io_cache_write
	set_policy $default_policy
	umount /mnt/nfs
	return $served_status
}

# misaligned FILE: how many sectors come of 64 requests that begin and end in a page which another has a
# part of, in $written. They are those of one write past the client's cache, and committed as one.
misaligned() {
	rm -f "$1"
	sync
	before=$(sectors_written nullb12)
	is ok io put 0 direct "$1" 512 67108864 67108864 || return 1
	written=$(($(sectors_written nullb12) - before))
}

# What two requests have of one page is written once: one of 512 pages more is too much. Requests come in
# their order to one thread; where all is emulated, some may be late once.
written_once() {
	echo 1 > /sys/kernel/debug/nfsd/io_cache_write && set_policy paced && nfs_mount hard,wsize=1048576 || return 1
	echo 1 > $nfsd/threads
	grep -q ' /mnt/nfs .*wsize=1048576' /proc/mounts
	once_status=$?
	for try in 1 2 3; do
		[ $once_status = 0 ] && misaligned /mnt/nfs/misaligned
		once_status=$?
		echo "# try $try: $written sectors of $((16385 * 8))"
		[ $once_status != 0 ] || [ "$written" -gt $((16385 * 513 / 64)) ] || break
	done
	[ $once_status = 0 ] && [ "$written" -ge $((16385 * 8)) ] && [ "$written" -le $((16385 * 513 / 64)) ] &&
		is "0 pages cached" io gone /mnt/export/misaligned 0 67109376 1000 &&
		is ok io read sync $DONTCACHE /mnt/export/misaligned 512 67108864 1048576
	once_status=$?
	echo 0 > /sys/kernel/debug/nfsd/io_cache_write
	echo 4 > $nfsd/threads
	set_policy $default_policy
	umount /mnt/nfs
	return $once_status
}

# How often the server was asked to have all on stable storage.
commits() {
	awk '$1 == "device" { ours = $5 == "/mnt/nfs" } ours && $1 == "COMMIT:" { print $2 }' /proc/self/mountstats
}

# Each makes the server flush its device.
committed_once() {
	commits=$(commits)
	is ok io put $DONTCACHE none "$1" 0 16777216 16777216 && is "0 pages cached" io gone "$1" 0 16777216 2000 || return 1
	commits=$(($(commits) - commits))
	echo "# $commits commits"
	[ $commits -gt 0 ] && [ $commits -le 4 ]
}

# The server keeps pages of its own of the file: those of /mnt/nfs are looked at.
nfs_tests() {
	if ! grep -q 'nfsd$' /proc/filesystems; then
		skip "nfs" "this kernel has no NFS server"
		return
	fi
	nullb nullb12 320 completion_nsec=200000 hw_queue_depth=8 max_sectors=256 blocksize=4096
	mkdir -p /mnt/export
	mkfs_on xfs /dev/nullb12 && mount -t xfs /dev/nullb12 /mnt/export && chmod 777 /mnt/export || exit 1
	[ -e $nfsd/threads ] || mount -t nfsd nfsd $nfsd || exit 1
	# A machine with little memory takes less at a time.
	echo 1048576 > $nfsd/max_block_size
	check "nfs: a server" nfs_serve /mnt/export
	if ! eventually 30 nfs_mount hard 2> nfs.log; then
		cat nfs.log
		check "nfs: a mount" false
		return
	fi
	missed=$(stat dontcache_missed)
	for flag in $flags; do
		for block in 4096 9999 1048576; do
			file=/mnt/nfs/$flag-$block
			check "nfs: $flag, unstable writes by $block" put_and_gone "$flag" none "$file" $len $block
			check "nfs: $flag, the same again by $block" put_and_gone "$flag" none "$file" $len $block
			check "nfs: $flag, stable writes by $block" put_and_gone "$flag" sync "$file" $len $block
		done
	done
	# A reader comes after the end of writeback, and before the COMMIT that it waits for.
	for flag in $flags; do
		check "nfs: $flag, read before its COMMIT" is "ok, 0 pages cached" io reread "$flag" "/mnt/nfs/$flag-reread" $len
	done
	check "nfs: a large write is not committed piece by piece" committed_once /mnt/nfs/large
	umount /mnt/nfs
	check "nfs: none was given up" test "$(stat dontcache_missed)" = "$missed"
	for file in /mnt/export/0x*; do
		check "nfs: $(basename "$file") is what the server has" is ok io read sync 0 "$file" 0 $len 65536
	done
	check "nfs: a mount that writes through" nfs_mount sync
	for flag in $flags; do
		check "nfs: $flag, a mount that writes through" put_and_gone "$flag" none "/mnt/nfs/$flag-through" $len 65536
	done
	umount /mnt/nfs
	if grep -q dontcache_write_checks /proc/kallsyms; then
		check "nfs: a server that is paced" served
		check "nfs: a page of two requests is written once" written_once
	else
		skip "nfs: a server that is paced" "not in this kernel"
	fi
	nfs_stop
	umount /mnt/export
}
