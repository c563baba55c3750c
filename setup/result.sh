# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Lines of results, and how many of each kind there are. Sourced.

passed=0
failed=0
# shellcheck disable=SC2034 # for who sources this
skipped=0

# result LINE: says it, and counts it if it is one.
result() {
	echo "$1"
	case $1 in
	'ok '*) passed=$((passed + 1)) ;;
	'not ok '*) failed=$((failed + 1)) ;;
	'skip '*) skipped=$((skipped + 1)) ;;
	esac
}

# results NAME LOG: those of a guest, which ends with their sum. All else is a remark.
results() {
	local line

	while read -r line; do
		case $line in
		'ok '* | 'skip '*) result "${line/ / $1: }" ;;
		'not ok '*) result "not ok $1: ${line#not ok }" ;;
		*) echo "# $line" ;;
		esac
	done < "$2"
	grep -q ' passed, ' "$2" || result "not ok $1: the guest did not end"
}
