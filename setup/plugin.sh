#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds bench/hotspots.c, the plugin with which QEMU counts instructions, and
# prints its path.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

plugin=$BUILD/hotspots.so
if [ ! -e "$plugin" ] || [ "$ROOT/bench/hotspots.c" -nt "$plugin" ]; then
	mkdir -p "$BUILD"
	cc -O2 -Wall -Wextra -shared -fPIC -fvisibility=hidden -o "$plugin.tmp" "$ROOT/bench/hotspots.c" ||
		die "bench/hotspots.c does not compile" "install a C compiler (Debian: gcc libc6-dev)"
	mv "$plugin.tmp" "$plugin"
fi
echo "$plugin"
