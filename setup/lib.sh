# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What every script of setup/, guest/ and kunit/ needs: where things live and
# how to say what went wrong. Sourced, never run.

set -euo pipefail

# What the user has set for kernels and repositories of their own: it would decide what is built,
# and where to.
unset KBUILD_OUTPUT KBUILD_EXTMOD KBUILD_VERBOSE KCONFIG_CONFIG KCONFIG_ALLCONFIG O M ARCH SUBARCH CROSS_COMPILE \
	LLVM LLVM_IAS MAKEFLAGS MAKEOVERRIDES MFLAGS GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY \
	GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_NAMESPACE GIT_PREFIX GIT_CONFIG GIT_CONFIG_PARAMETERS \
	GIT_CONFIG_COUNT

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${DONTCACHE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/dontcache-rust}
BUILD=${DONTCACHE_BUILD:-$ROOT/build}
# Whole, since not all of what gets them runs here.
[[ $CACHE = /* ]] || CACHE=$PWD/$CACHE
# shellcheck disable=SC2034 # for who sources this
[[ $BUILD = /* ]] || BUILD=$PWD/$BUILD
JOBS=${JOBS:-$(nproc)}
# A clone in another directory finds what was compiled in this one.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$BUILD} CCACHE_NOHASHDIR=1
export CCACHE_DIR=${CCACHE_DIR:-$CACHE/ccache}
# What is not there is compiled without a run of the preprocessor before that.
export CCACHE_DEPEND=${CCACHE_DEPEND-1}

# A group of its own may set a terminal, which stops it otherwise.
trap '' TTOU
# Not into the home directory: bench/plots.py.
export MPLCONFIGDIR=$CACHE/matplotlib

say() {
	printf '%s\n' "$*" >&2
}

# die MESSAGE [WHAT TO DO NEXT]
die() {
	printf 'error: %s\n' "$1" >&2
	[ $# -lt 2 ] || printf '  next: %s\n' "$2" >&2
	exit 1
}

# claim NAME DIR: DIR, where NAME= says, is ours: files are removed from it. Not one that has
# somebody else's.
claim() {
	[ ! -f "$2/.dontcache-rust" ] || return 0
	[ ! -d "$2" ] || [ -z "$(ls -A "$2")" ] ||
		die "$1=$2 has something else in it" "name a directory that is empty, or not there"
	{ mkdir -p "$2" && : > "$2/.dontcache-rust"; } || die "cannot create $2" "name another place with $1="
}

# claim_out OUT: the same of OUT=, which may be a part of what is built.
claim_out() {
	[[ $1 = "$BUILD"/* ]] || claim OUT "$1"
}

# need_space DIR GIB [VARIABLE=]: an unpacked kernel, its builds and ccache do not fit in
# less, and a build that dies of ENOSPC leaves truncated objects behind. What we have there counts,
# but for a GiB.
need_space() {
	local dir=$1 want=$2 with=${3:-DONTCACHE_CACHE= or DONTCACHE_BUILD=} have ours=0

	mkdir -p "$dir" || die "cannot create $dir" "make it writable, or name another place with $with"
	have=$(df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1048576) }')
	if [ "$have" -lt "$want" ] && [ "$have" -ge 1 ]; then
		ours=$(du -sck "$CACHE" "$BUILD" 2> /dev/null | awk 'END { print int($1 / 1048576) }')
	fi
	[ $((have + ours)) -ge "$want" ] ||
		die "$dir has $have GiB free, $want GiB are needed" \
			"free some space, or name another place with $with"
}

# debian_site: the address of this machine's Debian mirror. Others may have their packages in its lists.
debian_site() {
	local site

	# shellcheck disable=SC2016 # the dollar is for apt
	site=$(apt-get indextargets --format '$(SITE)' 'Origin: Debian' 2> /dev/null | grep -v security | head -n 1) || true
	# As in images for clouds: a list of mirrors, which only apt understands.
	[[ $site != mirror+file:* ]] || site=$(grep -m 1 -o '^http[^[:space:]]*' "${site#mirror+file:}" 2> /dev/null) || true
	[ -n "$site" ] || die "apt knows no Debian mirror" \
		"run apt-get update as root and try again; elsewhere than on Debian, pass KERNEL_SRC=DIR"
	echo "$site"
}

# watch PID SECONDS: until it ends, shows the time gone and the time left on a terminal.
watch() {
	local start now left

	start=$(date +%s)
	while kill -0 "$1" 2> /dev/null; do
		if [ -t 2 ]; then
			now=$(date +%s)
			left=$(($2 - now + start))
			[ "$left" -ge 0 ] || left=0
			printf '\r  %d s, about %d s left \033[K' $((now - start)) "$left" >&2
		fi
		sleep 1
	done
	[ ! -t 2 ] || printf '\r\033[K' >&2
}

# watched SECONDS LOG COMMAND...: runs COMMAND with its output in LOG, as watch() shows it. Sets
# watched_rc: behind "watched || ..." a function would not end where something in it fails.
watched() {
	local estimate=$1 log=$2 pid
	shift 2

	# It outlives an interrupted script unless it is told, with what it has started: so that is a
	# group of its own.
	set -m
	"$@" > "$log" 2>&1 < /dev/null &
	pid=$!
	set +m
	trap 'kill -- -'"$pid"' 2> /dev/null; exit 130' INT TERM
	watch "$pid" "$estimate"
	watched_rc=0
	wait "$pid" || watched_rc=$?
	trap - INT TERM
}

# ours OPTION... -- PATTERN...: the files of this repository, by git ls-files; of a tarball, all.
ours() (
	cd "$ROOT"
	if [ ! -e .git ]; then
		export GIT_DIR=$BUILD/no-git GIT_WORK_TREE=$ROOT
		[ -d "$GIT_DIR" ] || {
			mkdir -p "$BUILD"
			git init -q --template=
		}
	fi
	# Whoever it belongs to: only names are read.
	git -c safe.directory='*' -c core.excludesFile=/dev/null ls-files --cached --others --exclude-standard "$@"
)

# tracked PATTERN...: those of them that are there.
tracked() {
	local file

	ours -- "$@" | while read -r file; do
		[ ! -e "$ROOT/$file" ] || echo "$file"
	done
}

# memo NAME: the file that has how many seconds that took here the last time.
memo() {
	mkdir -p "$CACHE/took"
	printf '%s/took/%s' "$CACHE" "$(printf '%s' "$1" | tr -c 'A-Za-z0-9' '-')"
}

# step ESTIMATE LOG COMMAND...: runs COMMAND with its output in LOG. On a
# terminal it shows the time gone and the time left after ESTIMATE (seconds;
# replaced by what the step took here the last time). On failure it shows the
# end of LOG, since that is where the reason is.
step() {
	local estimate=$1 log=$2 start rc=0 took memo
	local name=${STEP_NAME:-$3}
	shift 2

	mkdir -p "$(dirname "$log")"
	memo=$(memo "$name")
	[ ! -s "$memo" ] || estimate=$(cat "$memo")
	start=$(date +%s)
	printf '%s (about %d s)\n' "$name" "$estimate" >&2
	watched "$estimate" "$log" "$@"
	rc=$watched_rc
	took=$(($(date +%s) - start))
	if [ "$rc" -ne 0 ]; then
		# Parallel builds go on for a while after the line that matters.
		grep -n -m 5 -A 4 -iE '(^|[^a-z_-])(error|fatal|not in the configuration)[:[]' "$log" >&2 ||
			tail -n 25 "$log" >&2
		die "$name failed after $took s (status $rc)" "${STEP_NEXT:-read} $log"
	fi
	echo "$took" > "$memo"
	printf '  done in %d s\n' "$took" >&2
}

case $ROOT$BUILD$CACHE in
*[[:space:]:]*) die "there is a space or a colon in $ROOT, $BUILD or $CACHE" "make does not work there: move it" ;;
esac
[ "$(uname -m)" = x86_64 ] || die "this is a $(uname -m) machine" "use an x86-64 one: UML and the tests are for that"
[ -n "${HOME:-}${DONTCACHE_CACHE:-}${XDG_CACHE_HOME:-}" ] || die "HOME is not set" "say where to put what is downloaded: DONTCACHE_CACHE=DIR"
[[ $JOBS =~ ^[1-9][0-9]{0,3}$ ]] || die "JOBS=$JOBS is not a number of jobs" "JOBS=$(nproc), or leave it out"
[ -z "${DONTCACHE_BUILD:-}" ] || claim DONTCACHE_BUILD "$BUILD"
[ -z "${DONTCACHE_CACHE:-}" ] || claim DONTCACHE_CACHE "$CACHE"
