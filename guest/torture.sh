#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Tortures task-context bio completion for $TORTURE_SECONDS, unloads the module
# and loads it again many times, and looks for what the kernel says of itself.
# Runs in a QEMU guest; its directory holds the module and lib.sh.

cd "$(dirname "$0")" || exit 1
. ./lib.sh
# shellcheck source=/dev/null
. ./env

module=rust_bio_torture
# Bios that have not ended after that are lost. A machine that emulates, with KASAN, is slow.
stall=30
cpus=$(cat /sys/devices/system/cpu/online)

# verdicts TEXT: how many runs ended so.
verdicts() {
	grep -sc "$module: --- End of test: $1" messages
}

# load PARAMETER...: fails at once, and not by each of its effects, if the module does not load.
load() {
	insmod ./$module.ko "$@"
}

# A module whose bios are lost waits for them for ever, and no signal ends that.
unload() {
	rmmod $module &
	left=$((10 * (stall + 120)))
	while ! gone && [ $left -gt 0 ]; do
		sleep 0.1
		left=$((left - 1))
	done
	gone
}

gone() {
	! grep -q "^$module " /proc/modules
}

# ends N SECONDS: the Nth verdict comes within that time.
ends() {
	left=$2
	while [ "$(verdicts '')" -lt "$1" ] && [ "$left" -gt 0 ]; do
		sleep 1
		left=$((left - 1))
	done
	[ "$(verdicts '')" -ge "$1" ]
}

loads_again() {
	round=0
	while [ $round -lt 20 ]; do
		load seed=$round order=1 stall=$stall || return
		# Unloaded in its first moment, and in full run.
		[ $((round % 4)) -ne 0 ] || sleep 2
		unload || return
		round=$((round + 1))
	done
}

# A run that ends early says so as well.
all_succeeded() {
	ends 21 30
	is 21 verdicts SUCCESS
}

lines() {
	grep -sc "$module: [0-9]* s: " messages
}

dmesg -n 4
dmesg --follow > messages &
follower=$!

check "module loads" load "seconds=$TORTURE_SECONDS" "seed=$TORTURE_SEED" order=1 stall=$stall
check "run ends" ends 1 $((TORTURE_SECONDS + 2 * stall + 120))
check "verdict is SUCCESS" [ "$(verdicts SUCCESS)" = 1 ]
check "a line a second, or every other" [ "$(lines)" -ge $((TORTURE_SECONDS / 2)) ]
check "all CPUs are online again" is "$cpus" cat /sys/devices/system/cpu/online
if [ $failed = 0 ]; then
	check "module unloads" unload
	check "module loads and unloads 20 times" loads_again
	check "their verdicts are SUCCESS" all_succeeded
	check "all CPUs are online after that" is "$cpus" cat /sys/devices/system/cpu/online
else
	# Bios that are lost would keep it there, and all of this waiting.
	skip "unload, and load again" "the first run failed"
fi
# What was printed last has to get there.
sleep 1
kill $follower
grep "$module: " messages | sed "s/^\[ *//"
check "the kernel has nothing to complain about" awk -f splats.awk messages

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
