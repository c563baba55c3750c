#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prints the sparse to check the kernel's C with. 7.3 uses __typeof_unqual__(),
# which sparse knows from 0.6.5 on; Debian has that in sid only, whose binary
# wants sid's C library. So it is built from that source, once, into the cache.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

valid=$BUILD/linux/scripts/checker-valid.sh
built=$CACHE/sparse

build() {
	local tmp=$CACHE/sparse.tmp src

	rm -rf "$tmp"
	mkdir -p "$tmp"
	"$ROOT/setup/apt-private.sh" --source sparse "$tmp"
	tar -xf "$tmp"/sparse_*.tar.* -C "$tmp"
	src=$(find "$tmp" -maxdepth 1 -type d -name 'sparse*' -not -path "$tmp" | head -n 1)
	make -C "$src" -j"$JOBS" CC=gcc sparse
	mv "$src/sparse" "$built"
	rm -rf "$tmp"
}

for tool in sparse "$built"; do
	if have "$tool" && [ "$(sh "$valid" "$tool")" = 1 ]; then
		command -v "$tool"
		exit
	fi
done
need_tools make=make gcc=gcc
STEP_NAME="building sparse" step 20 "$CACHE/log/sparse.log" build
[ "$(sh "$valid" "$built")" = 1 ] || die "the sparse of the distribution is too old for Linux 7.3" \
	"read $CACHE/log/sparse.log"
echo "$built"
