# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# The sysctl vm.dontcache_policy, and which counter moves under which policy. What
# the device gets is in device.sh. Sourced by functional.sh.

. ./common.sh

policy_refuses() {
	env printf '%s\n' "$1" 2> err > $policy && return 1
	grep -q 'Invalid argument' err || return 1
	is "$2" cat $policy
}

write_one() {
	rm -f "$1"
	io write "$2" "$3" "$1" 0 4096 4096
}

# io_uring tries without sleeping first. What that wrote is left to the flusher,
# the rest is written by a worker that may sleep.
nowait_kicks() {
	echo flush > $policy
	rm -f "$1"
	kick=$(stat dontcache_kick)
	start=$(stat dontcache_start)
	io write uring $DONTCACHE "$1" 0 $len 4096 > /dev/null || return 1
	kick=$(($(stat dontcache_kick) - kick))
	start=$(($(stat dontcache_start) - start))
	echo "# of $pages writes $kick did not sleep, $start could"
	[ $kick -gt 0 ] && [ $((kick + start)) = $pages ]
}

# Each policy by what it counts after one write to an idle file.
policy_tests() {
	file=/mnt/fs/policy
	check "policy: default" is $default_policy cat $policy
	check "policy: mode" is "644 0 0" command stat -c '%a %u %g' $policy
	check "policy: others read" is $default_policy setpriv --reuid=65534 --clear-groups cat $policy
	check "policy: others do not write" sh -c \
		"! setpriv --reuid=65534 --clear-groups sh -c 'echo kick > $policy' 2> /dev/null"
	for name in flush kick lazy; do
		echo $name > $policy
		check "policy: set $name" is $name cat $policy
		case $name in
		kick) counter=dontcache_kick ;;
		*) counter=dontcache_start ;;
		esac
		sync
		check "policy: $name moves $counter" is 1 delta $counter write_one $file sync $DONTCACHE
		sync
		check "policy: the lazy flag under $name" is 1 delta dontcache_start write_one $file sync $LAZY
		sync
		check "policy: a read under $name does nothing" is 0 delta $counter io read sync $DONTCACHE $file 0 4096 4096
		for bad in Lazy LAZY laz lazyy 'lazy kick' 0 1 2 -1 none lazylazylazylazylazy ''; do
			check "policy: $name refuses '$bad'" policy_refuses "$bad" $name
		done
	done
	check "policy: NOWAIT kicks and starts nothing" nowait_kicks $file
	echo flush > $policy
	check "policy: cached writes do nothing" is 0 delta dontcache_start write_one $file sync 0
	echo $default_policy > $policy
}
