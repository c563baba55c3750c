# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# What a kernel says to flags that it does not know, and to calls that are wrong in
# other ways: programs find out by that what they may use. Sourced by functional.sh.

. ./common.sh

# flag_tests NAME FILE-PREFIX
flag_tests() {
	file=$2
	[ -b "$2" ] || file=$2/flags
	has_lazy=none
	[ "$ENGINE" = c ] || has_lazy=lazy
	cases io flags "$file" $has_lazy
	for op in write read; do
		bit=1024
		while [ $bit -le 2147483648 ]; do
			check "$1 uring $op unknown flag $bit" is EOPNOTSUPP io $op uring $bit "$file" 0 4096 4096
			bit=$((2 * bit))
		done
		check "$1 uring $op all flags" is EOPNOTSUPP io $op uring -1 "$file" 0 4096 4096
		if [ "$ENGINE" = rust ]; then
			check "$1 uring $op both flags" \
				is EINVAL io $op uring $((DONTCACHE | LAZY)) "$file" 0 4096 4096
		else
			check "$1 uring $op lazy flag" is EOPNOTSUPP io $op uring $LAZY "$file" 0 4096 4096
		fi
	done
	# tmpfs does not support it.
	for engine in sync uring; do
		for flag in $flags; do
			check "$1 $engine $flag on tmpfs" is EOPNOTSUPP io write $engine "$flag" /tmp/flags 0 4096 4096
		done
	done
}
