#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds a program of guest/ (or tools/dontcache), static so that any guest runs it, and prints its
# path.
#
# usage: tools.sh [io|loops|nbd|dontcache]

. "$(dirname "${BASH_SOURCE[0]}")/../setup/lib.sh"
. "$ROOT/setup/toolchain.sh"

name=${1:-io}
tool=$BUILD/$name
source=$ROOT/guest/$name.c
[ "$name" != dontcache ] || source=$ROOT/tools/dontcache/dontcache.c
if [ ! -x "$tool" ] || [ "$source" -nt "$tool" ] || [ "$ROOT/guest/mark.h" -nt "$tool" ]; then
	need_tools cc=gcc /usr/include/stdio.h=libc6-dev
	mkdir -p "$BUILD"
	cc -O2 -Wall -Wextra -static -pthread -o "$tool.$$" "$source" ||
		die "$source does not compile" "install a C compiler with its static library (Debian: gcc libc6-dev)"
	mv "$tool.$$" "$tool"
fi
echo "$tool"
