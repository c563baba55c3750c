#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds guest/io.c, static so that any guest runs it, and prints its path.

. "$(dirname "${BASH_SOURCE[0]}")/../setup/lib.sh"

io=$BUILD/io
if [ ! -x "$io" ] || [ "$ROOT/guest/io.c" -nt "$io" ]; then
	mkdir -p "$BUILD"
	cc -O2 -Wall -Wextra -static -o "$io.$$" "$ROOT/guest/io.c" ||
		die "guest/io.c does not compile" "install a C compiler with its static library (Debian: gcc libc6-dev)"
	mv "$io.$$" "$io"
fi
echo "$io"
