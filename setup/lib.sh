# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What every script of setup/, guest/ and kunit/ needs: where things live and
# how to say what went wrong. Sourced, never run.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${DONTCACHE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dontcache-rust}
BUILD=${DONTCACHE_BUILD:-$ROOT/build}
# Whole, since not all of what gets them runs here.
[[ $CACHE = /* ]] || CACHE=$PWD/$CACHE
# shellcheck disable=SC2034 # for who sources this
[[ $BUILD = /* ]] || BUILD=$PWD/$BUILD
JOBS=${JOBS:-$(nproc)}
# A clone in another directory finds what was compiled in this one.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$BUILD} CCACHE_NOHASHDIR=1
export CCACHE_DIR=${CCACHE_DIR:-$CACHE/ccache}

say() {
	printf '%s\n' "$*" >&2
}

# die MESSAGE [WHAT TO DO NEXT]
die() {
	printf 'error: %s\n' "$1" >&2
	[ $# -lt 2 ] || printf '  next: %s\n' "$2" >&2
	exit 1
}

# need_space DIR GIB: an unpacked kernel, its builds and ccache do not fit in
# less, and a build that dies of ENOSPC leaves truncated objects behind.
need_space() {
	local dir=$1 want=$2 have

	mkdir -p "$dir" || die "cannot create $dir" \
		"make it writable, or name another place with DONTCACHE_CACHE= or DONTCACHE_BUILD="
	have=$(df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1048576) }')
	[ "$have" -ge "$want" ] ||
		die "$dir has $have GiB free, $want GiB are needed" \
			"free some space, or name another place with DONTCACHE_CACHE= or DONTCACHE_BUILD="
}

# step ESTIMATE LOG COMMAND...: runs COMMAND with its output in LOG. On a
# terminal it shows the time gone and the time left after ESTIMATE (seconds;
# replaced by what the step took here the last time). On failure it shows the
# end of LOG, since that is where the reason is.
step() {
	local estimate=$1 log=$2 start now left pid rc=0 took memo
	local name=${STEP_NAME:-$3}
	shift 2

	mkdir -p "$(dirname "$log")" "$CACHE/took"
	memo=$CACHE/took/$(printf '%s' "$name" | tr -c 'A-Za-z0-9' '-')
	[ ! -s "$memo" ] || estimate=$(cat "$memo")
	start=$(date +%s)
	printf '%s (about %d s)\n' "$name" "$estimate" >&2
	"$@" > "$log" 2>&1 < /dev/null &
	pid=$!
	# A background step outlives an interrupted script unless it is told.
	trap 'kill '"$pid"' 2> /dev/null; exit 130' INT TERM
	while kill -0 "$pid" 2> /dev/null; do
		if [ -t 2 ]; then
			now=$(date +%s)
			left=$((estimate - now + start))
			[ "$left" -ge 0 ] || left=0
			printf '\r  %d s, about %d s left \033[K' $((now - start)) "$left" >&2
		fi
		sleep 1
	done
	wait "$pid" || rc=$?
	trap - INT TERM
	[ ! -t 2 ] || printf '\r\033[K' >&2
	took=$(($(date +%s) - start))
	if [ "$rc" -ne 0 ]; then
		# Parallel builds go on for a while after the line that matters.
		grep -n -m 5 -A 4 -iE '(^|[^a-z_-])(error|fatal|not in the configuration)[:[]' "$log" >&2 ||
			tail -n 25 "$log" >&2
		die "$name failed after $took s (status $rc)" "read $log"
	fi
	echo "$took" > "$memo"
	printf '  done in %d s\n' "$took" >&2
}
