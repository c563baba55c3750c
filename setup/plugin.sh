#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds bench/hotspots.c, the plugin with which QEMU counts instructions, and
# prints its path.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

plugin=$BUILD/hotspots.so
if [ ! -e "$plugin" ] || [ "$ROOT/bench/hotspots.c" -nt "$plugin" ]; then
	need_tools cc=gcc /usr/include/stdio.h=libc6-dev
	mkdir -p "$BUILD"
	cc -O2 -Wall -Wextra -shared -fPIC -fvisibility=hidden -o "$plugin.tmp" "$ROOT/bench/hotspots.c" ||
		die "bench/hotspots.c does not compile" "read what the compiler says above"
	mv "$plugin.tmp" "$plugin"
fi
echo "$plugin"
