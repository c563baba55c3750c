#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make distclean: removes what these scripts keep in the cache, and nothing else that may be where
# DONTCACHE_CACHE= says.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for dir in "$CACHE"/{apt,bindgen,cargo-mutants,ccache,fio-*,fio.tmp,linux-7.3,linux-7.3.tmp,log,qemu,sparse,sparse.tmp,took,venv-*}; do
	[ ! -e "$dir" ] || rm -rf "$dir"
done
[ ! -d "$CACHE" ] || rmdir --ignore-fail-on-non-empty "$CACHE"
[ ! -d "$CACHE" ] || say "$CACHE has something else in it and stays"
