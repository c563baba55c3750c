#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# KUnit as its users run it: make install into a tree, and there kunit.py run --kunitconfig=block and
# mm, on UML and on x86 with 4 CPUs, Rust's documentation tests as well.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"
. "$ROOT/setup/series.sh"

dir=$BUILD/kunitconfig
tree=$dir/linux

copy() {
	rm -rf "$tree"
	copy_source "$src" "$tree"
	make -s -C "$ROOT" install KDIR="$tree"
}

# run_kunit FOLDER ARCH
run_kunit() {
	local args=(--kunitconfig="$1" --arch="$2" --build_dir="$dir/$1-$2" --jobs="$JOBS" --timeout=900) option

	for option in "${KMAKE[@]}"; do
		args+=(--make_options="$option")
	done
	[ "$2" = um ] || args+=(--qemu_args='-smp 4' --kernel_args=panic=-1)
	cd "$tree"
	TERM=dumb python3 tools/testing/kunit/kunit.py run "${args[@]}"
}

find_toolchain
need_space "$BUILD" 8
need_tools rsync=rsync git=git make=make python3=python3
src=$("$ROOT/setup/kernel-source.sh")
QEMU=$("$ROOT/setup/qemu.sh")
export QEMU
PATH=$ROOT/kunit/bin:$PATH
STEP_NAME="installing into a kernel tree" step 40 "$BUILD/log/kunitconfig-copy.log" copy
for folder in block mm; do
	for arch in um x86_64; do
		log=$BUILD/log/kunitconfig-$folder-$arch.log
		say "kunit.py run --kunitconfig=$folder --arch=$arch (about 10 min)"
		watched 600 "$log" run_kunit "$folder" "$arch"
		if [ "$watched_rc" = 0 ] && grep -q '\[PASSED\]' "$log"; then
			result "ok $folder on $arch: $(grep -o 'Ran [0-9]* tests: .*' "$log")"
		else
			result "not ok $folder on $arch"
			# Not to be counted as tests of ours.
			tail -n 12 "$log" | sed 's/Testing complete/kunit.py/'
		fi
	done
done
if grep -q '\[PASSED\] rust_doctest_kernel_dontcache' "$BUILD/log/kunitconfig-block-um.log"; then
	result "ok documentation tests"
else
	result "not ok documentation tests"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
