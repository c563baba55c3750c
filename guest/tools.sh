#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds a program of guest/ (or tools/dontcache, or samples/dontcache), static so that any guest runs
# it, and prints its path.
#
# usage: tools.sh [io|loops|nbd|dontcache|sample-uring|sample-log]

. "$(dirname "${BASH_SOURCE[0]}")/../setup/lib.sh"
. "$ROOT/setup/toolchain.sh"

name=${1:-io}
tool=$BUILD/$name
source=$ROOT/guest/$name.c
libs=
case $name in
dontcache) source=$ROOT/tools/dontcache/dontcache.c ;;
sample-uring) source=$ROOT/samples/dontcache/uring.c libs=-luring ;;
sample-log) source=$ROOT/samples/dontcache/log.rs ;;
esac
if [ ! -x "$tool" ] || [ "$source" -nt "$tool" ] || [ "$ROOT/guest/mark.h" -nt "$tool" ]; then
	mkdir -p "$BUILD"
	if [ "$name" = sample-log ]; then
		find_toolchain
		"$RUSTC" --edition=2021 -O -C target-feature=+crt-static -o "$tool.$$" "$source" > "$BUILD/$name.log" 2>&1 ||
			die "$source does not compile" "read $BUILD/$name.log"
		mv "$tool.$$" "$tool"
		echo "$tool"
		exit
	fi
	need_tools cc=gcc /usr/include/stdio.h=libc6-dev
	[ "$name" != sample-uring ] || need_tools /usr/include/liburing.h=liburing-dev
	# shellcheck disable=SC2086 # none or one
	cc -O2 -Wall -Wextra -static -pthread -o "$tool.$$" "$source" $libs ||
		die "$source does not compile" "install a C compiler with its static library (Debian: gcc libc6-dev)"
	mv "$tool.$$" "$tool"
fi
echo "$tool"
