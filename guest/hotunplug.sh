# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# CPU 1 goes offline and comes back under uncached writes whose interrupts it
# takes until it is dead: no offline hangs, and no completion waits for its end.
# Run in a guest by guest/qemu.sh, with an NVMe disk of one vector: that of a
# queue of its own is managed, and gets nothing once the tasks have left the CPU.
#
# $scratch/env sets ENGINE (rust or c), PARTS (of fio, control and nbd), how
# many times CPU 1 leaves in each (FIO_ROUNDS, CONTROL_ROUNDS, NBD_ROUNDS), and
# whether I/O that takes 10 x the median is a failure (JUDGE).

. ./lib.sh
# shellcheck source=/dev/null
. ./env

victim=1
disk=nvme0n1
tracing=/sys/kernel/tracing
limit=20
cpus=$(grep -c '^processor' /proc/cpuinfo)

interrupts() {
	awk -v irq="$irq:" -v column=$((victim + 2)) '$1 == irq { print $column }' /proc/interrupts
}

# lost_io: whether the driver gave up waiting for the disk, after five seconds as the
# kernel was told. A bio that waits in a batch has left the disk, and brings no such
# time-out: that hangs. QEMU before 8.1 leaves out the barriers of a guest that
# counts instructions (c914d46d0a45), which the doorbells of the disk rely on.
lost_io() {
	dmesg | grep -E 'nvme nvme0: .*timeout' > lost || rm lost
}

# counters_of_batches: what was deferred, run and completed, where the kernel counts it. Not waited
# for, since /proc/vmstat takes a lock that an offline holds.
counters_of_batches() {
	grep -E '^(bio_task|dontcache)_' /proc/vmstat > counters &
	sleep 1
	sed 's/^/# /' counters
	[ -s counters ] || echo "# /proc/vmstat waits for the offline"
}

# hangs NAME offline|online: who waits for whom, and then a hard end, since what
# hangs cannot be shut down.
hangs() {
	echo "not ok $2 of CPU $victim hangs in round $n of $1"
	for comm in /proc/[0-9]*/task/*/comm; do
		read -r name < "$comm" || continue
		task=${comm%/comm}
		case $name in "cpuhp/$victim" | bio_task/*) ;; *) grep -q folio_wait_writeback "$task/stack" || continue ;; esac
		echo "# $name ($(awk '/^State|^Cpus_allowed_list|ctxt_switches/ { printf "%s ", $2 }' "$task/status")):"
		# A kernel without CONFIG_STACKTRACE has none.
		sed 's/^/#     /' "$task/stack"
	done 2> /dev/null
	grep -E '^(Dirty|Writeback):' /proc/meminfo | sed 's/^/# /'
	lost_io
	# Whether the disk or a batch has the bios: requests that the driver has not seen finish, tags
	# that are taken, and the first words of each CPU's batch, that of the newest bio before all.
	sed 's/^/# in flight: /' /sys/block/$disk/inflight
	for dir in /sys/kernel/debug/block/$disk /sys/kernel/debug/block/nbd0; do
		grep -H . "$dir/state" "$dir"/hctx*/state "$dir"/hctx*/busy "$dir"/hctx*/tags "$dir"/hctx*/dispatch |
			sed 's,^/sys/kernel/debug/block/,# ,'
	done 2> /dev/null
	./io peek bio_task_batch 8 2>&1 | sed 's/^/# batch: /'
	counters_of_batches
	# Whether the CPU takes any interrupts.
	for look in 1 2; do
		grep -E 'CPU|nvme|LOC|RES' /proc/interrupts | sed "s/^/# $look: /"
		sleep 1
	done
	# And whether anything of that has moved since.
	counters_of_batches
	echo "$passed passed, $((failed + 1)) failed, $skipped skipped"
	echo 1 > status
	echo b > /proc/sysrq-trigger
	sleep 60
}

# switch NAME offline|online 0|1
switch() {
	./io cpu $victim "$3" $limit
	case $? in
	0) return ;;
	2) hangs "$1" "$2" >&3 ;;
	*) echo "not ok $2 of CPU $victim fails in round $n of $1" >&3 ;;
	esac
	exit 1
}

# rounds NAME NUMBER: when they began and ended is in NAME.rounds. The kernel
# moves the interrupt away with each offline, and does not move it back.
rounds() {
	: > "$1.rounds"
	quiet=0
	n=0
	before=$(interrupts)
	while [ $n -lt "$2" ]; do
		n=$((n + 1))
		echo $((1 << victim)) > "/proc/irq/$irq/smp_affinity"
		sleep 0.05
		now=$(interrupts)
		[ "$now" -gt "$before" ] || quiet=$((quiet + 1))
		before=$now
		switch "$1" offline 0 >> "$1.rounds"
		switch "$1" online 1 > online.log
	done
	check "$1: CPU $victim went offline $2 times" test "$(grep -c . "$1.rounds")" = "$2"
	# A guest that a busy machine leaves alone for a moment has none in that.
	check "$1: interrupts on CPU $victim before each, but for $quiet" test $((20 * quiet)) -le "$2"
}

# stops NAME: NAME.stops is when stop_machine() had all CPUs in each round: the
# longest time that CPU 0 had no other task in it.
stops() {
	awk -v file="$1.rounds" '
		BEGIN {
			rounds = i = 0
			while ((getline line < file) > 0) {
				split(line, at, " ")
				begin[rounds] = at[1]
				end[rounds++] = at[2]
			}
		}
		/next_comm=migration\/0/ { sub(/: sched_switch: .*/, ""); sub(/.* /, ""); from = $0 * 1000000; next }
		/prev_comm=migration\/0/ {
			sub(/: sched_switch: .*/, "")
			sub(/.* /, "")
			to = $0 * 1000000
			while (i < rounds && end[i] < from) i++
			if (i < rounds && from >= begin[i] && to - from > last[i] - first[i]) { first[i] = from; last[i] = to }
		}
		END { for (i = 0; i < rounds; i++) printf "%.0f %.0f %.0f %.0f\n", begin[i], end[i], first[i], last[i] }
	' $tracing/trace > "$1.stops"
}

# report NAME WHAT [strict]: judges NAME.WHAT (when each I/O began and how long it
# took) by the rounds of NAME. One that an offline meets counts, whenever it
# finishes: else those that are late by most would be left out. Unless "strict" it
# may be late by the time that no CPU ran anything but stop_machine(), which no
# completion can help, and twice as late as one of a thousand of those that met no
# offline: 10 x a median of this disk is less than a task can wait for its CPU.
report() {
	sort -n -k 2 "$1.$2" | awk -v name="$1 $2" -v file="$1.stops" -v strict="${3:-}" '
		function ms(us) { return sprintf("%.2f", us / 1000) }
		function figures(what, took, n) {
			printf "# %s: %d %s: median %s ms, p99 %s, p99.9 %s, max %s\n", name, n, what,
				ms(took[int(n / 2)]), ms(took[int(n * 0.99)]), ms(took[int(n * 0.999)]), ms(took[n - 1])
		}
		# The last round that began before us.
		function round_before(us, low, high, middle) {
			high = rounds
			while (low < high) {
				middle = int((low + high) / 2)
				if (begin[middle] <= us) low = middle + 1; else high = middle
			}
			return low - 1
		}
		function stopped_in(i, from, to) {
			if (from < first[i]) from = first[i]
			if (to > last[i]) to = last[i]
			return to > from ? to - from : 0
		}
		BEGIN {
			rounds = n = m = raw = late = 0
			while ((getline line < file) > 0) {
				split(line, at, " ")
				begin[rounds] = at[1]
				end[rounds] = at[2]
				first[rounds] = at[3]
				last[rounds] = at[4]
				offline += at[2] - at[1]
				stopped += at[4] - at[3]
				if (at[2] - at[1] > longest) longest = at[2] - at[1]
				rounds++
			}
			printf "# %s: %d offlines of %s ms on average, %s of it stopped, longest %s\n", name, rounds,
				ms(offline / rounds), ms(stopped / rounds), ms(longest)
		}
		{
			i = round_before($1 + $2)
			if (i < 0 || end[i] < $1) { other[n++] = $2; next }
			where[m] = i
			when[m] = $1
			met[m++] = $2
			finished += $1 + $2 <= end[i]
		}
		END {
			if (!m) { print "# " name ": no I/O met an offline"; exit 1 }
			limit = 10 * met[int(m / 2)]
			allowed = 2 * other[int(n * 0.999)]
			if (allowed < limit) allowed = limit
			figures("met no offline", other, n)
			figures("met one (" finished " finished in it)", met, m)
			for (i = m - 1; i >= 0 && met[i] > limit; i--) {
				raw++
				r = where[i]
				net = met[i] - stopped_in(r, when[i], when[i] + met[i])
				without += net > limit
				late += net > allowed
				if (raw <= 5)
					printf "# %s: %s ms, %s without the stop, from %s ms of round %d\n", name, ms(met[i]), ms(net),
						ms(when[i] - begin[r]), r + 1
			}
			for (i = n - 1; i >= 0 && other[i] > limit; i--)
				;
			printf "# %s: 10 x the median (%s ms): %d took longer, %d without the stop; of those that met none %d\n", name,
				ms(limit), raw, without, n - 1 - i
			if (!strict) printf "# %s: %d took longer than %s ms without the stop\n", name, late, ms(allowed)
			exit (strict ? raw : late) > 0
		}'
}

# trace on|off
trace() {
	case $1 in
	on)
		echo > $tracing/trace
		echo 1 > $tracing/tracing_on
		;;
	off) echo 0 > $tracing/tracing_on ;;
	esac
}

nbd() {
	./nbd serve /mnt/fs/disk "$cpus" "$2" &
	server=$!
	until [ "$(cat /sys/block/nbd0/size)" -gt 0 ]; do
		kill -0 $server || exit 1
		sleep 0.1
	done
	./nbd load /dev/nbd0 "$cpus" 16 > "$1.ios" &
	load=$!
	echo 2 > /sys/block/nbd0/queue/nomerges
	sleep 1
	trace on
	rounds "$1" "$3"
	trace off
	kill $load
	check "$1: no I/O failed" wait $load
	kill $server
	stops "$1"
	wait $server
	if [ -n "$JUDGE" ]; then
		check "$1: no I/O that met an offline took 10 x the median" report "$1" ios strict
	else
		report "$1" ios strict
		skip "$1: no I/O that met an offline took 10 x the median" \
			"on a machine that builds kernels meanwhile one offline in a hundred took 0.4 s, and all I/O with it; JUDGE=1 judges"
	fi
}

# trace_to_ios NAME EXTENTS INODE: for each bio that wrote to the file, when the
# device got it, and how long it took from there until the end of the writeback of
# its last page (NAME.bios); the same from when the device had done it
# (NAME.deferred). What shows the end is that the page is dropped, or that our
# engine found it locked and tries again later. Upstream just leaves such pages:
# those bios are counted only.
trace_to_ios() {
	awk -v name="$1" -v extents="$2" -v ino="$3" '
		function us(line) { sub(/: [a-z_]+: .*/, "", line); sub(/.* /, "", line); return line * 1000000 }
		BEGIN {
			nr = bios = ended = 0
			while ((getline line < extents) > 0) {
				split(line, part, " ")
				logical[nr] = part[1]
				physical[nr] = part[2]
				length_of[nr++] = part[3]
			}
		}
		/: block_rq_issue: / {
			at = us($0)
			sub(/.*: block_rq_issue: /, "")
			if ($2 ~ /W/) issued[$5] = at
		}
		/: block_rq_complete: / {
			at = us($0)
			sub(/.*: block_rq_complete: /, "")
			if ($2 !~ /W/ || $6 < 8) next
			first = $4 / 8
			for (i = 0; i < nr; i++) {
				if (!($4 in issued) || first < physical[i] || first >= physical[i] + length_of[i]) continue
				bios++
				began[bios] = issued[$4]
				done[bios] = at
				left[bios] = $6 / 8
				for (page = 0; page < $6 / 8; page++)
					bio[logical[i] + first - physical[i] + page] = bios
			}
		}
		# The writeback of a page has ended.
		function end_page(page, at, i) {
			if (!(page in bio)) return
			i = bio[page]
			delete bio[page]
			if (--left[i]) return
			printf "%.0f %.0f\n", began[i], at - began[i] > (name ".bios")
			printf "%.0f %.0f\n", done[i], at - done[i] > (name ".deferred")
			ended++
		}
		/: mm_filemap_delete_from_page_cache: / {
			at = us($0)
			sub(/.*: mm_filemap_delete_from_page_cache: /, "")
			if ($4 != ino) next
			first = substr($6, 5) / 4096
			for (page = first; page < first + 2 ^ substr($7, 7); page++) end_page(page, at)
		}
		/: dontcache_retry: / {
			at = us($0)
			sub(/.* index=/, "")
			end_page($1, at)
		}
		END { printf "# %s: %d bios ended, of %d nothing shows it\n", name, ended, bios - ended }' $tracing/trace
}

# fio_part NAME FILE EXTENTS INODE: uncached writes, each followed by fdatasync(2).
fio_part() {
	trace on
	./fio --name=hotunplug --filename="$2" --size=16m --offset_increment=16m --numjobs="$cpus" --thread \
		--cpus_allowed=0-$((cpus - 1)) --cpus_allowed_policy=split --rw=randwrite --bs=4k \
		--ioengine=pvsync2 --uncached=1 --fdatasync=1 --invalidate=0 --time_based --runtime=600 --output="$1.fio" &
	load=$!
	sleep 2
	rounds "$1" "$FIO_ROUNDS"
	trace off
	kill $load
	wait $load
	check "$1: all was traced" sh -c "! grep -h '^overrun: [1-9]' $tracing/per_cpu/cpu*/stats"
	stops "$1"
	trace_to_ios "$1" "$3" "$4"
	report "$1" deferred
	check "$1: no bio was late by an offline" report "$1" bios
}

# extents FILE: first page, first page on the disk and length of each.
extents() {
	filefrag -b4096 -v "$1" | tr -d '.:' | awk '$1 ~ /^[0-9]+$/ { print $2, $4, $6 }'
}

fio_parts() {
	for event in block/block_rq_issue block/block_rq_complete filemap/mm_filemap_delete_from_page_cache \
		dontcache/dontcache_retry; do
		[ ! -d $tracing/events/$event ] || echo 1 > $tracing/events/$event/enable
	done

	file=/mnt/fs/fio
	mib=$((16 * cpus))
	mkfs.xfs -q -f /dev/$disk && mount -t xfs /dev/$disk /mnt/fs || exit 1
	# Overwrites: XFS completes them in the batches, all else in a workqueue of its own.
	dd if=/dev/zero of=$file bs=1M count=$mib oflag=direct 2> dd.log || exit 1
	extents $file > map
	fio_part xfs $file map "$(printf %x "$(command stat -c %i $file)")"
	umount /mnt/fs

	mkfs.ext4 -q -F /dev/$disk && mount -t ext4 /dev/$disk /mnt/fs || exit 1
	case $ENGINE in
	rust) dd if=/dev/zero of=$file bs=1M count=$mib oflag=direct 2> dd.log || exit 1 ;;
	# Upstream's ext4 drops new data only.
	*) fallocate -l ${mib}M $file && sync ;;
	esac
	extents $file > map
	fio_part ext4 $file map "$(printf %x "$(command stat -c %i $file)")"
	umount /mnt/fs

	# The inode of a block device has its number (12 bits major, 20 minor).
	number=$(command stat -c '0x%t 0x%T' /dev/$disk)
	echo "0 0 $((mib * 256))" > map
	fio_part block /dev/$disk map "$(printf %x $((${number% *} << 20 | ${number#* })))"
	for event in block filemap dontcache; do
		[ ! -d $tracing/events/$event ] || echo 0 > $tracing/events/$event/enable
	done
}

exec 3>&1
[ ! -e /proc/sys/kernel/hung_task_timeout_secs ] || echo 60 > /proc/sys/kernel/hung_task_timeout_secs
irq=$(awk '/nvme0q/ { sub(":", "", $1); print $1 }' /proc/interrupts)
check "one vector for the disk" test "$(echo "$irq" | wc -w)" = 1 || exit 1
# Finish where the interrupt is, not where the I/O came from. And no bio shares its request.
echo 0 > /sys/block/$disk/queue/rq_affinity
echo 2 > /sys/block/$disk/queue/nomerges

mountpoint -q $tracing || mount -t tracefs tracefs $tracing
trace off
echo mono > $tracing/trace_clock
echo 16384 > $tracing/buffer_size_kb
echo 'prev_comm == "migration/0" || next_comm == "migration/0"' > $tracing/events/sched/sched_switch/filter
echo 1 > $tracing/events/sched/sched_switch/enable

case $PARTS in *fio*) fio_parts ;; esac
case $PARTS in *nbd* | *control*)
	mkfs.xfs -q -f /dev/$disk && mount -t xfs /dev/$disk /mnt/fs || exit 1
	dd if=/dev/zero of=/mnt/fs/disk bs=1M count=64 oflag=direct 2> dd.log || exit 1
	;;
esac
case $PARTS in *control*) nbd control 0 "$CONTROL_ROUNDS" ;; esac
case $PARTS in *nbd*) nbd nbd 0x80 "$NBD_ROUNDS" ;; esac

dmesg | grep -v virtme-ng-init > dmesg.log
lost_io
check "no warnings in the kernel log" awk -f splats.awk dmesg.log
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
