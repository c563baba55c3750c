# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# tools/dontcache: what it says of files, and what it leaves in the page cache. Sourced by
# functional.sh.

. ./common.sh

# says TEXT COMMAND...: what it prints has that.
says() {
	text=$1
	shift
	"$@" > said.log 2>&1
	grep -q "$text" said.log && return
	cat said.log
	return 1
}

# fails_with STATUS TEXT COMMAND...: it says TEXT, and what to do next unless that is how to call it.
fails_with() {
	wanted=$1
	text=$2
	shift 2
	"$@" > said.log 2>&1
	[ $? = "$wanted" ] && grep -q "$text" said.log && grep -q 'next:\|usage:' said.log && return
	cat said.log
	return 1
}

# The copy is whole, and neither is in the page cache.
copied() {
	is ok io put 0 none /mnt/fs/source 0 $odd 65536 && sync && drop_caches &&
		./dontcache cp /mnt/fs/source /mnt/fs/copy && cmp /mnt/fs/source /mnt/fs/copy || return 1
	drop_caches
	./dontcache cp /mnt/fs/source /mnt/fs/copy && is "0 pages cached" io gone /mnt/fs/copy 0 $odd 1000 &&
		says "/mnt/fs/copy: 0 pages cached" ./dontcache stat -n 1 /mnt/fs/copy
}

# What cannot be read is not written over, and leaves no empty copy.
kept() {
	echo precious > /mnt/fs/precious
	fails_with 1 "cannot be read" ./dontcache cp /proc/version /mnt/fs/precious &&
		is precious cat /mnt/fs/precious &&
		fails_with 1 "cannot be read" ./dontcache cp /proc/version /mnt/fs/none && [ ! -e /mnt/fs/none ]
}

# A line a second, with what was written meanwhile: of a large folio all is counted.
# shellcheck disable=SC2016 # the dollars are for awk
shown_by_tool() {
	./dontcache stat -n 3 > stat.log &
	counting=$!
	sleep 0.5
	io put $DONTCACHE none /mnt/fs/counted 0 $len 65536 > put.log
	wait $counting && [ "$(awk 'NF == 7 && $1 ~ /^[0-9]+$/' stat.log | wc -l)" = 3 ] &&
		awk -v pages=$pages 'NF == 7 && $1 ~ /^[0-9]+$/ { nr += $1 } END { exit !(nr >= pages && nr <= 2 * pages) }' stat.log && return
	cat stat.log
	return 1
}

# A line for each decision, and nothing is left of the instance.
traced_by_tool() {
	./dontcache trace -n 3 > trace.log 2>&1 &
	tracing=$!
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.3
		io put $DONTCACHE none /mnt/fs/traced 0 $len 65536 > put.log
		kill -0 $tracing 2> /dev/null || break
	done
	wait $tracing || { cat trace.log; return 1; }
	cat trace.log
	is 3 grep -c '^[0-9.]*  .* [a-z_]*: ' trace.log && [ ! -e /sys/kernel/tracing/instances/dontcache ]
}

# sample FILE BYTES COMMAND...: makes FILE of so many bytes, and leaves nothing of it in the page cache.
sample() {
	file=$1
	bytes=$2
	shift 2
	"$@" && is "$bytes" command stat -c %s "$file" && is "0 pages cached" io gone "$file" 0 "$bytes" 1000
}

# Nor is what cannot be written made, or emptied.
not_made() {
	echo precious > /mnt/precious
	fails_with 1 "/mnt/none cannot be written" ./dontcache cp /mnt/fs/file /mnt/none && [ ! -e /mnt/none ] &&
		fails_with 1 "cannot be written" ./dontcache cp /mnt/fs/file /mnt/precious && is precious cat /mnt/precious
}

tool_tests() {
	nullb nullb18 320 blocksize=4096
	mkfs_on xfs /dev/nullb18 && mount -t xfs /dev/nullb18 /mnt/fs || exit 1
	[ -d /sys/kernel/tracing/events ] || mount -t tracefs none /sys/kernel/tracing
	echo uncached > /mnt/fs/file
	for path in /mnt/fs /mnt/fs/file /dev/nullb18; do
		check "tool: probe $path" says "RWF_DONTCACHE  *yes" ./dontcache probe $path
	done
	check "tool: probe, the other flag" says "RWF_DONTCACHE_LAZY  *yes" ./dontcache probe /mnt/fs/file
	check "tool: probe, the policy" says "policy  *$(cat $policy)" ./dontcache probe /mnt/fs/file
	check "tool: probe, what does not take it" says "RWF_DONTCACHE  *no" ./dontcache probe /proc/version
	check "tool: probe, no such file" fails_with 1 "/mnt/fs/none: No such file" ./dontcache probe /mnt/fs/none
	check "tool: probe, no file" fails_with 1 "/dev/null is none" ./dontcache probe /dev/null
	check "tool: cp" copied
	check "tool: cp to itself" fails_with 1 "same file" ./dontcache cp /mnt/fs/file /mnt/fs/file
	check "tool: which is as it was" is uncached cat /mnt/fs/file
	check "tool: cp, no support, and the target is as it was" kept
	check "tool: cp, no support, and no target is made" not_made
	check "tool: cp, no support" fails_with 1 "/proc/version cannot be read" ./dontcache cp /proc/version /mnt/fs/version
	check "tool: cp -f" ./dontcache cp -f /proc/version /mnt/fs/version
	check "tool: cp -f, the same" cmp /proc/version /mnt/fs/version
	check "tool: stat" shown_by_tool
	check "tool: stat, wrong" fails_with 2 usage ./dontcache stat -n x
	if [ -d /sys/kernel/tracing/events/dontcache ]; then
		check "tool: trace" traced_by_tool
	else
		skip "tool: trace" "no tracepoints in this kernel"
	fi
	check "sample: io_uring" sample /mnt/fs/uring 4194304 ./sample-uring /mnt/fs/uring 4
	# "line 0" to "line 999".
	check "sample: log in Rust" sample /mnt/fs/log 8890 ./sample-log /mnt/fs/log 1000
	check "sample: no support" fails_with 1 "Operation not supported" ./sample-uring /mnt/none 1
	check "tool: no command" fails_with 2 usage ./dontcache
	umount /mnt/fs
}
