#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The same kernel image, built twice from nothing in two directories, is the same to the byte.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"

need_tools strings=binutils cmp=diffutils
find_toolchain
# The kernel's Makefile has no other way to keep the directory out of what panics say.
if ! "$RUSTC" --remap-path-scope=macro --print=sysroot > /dev/null 2>&1; then
	echo "skip the image is the same: rustc before 1.95 has the directory in it"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
images=()
for name in one another/place; do
	dir=$BUILD/reproducible/$name
	rm -rf "$dir"
	# What the first has compiled is not to be the second's.
	export DONTCACHE_BUILD=$dir CCACHE_DISABLE=1
	"$ROOT/setup/overlay.sh"
	images+=("$("$ROOT/setup/kernel.sh" virtual rust)")
done
sha256sum "${images[@]}" | sed 's/^/# /'
if cmp "${images[@]}"; then
	result "ok the image is the same"
	rm -rf "$BUILD/reproducible"
else
	result "not ok the image is the same"
	strings -a "${images[0]}" | grep -F "$BUILD/reproducible" | head -n 5
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
