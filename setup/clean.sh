#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make clean: removes what was built. make distclean: what these scripts keep in the cache as well,
# and nothing else that may be there.
#
# usage: clean.sh build|all

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

rm -rf "${BUILD:?}"
[ "$1" = all ] || exit 0
for dir in "$CACHE"/{apt,bindgen,cargo-mutants,ccache,deb-base-*,fio-*,fio.tmp,linux-7.3,linux-7.3.tmp,log,matplotlib,qemu,qemu.tmp,sparse,sparse.tmp,took,venv-*,.dontcache-rust}; do
	[ ! -e "$dir" ] || rm -rf "$dir"
done
[ ! -d "$CACHE" ] || rmdir --ignore-fail-on-non-empty "$CACHE"
[ ! -d "$CACHE" ] || say "$CACHE has something else in it and stays"
