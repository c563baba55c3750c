#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes $BUILD/linux: a copy of a Linux 7.3 tree with this overlay applied. The
# source tree is only read. Everything is put together in a staging directory
# first, so a patch that does not apply leaves $BUILD/linux as it was; files
# that did not change keep their times, so a rebuild is short.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/series.sh"
. "$ROOT/setup/patchset.sh"

need_tools rsync=rsync git=git make=make
src=$("$ROOT/setup/kernel-source.sh")
tree=$BUILD/linux
stage=$BUILD/stage

# release: what tells one state of the source from another, without a look at each file.
release() {
	stat -c '%Y %s' "$src/Makefile"
	git -C "$src" rev-parse -q --verify HEAD 2> /dev/null || true
}

copy_tree() {
	rm -rf "$tree" "$tree.tmp"
	copy_source "$src" "$tree.tmp"
	echo "$src" > "$tree.tmp/.overlay-source"
	release > "$tree.tmp/.overlay-release"
	mv "$tree.tmp" "$tree"
}

stage_overlay() {
	local file files

	files=$(own_files)
	while read -r file; do
		[ ! -e "$src/$file" ] ||
			die "$file of the overlay is in $src already" "use an unmodified Linux 7.3 tree; nothing was changed"
		mkdir -p "$stage/$(dirname "$file")"
		cp "$(own_file "$file")" "$stage/$file"
	done <<< "$files"
}

# Puts the stage into the tree, and takes out what an earlier overlay left there.
install_stage() {
	local file

	(cd "$stage" && find . -type f -printf '%P\n' | sort) > "$BUILD/overlay.new"
	if [ -f "$tree/.overlay-files" ]; then
		comm -23 "$tree/.overlay-files" "$BUILD/overlay.new" | while read -r file; do
			rm -f "$tree/$file"
			[ ! -f "$src/$file" ] || cp "$src/$file" "$tree/$file"
		done
	fi
	rsync -rc "$stage/" "$tree/"
	mv "$BUILD/overlay.new" "$tree/.overlay-files"
}

mkdir -p "$BUILD"
patches=$(series '')
mapfile -t patches <<< "$patches"
stage_patches "$stage" "$src" "${patches[@]}"
stage_overlay
if [ "$(cat "$tree/.overlay-source" "$tree/.overlay-release" 2> /dev/null)" != "$(echo "$src" && release)" ]; then
	need_space "$BUILD" 12
	STEP_NAME="copying the kernel source" step 30 "$BUILD/log/copy-tree.log" copy_tree
fi
install_stage
