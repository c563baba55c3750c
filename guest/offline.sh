# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Memory is taken offline and comes back while pages of it are written uncached: they are moved
# under the engine, and retries look at page frames that go away. Needs a kernel that can, and
# movablecore= on its command line. Sourced by functional.sh.

. ./common.sh

memory=/sys/devices/system/memory

# Small files, whose pages wait in a CPU's LRU batch, and a large one that is written again while
# it is under writeback. How many need another try is printed: a worker drops most at once.
write_till_stopped() {
	nr=0
	until [ -e stop ]; do
		io put $LAZY none "/mnt/fs/$1-$((nr % 8))" 0 16384 4096
		sync "/mnt/fs/$1-$((nr % 8))"
		nr=$((nr + 1))
		io put $DONTCACHE none "/mnt/fs/$1-large" 0 $len 65536
	done > "$1.log" 2>&1
}

# all_gone: nothing of what was written is cached.
all_gone() {
	for file in /mnt/fs/*-*; do
		is "0 pages cached" io gone "$file" 0 $len 2000 || return 1
	done
}

offline_tests() {
	movable=$(grep -l '^Movable' $memory/memory*/valid_zones 2> /dev/null)
	if [ -z "$movable" ]; then
		skip "offline" "this kernel has no memory that can be taken offline"
		return
	fi
	nullb nullb13 320 completion_nsec=5000000 hw_queue_depth=64 blocksize=4096
	mkfs_on xfs /dev/nullb13 && mount -t xfs /dev/nullb13 /mnt/fs || exit 1
	retry=$(stat dontcache_retry)
	missed=$(stat dontcache_missed)
	moved=$(stat pgmigrate_success)
	rm -f stop
	for writer in a b c; do
		write_till_stopped $writer &
	done
	offlines=0
	refused=0
	for round in 1 2 3 4 5; do
		for block in $movable; do
			block=${block%/valid_zones}
			if echo offline > "$block/state"; then
				offlines=$((offlines + 1))
				sleep 0.3
				check "offline: ${block##*/} comes back ($round)" sh -c "echo online_movable > $block/state"
			else
				refused=$((refused + 1))
			fi
		done
	done 2> offline.log
	touch stop
	wait
	echo "# $offlines offlines, $refused refused, $(($(stat pgmigrate_success) - moved)) pages moved," \
		"$(($(stat dontcache_retry) - retry)) retries, $(($(stat dontcache_missed) - missed)) given up"
	check "offline: memory went away" test $offlines -ge 5
	sync
	check "offline: all is dropped" all_gone
	for file in /mnt/fs/*-large; do
		check "offline: $(basename "$file") has its data" is ok io read sync 0 "$file" 0 $len 65536
	done
	umount /mnt/fs
}
