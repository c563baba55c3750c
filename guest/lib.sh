# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Devices and checks for scripts that run in a guest. Sourced.

stats=/sys/kernel/debug/dontcache/stats
passed=0
failed=0
skipped=0

# check NAME COMMAND...: counts a pass if COMMAND succeeds.
check() {
	check_name=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		echo "ok $check_name"
	else
		failed=$((failed + 1))
		echo "not ok $check_name: $*"
	fi
}

skip() {
	skipped=$((skipped + 1))
	echo "skip $1: $2"
}

# is EXPECTED COMMAND...: the output of COMMAND is EXPECTED.
is() {
	want=$1
	shift
	got=$("$@" 2>&1)
	[ "$got" = "$want" ] || {
		echo "# got \"$got\", wanted \"$want\""
		false
	}
}

# stat NAME: one counter of the Rust engines.
stat() {
	awk -v name="$1" '$1 == name { print $2 }' "$stats"
}

drop_caches() {
	sync
	echo 3 > /proc/sys/vm/drop_caches
}

# nullb NAME MIB [ATTRIBUTE=VALUE...]: a null_blk device /dev/NAME that keeps
# its data and completes in a timer interrupt.
nullb() {
	dir=/sys/kernel/config/nullb/$1
	mkdir "$dir"
	echo "$2" > "$dir/size"
	echo 1 > "$dir/memory_backed"
	echo 2 > "$dir/irqmode"
	echo 0 > "$dir/discard"
	shift 2
	for attribute; do
		echo "${attribute#*=}" > "$dir/${attribute%%=*}"
	done
	echo 1 > "$dir/power"
}
