# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Devices and checks for scripts that run in a guest. Sourced.

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

# cases COMMAND...: counts the lines of COMMAND as checks: "ok ...", "not ok ...".
cases() {
	"$@" > cases.log 2>&1
	cases_status=$?
	passed=$((passed + $(grep -c '^ok ' cases.log)))
	cases_failed=$(grep -c '^not ok ' cases.log)
	grep '^ok ' cases.log
	grep -v '^ok ' cases.log
	# One that died before it said anything has failed as well.
	if [ $cases_status -ne 0 ] && [ "$cases_failed" = 0 ]; then
		echo "not ok $*: status $cases_status"
		cases_failed=1
	fi
	failed=$((failed + cases_failed))
}

# stat NAME: one counter of the Rust engines.
stat() {
	awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat
}

# delta NAME COMMAND...: by how much COMMAND moves a counter.
delta() {
	delta_name=$1
	shift
	delta_before=$(stat "$delta_name")
	"$@" > delta.log 2>&1 || {
		cat delta.log
		return 1
	}
	echo $(($(stat "$delta_name") - delta_before))
}

# eventually SECONDS COMMAND...: COMMAND succeeds within that time.
eventually() {
	tries_left=$((10 * $1))
	shift
	until "$@"; do
		[ $tries_left -gt 0 ] || return 1
		tries_left=$((tries_left - 1))
		sleep 0.1
	done
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
