#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make series: the overlay as patches that git am takes, new files included, and as one patch.
#
# usage: make-series.sh OUT

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/series.sh"
. "$ROOT/setup/patchset.sh"

need_tools git=git
src=$("$ROOT/setup/kernel-source.sh")
out=$1
claim_out "$out"
need_space "$out" 1 OUT=
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Only the files that are changed: a repository of the whole tree takes a minute.
patches=$(series '')
mapfile -t patches <<< "$patches"
mkdir "$tmp/tree"
touched "${patches[@]}" | (cd "$src" && xargs cp --parents -t "$tmp/tree")
own_git -C "$tmp/tree" init -q
own_git -C "$tmp/tree" add -f .
own_git -C "$tmp/tree" commit -q -m base
base=$(own_git -C "$tmp/tree" rev-parse HEAD)
commit_series "$tmp/tree" "$src"

rm -f "$out"/*.patch
own_git -C "$tmp/tree" format-patch -q -N --no-signature --zero-commit -o "$out" "$base"
mkdir -p "$out/combined"
own_git -C "$tmp/tree" diff --binary "$base" HEAD > "$out/combined/dontcache-rust.patch"
(cd "$out" && printf '%s\n' *.patch) > "$out/series"
say "$(wc -l < "$out/series") patches for Linux 7.3 in $out, and one of all in combined/"
say "  next: cd ~/linux && git am $out/*.patch, or make install KDIR=~/linux"
