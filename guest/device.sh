# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# What reaches the device after an uncached write, counted there: a policy that
# decides well and then writes nothing, or too much, is seen. Sourced by functional.sh.

. ./common.sh

# at_device DEVICE: pages that were written to it, and have arrived.
at_device() {
	awk '{ print $7 / 8 }' "/sys/block/$1/stat"
}

# settled DEVICE: nothing has come for half a second, nor is anything on its way.
settled() {
	settled_at=$(at_device "$1")
	sleep 0.5
	[ "$(at_device "$1")" = "$settled_at" ] && [ "$(awk '{ print $1 + $2 }' "/sys/block/$1/inflight")" = 0 ]
}

# arrive DEVICE COMMAND...: how many pages COMMAND writes there by itself.
arrive() {
	arrive_at=$1
	shift
	arrive_before=$(at_device "$arrive_at")
	"$@" > arrive.log 2>&1 || {
		cat arrive.log
		return 1
	}
	eventually 10 settled "$arrive_at" || return 1
	echo $(($(at_device "$arrive_at") - arrive_before))
}

# arrive_after SECONDS DEVICE COMMAND...: how many have after that time.
arrive_after() {
	arrive_time=$1
	arrive_at=$2
	shift 2
	arrive_before=$(at_device "$arrive_at")
	"$@" > arrive.log 2>&1 || return 1
	sleep "$arrive_time"
	echo $(($(at_device "$arrive_at") - arrive_before))
}

# Nothing is dirty, or cached. Inodes stay: who reclaims them makes XFS write them, in its own time.
clean() {
	sync
	echo 1 > /proc/sys/vm/drop_caches
}

# put FLAGS FILE OFFSET LENGTH [BLOCK]
put() {
	io put "$1" none "$2" "$3" "$4" "${5:-$4}"
}

# beside DEVICE FILE OFFSET: 64 KiB are written without caching beside 8 MiB that another write
# left dirty before, in the same file on a device, and in another one else.
beside() {
	if [ -b "$2" ]; then
		put 0 "$2" 16777216 8388608 1048576 || return 1
	else
		put 0 "$2.old" 0 8388608 1048576 || return 1
	fi > beside.log
	arrive "$1" put $DONTCACHE "$2" 0 65536
}

more_than_its_own() {
	got=$(beside "$1" "$2")
	[ "$got" -gt 16 ] || {
		echo "# only $got pages"
		false
	}
}

# arrival_tests NAME DEVICE FILE: by the policy in force.
arrival_tests() {
	for name in $policies; do
		set_policy "$name"
		clean
		check "device: $1, $name writes what was written" is 16 arrive "$2" put $DONTCACHE "$3" 0 65536
		check "device: $1, a cached write under $name writes nothing" is 0 arrive "$2" put 0 "$3" 131072 65536
		clean
		check "device: $1, the lazy flag under $name writes what was written" \
			is 16 arrive "$2" put $LAZY "$3" 0 65536
		clean
		check "device: $1, O_DSYNC under $name writes once" is 16 arrive_data "$2" "$3"
		clean
		check "device: $1, a read under $name writes nothing" is 0 arrive "$2" io read sync $DONTCACHE "$3" 0 65536 65536
		clean
		case $name in
		kick) check "device: $1, kick writes what is older as well" more_than_its_own "$2" "$3" ;;
		*) check "device: $1, $name leaves what is older alone" is 16 beside "$2" "$3" ;;
		esac
		clean
	done

	# Three pages with two pages of data: lazy writes as many as were written, flush its range.
	set_policy lazy
	check "device: $1, lazy keeps to the number of pages" is 2 arrive "$2" put $DONTCACHE "$3" 2048 8192
	# No time stamp is written with that, nor a log.
	check "device: $1, and the third page comes with fdatasync" is 1 arrive "$2" sync -d "$3"
	clean
	check "device: $1, so does the flag" is 2 arrive "$2" put $LAZY "$3" 2048 8192
	clean
	set_policy flush
	check "device: $1, flush writes its range" is 3 arrive "$2" put $DONTCACHE "$3" 2048 8192
	clean
}

# A log is written as well where there is one: counted with the flag, and without.
arrive_data() {
	plain=$(arrive "$1" io put 0 dsync "$2" 0 65536 65536)
	flagged=$(arrive "$1" io put $DONTCACHE dsync "$2" 0 65536 65536)
	# The second write may find that its time stamp is in the log already.
	[ "$flagged" -le "$plain" ] && [ "$flagged" -ge 16 ] && echo 16 || echo "$plain without the flag, $flagged with"
}

# busy_tests FILE: two writes, one after the other, on a device that takes 300 ms for the first.
busy_tests() {
	set_policy lazy
	check "device: lazy skips a file that is under writeback" \
		is 1 arrive_after 0.45 nullb4 put $DONTCACHE "$1" 0 8192 4096
	sync "$1"
	skipped_before=$(stat dontcache_skip)
	put $DONTCACHE "$1" 0 8192 4096 > put.log
	check "device: and counts it" is 1 echo $(($(stat dontcache_skip) - skipped_before))
	sync "$1"
	set_policy flush
	check "device: flush does not" is 2 arrive_after 0.45 nullb4 put $DONTCACHE "$1" 0 8192 4096
	sync "$1"
}

# requests_at DEVICE: writes that it got.
requests_at() {
	awk '{ print $5 }' "/sys/block/$1/stat"
}

# counted NAME NUMBER BEFORE: the counter is larger by NUMBER.
counted() {
	[ $(($(stat "$1") - $3)) = "$2" ]
}

# Each bio that a device got has been deferred, and each of these completed: with as many requests
# as bios, what goes another way is seen.
deferred_tests() {
	echo 2 > /sys/block/nullb3/queue/nomerges
	requests=$(requests_at nullb3)
	deferred=$(stat bio_task_defer)
	completed=$(stat bio_task_complete)
	io write sync $DONTCACHE /dev/nullb3 0 $len 4096 > /dev/null
	requests=$(($(requests_at nullb3) - requests))
	check "device: a request for each page" test $requests = $pages
	check "device: all of $requests requests were deferred" eventually 2 counted bio_task_defer $requests "$deferred"
	check "device: and completed" eventually 2 counted bio_task_complete $requests "$completed"
	echo 0 > /sys/block/nullb3/queue/nomerges
}

# workers_at_home: each worker may run on its own CPU, and there is one for each.
workers_at_home() {
	workers=0
	for comm in /proc/[0-9]*/comm; do
		read -r name < "$comm" || continue
		case $name in bio_task/*) ;; *) continue ;; esac
		workers=$((workers + 1))
		grep -q "^Cpus_allowed_list:[[:space:]]*${name#bio_task/}$" "${comm%comm}status" || {
			echo "# $name: $(grep Cpus_allowed_list "${comm%comm}status")"
			return 1
		}
		worker=${comm%/comm}
		worker=${worker#/proc/}
	done 2> /dev/null
	[ $workers = "$(grep -c '^processor' /proc/cpuinfo)" ]
}

# refuses_worker: a cgroup, whose limits would be everybody's who waits for a bio.
refuses_worker() {
	[ -n "$worker" ] && mkdir -p /mnt/cgroup || return 1
	mount -t cgroup2 cgroup2 /mnt/cgroup && mkdir /mnt/cgroup/worker || return 1
	# One that takes others.
	sleep 9 &
	echo $! > /mnt/cgroup/worker/cgroup.procs && ! echo "$worker" > /mnt/cgroup/worker/cgroup.procs
	refused=$?
	kill $!
	wait $!
	rmdir /mnt/cgroup/worker
	umount /mnt/cgroup
	return $refused
}

# read_stat DEVICE: sectors read, and the milliseconds that it had something to do, and requests had.
read_stat() {
	awk '{ print $3, $10, $11 }' "/sys/block/$1/stat"
}

# reads SECTORS DEPTH OFFSET LENGTH BLOCK: so many are read at most from a device that has 8 requests
# of 128 KiB at a time, and so many of them it has on an average at least. A stream does not know
# where it ends, so there is some more.
reads() {
	echo 1 > /proc/sys/vm/drop_caches
	before=$(read_stat nullb14)
	is ok io read sync $DONTCACHE /dev/nullb14 "$3" "$4" "$5" || return 1
	echo "$before $(read_stat nullb14)" | awk -v most="$1" -v least="$2" '{
		sectors = $4 - $1
		depth = $5 > $2 ? ($6 - $3) / ($5 - $2) : 0
		print "# " sectors " sectors, " depth " requests"
		exit sectors > most || depth < least
	}'
}

# As many requests as direct reads of that size have; those that follow no other are read as they are.
read_tests() {
	nullb nullb14 64 completion_nsec=2000000 hw_queue_depth=8 max_sectors=256 blocksize=4096
	exec 9< /dev/nullb14
	check "read: there is something" is ok io put 0 sync /dev/nullb14 0 33554432 1048576
	check "read: a stream by 1 MiB keeps the device busy" reads 69632 3 0 33554432 1048576
	check "read: a stream by 64 KiB" reads 66048 1 0 33554432 65536
	check "read: 512 bytes at a time, each page once" reads 8704 0 0 4194304 512
	check "read: 9999 bytes at a time" reads 8704 0 0 4194304 9999
	check "read: 1 MiB from anywhere is 1 MiB" reads 2048 0 5242880 1048576 1048576
	check "read: 4 KiB from anywhere are 4 KiB" reads 8 0 5242880 4096 4096
	exec 9<&-
}

device_tests() {
	read_tests
	check "device: a worker for each CPU, and there" workers_at_home
	check "device: which no cgroup takes" refuses_worker 2> cgroup.log
	quiet
	nullb nullb3 64 completion_nsec=2000000 hw_queue_depth=64 blocksize=4096
	nullb nullb4 64 completion_nsec=300000000 hw_queue_depth=64 blocksize=4096
	exec 9< /dev/nullb3 8< /dev/nullb4
	arrival_tests block nullb3 /dev/nullb3
	busy_tests /dev/nullb4
	deferred_tests
	exec 9<&- 8<&-

	nullb nullb5 320 completion_nsec=2000000 hw_queue_depth=64 blocksize=4096
	for fs in $filesystems; do
		case $fs in
		xfs)
			mkfs.xfs -q -f /dev/nullb5
			mount -t xfs /dev/nullb5 /mnt/fs
			;;
		# Its journal is not to be written while we count.
		ext4)
			mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/nullb5
			mount -t ext4 -o commit=900 /dev/nullb5 /mnt/fs
			;;
		esac > mkfs.log 2>&1 || exit 1
		# Overwrites: a file that is new needs blocks, and a log.
		put 0 /mnt/fs/file 0 $len 1048576 > put.log
		put 0 /mnt/fs/file.old 0 8388608 1048576 > put.log
		clean
		arrival_tests "$fs" nullb5 /mnt/fs/file
		umount /mnt/fs
	done
	loud
	set_policy $default_policy
}
