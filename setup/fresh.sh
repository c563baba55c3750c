#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make fresh: the two commands of the README on a machine that has make and git
# and nothing else. Every machine that is worked on has everything after a day, so
# a tool that is used before it is installed is seen by nobody but the first user.
#
# usage: fresh.sh [root|run]: makes the root (debootstrap, minutes of network), runs
# make demo and make test in it (hours of nobody's time, but all CPUs), or both.
#
# The root is in build/fresh, and gone after a run in which all was well. FRESH_DIR=DIR
# is taken as it is when it is there already, and stays: what an earlier run installed
# in it is found by the next, so only the first run in it is a fresh one.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/root.sh"

what=${1:-all}
case $what in
all | root | run) ;;
*) die "no part $what of fresh.sh" "use root, run, or nothing for both" ;;
esac
root=${FRESH_DIR:-$BUILD/fresh}
clone=/root/dontcache-rust
tests=${FRESH_TESTS:-check front install host um}

# With the mirrors of this machine, as apt has them.
make_machine() {
	local release

	# shellcheck source=/dev/null
	release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	make_root "$release" make,git
	rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
	bring /etc/apt/sources.list /etc/apt/sources.list.d
	touch "$root/.fresh"
}

# timed NAME COMMAND...: adds how long it took to $said, and to $bad if it failed.
timed() {
	local name=$1 log=$BUILD/log/fresh-$1.log start=$SECONDS rc=0
	shift

	say "== $*"
	inside make -C "$clone" "$@" 2>&1 | tee "$log" || rc=$?
	# A table that nobody sees is none.
	if [ "$rc" = 0 ] && [ "$name" = demo ] && [ ! -s "$root$clone/build/demo/index.html" ]; then
		rc=1
	fi
	said+=("$name $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s")
	[ "$rc" = 0 ] || bad+=("$name failed with status $rc; next: read $log")
}

[ -e "$ROOT/.git" ] || die "this is no clone" "make fresh tests what is committed: use git clone"
need_root "make fresh"
need_tools git=git
need_space "$(dirname "$root")" 15
mkdir -p "$BUILD/log"

if [ "$what" != run ]; then
	if [ -e "${FRESH_DIR:-/nowhere}/.fresh" ]; then
		say "using $root as it is: what was installed in it is not tested"
	else
		[ -z "${FRESH_DIR:-}" ] || [ ! -e "$root" ] || rmdir "$root" 2> /dev/null ||
			die "FRESH_DIR=$root has something else in it" "name a directory that is not there"
		STEP_NAME="making an empty machine" step 120 "$BUILD/log/fresh-root.log" make_machine
	fi
	[ "$what" != root ] || exit 0
fi
[ -e "$root/.fresh" ] || die "$root is not a root that this script made" "run setup/fresh.sh root"

[ -z "$(git -C "$ROOT" status --porcelain)" ] || say "what is not committed is not tested"
rm -rf "${root:?}$clone"
git clone -q --no-hardlinks "$ROOT" "$root$clone"
say "testing $(git -C "$root$clone" log -1 --format='%h %s')"
said=()
bad=()
timed demo demo
timed tests test TESTS="$tests"
if [ ${#bad[@]} -gt 0 ]; then
	printf '%s\n' "${bad[@]}"
	echo "fresh: ${said[0]}, ${said[1]}: FAILED; the root is kept in $root"
	exit 1
fi
[ -n "${FRESH_DIR:-}" ] || rm -rf --one-file-system "$root"
echo "fresh: ${said[0]}, ${said[1]}: ok"
