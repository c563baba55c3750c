#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make dist: a tarball of what is committed, the same from the same commit.
#
# usage: dist.sh OUT

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

need_tools git=git gzip=gzip
[ -e "$ROOT/.git" ] || die "this is no clone" "make dist packs what is committed: use git clone"
out=$1
name=dontcache-rust-$(cat "$ROOT/VERSION")
claim_out "$out"
need_space "$out" 1 OUT=
[ -z "$(git -C "$ROOT" status --porcelain)" ] || say "what is not committed is not in it"
git -C "$ROOT" archive --format=tar --prefix="$name/" HEAD | gzip -9n > "$out/$name.tar.gz.tmp"
mv "$out/$name.tar.gz.tmp" "$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" > SHA256SUMS)
say "$out/$name.tar.gz"
