#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# With the option off, the overlay must not change what it touches: builds the
# objects of the touched C files, and of those that use the touched parts of
# touched headers, from the pristine tree and from the overlaid one, for x86
# and byte by byte. To the pristine one come the fixes for everybody and the split
# functions of patches/series, since both kernels are to have them. Line numbers would
# differ: WARN() has none here, and the one in the name of an initcall's symbol
# is taken out of both.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/series.sh"

# With relative names of sources, which differ between two trees, so do the objects.
export CCACHE_BASEDIR=

objects=(block/bio.o block/fops.o mm/filemap.o fs/read_write.o fs/aio.o fs/fs-writeback.o fs/buffer.o
	fs/iomap/buffered-io.o fs/iomap/ioend.o fs/xfs/xfs_file.o fs/ext4/file.o
	fs/inode.o mm/backing-dev.o mm/page-writeback.o mm/readahead.o mm/migrate.o mm/truncate.o mm/vmstat.o kernel/fork.o io_uring/rw.o)

farm() {
	# A file that is no longer patched is older than the object of the patched one.
	rm -rf "$BUILD/objects-pristine"
	link_tree "$src" "$BUILD/pristine"
	stage_patches "$BUILD/pristine.fixes" "$src" "${fixes[@]}"
	cp -r --remove-destination "$BUILD/pristine.fixes/." "$BUILD/pristine/"
}

build() {
	local tree=$1 out=$2

	mkdir -p "$out"
	(cd "$ROOT/guest/config" && cat base.config x86.config smp.config) > "$out/wanted.config"
	make -C "$tree" O="$out" ARCH=x86_64 "${KMAKE[@]}" KCONFIG_ALLCONFIG="$out/wanted.config" allnoconfig
	make -C "$tree" O="$out" ARCH=x86_64 "${KMAKE[@]}" -j"$JOBS" prepare
	make -C "$tree" O="$out" ARCH=x86_64 "${KMAKE[@]}" -j"$JOBS" "${objects[@]}"
}

# unline OBJECT OUT: __initcall__kmod_bio__539_2218_init_bio4 loses its 2218.
unline() {
	"llvm-nm$LLVM_SUFFIX" -j "$1" |
		sed -n 's/^\(__initcall__[a-z0-9_]*__[0-9]*_\)[0-9]*\(_.*\)$/& \1\2/p' > "$2.syms"
	"llvm-objcopy$LLVM_SUFFIX" --redefine-syms="$2.syms" "$1" "$2"
}

find_toolchain
src=$("$ROOT/setup/kernel-source.sh")
log=$BUILD/log/objects.log
fixes=$(series '\(upstream\|split\)/')
mapfile -t fixes <<< "$fixes"
farm_of="$src $(cat "${fixes[@]}" | sha256sum)"
[ "$(cat "$BUILD/pristine/.farm-of" 2> /dev/null)" = "$farm_of" ] || {
	STEP_NAME="linking the pristine source" step 10 "$log" farm
	echo "$farm_of" > "$BUILD/pristine/.farm-of"
}
STEP_NAME="building objects of the pristine tree" step 90 "$log" build "$BUILD/pristine" "$BUILD/objects-pristine"
STEP_NAME="building objects with the option off" step 90 "$log" build "$BUILD/linux" "$BUILD/objects-off"

failed=0
for object in "${objects[@]}"; do
	unline "$BUILD/objects-pristine/$object" "$BUILD/objects-pristine/unlined.o"
	unline "$BUILD/objects-off/$object" "$BUILD/objects-off/unlined.o"
	if cmp "$BUILD/objects-pristine/unlined.o" "$BUILD/objects-off/unlined.o"; then
		echo "ok $object is the pristine one"
	else
		echo "not ok $object"
		failed=$((failed + 1))
	fi
done
echo "$((${#objects[@]} - failed)) passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
