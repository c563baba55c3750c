#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prints the fio to run in guests: >= 3.39, with uncached=2 for
# RWF_DONTCACHE_LAZY. An older one sends a flag of the draft of RWF_DONTCACHE,
# which kernels refuse today. Built once, into the cache.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

# The patch is part of the name, so that a changed patch gives a new fio.
fio=$CACHE/fio-$(sha256sum < "$ROOT/setup/fio-uncached.patch" | cut -c1-8)

build() {
	local tmp=$CACHE/fio.tmp src

	rm -rf "$tmp"
	mkdir -p "$tmp"
	"$ROOT/setup/apt-private.sh" --source fio "$tmp"
	tar -xf "$tmp"/fio_*.tar.* -C "$tmp"
	src=$(find "$tmp" -maxdepth 1 -type d -name 'fio*' -not -path "$tmp" | head -n 1)
	# Outside of a repository git apply takes paths as they are.
	(cd "$src" && GIT_CEILING_DIRECTORIES="$tmp" git apply "$ROOT/setup/fio-uncached.patch")
	(cd "$src" && ./configure --disable-native --disable-numa --disable-rdma --disable-http --disable-tcmalloc)
	make -C "$src" -j"$JOBS" fio
	"$src/fio" --enghelp=io_uring,uncached | grep -q LAZY
	mv "$src/fio" "$fio"
	rm -rf "$tmp"
}

if [ ! -x "$fio" ]; then
	need_tools make=make gcc=gcc git=git /usr/include/libaio.h=libaio-dev /usr/include/zlib.h=zlib1g-dev
	STEP_NAME="building fio" step 60 "$CACHE/log/fio.log" build
fi
echo "$fio"
