#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prints the directory of a Linux 7.3 tree: KERNEL_SRC if it is set, else the
# one downloaded earlier, else the distribution's linux-source-7.3, downloaded
# now. Superseded package versions vanish from the mirrors within weeks, so no
# exact version is asked for.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

# What the user has to set: make install takes a tree by another name, and no other than that.
option=${TREE_OPTION:-KERNEL_SRC}
or=
[ "$option" != KERNEL_SRC ] || or=", or leave it out to have one downloaded"

# The release that a tree's own Makefile states, such as 7.3.4.
release_of() {
	awk '$2 == "=" && $1 ~ /^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)$/ { v[$1] = $3 }
	     NR > 10 { exit }
	     END { print v["VERSION"] "." v["PATCHLEVEL"] "." v["SUBLEVEL"] v["EXTRAVERSION"] }' \
		"$1/Makefile"
}

check_tree() {
	if [ ! -f "$1/Makefile" ] || [ ! -f "$1/Kbuild" ] || [ ! -f "$1/block/bio.c" ]; then
		die "$1 is not a kernel tree" "pass $option=DIR with the top of a Linux 7.3 source tree"
	fi
	case $(release_of "$1") in
	7.3.*) ;;
	*)
		die "$1 is Linux $(release_of "$1"), not 7.3" \
			"pass $option=DIR with a Linux 7.3 tree$or"
		;;
	esac
}

download() {
	local tmp=$CACHE/linux-7.3.tmp

	rm -rf "$tmp"
	mkdir -p "$tmp"
	"$ROOT/setup/apt-private.sh" linux-source-7.3 "$tmp"
	dpkg-deb -x "$tmp"/linux-source-7.3_*.deb "$tmp/deb"
	mkdir "$tmp/tree"
	tar -xJf "$tmp/deb/usr/src/linux-source-7.3.tar.xz" -C "$tmp/tree" --strip-components=1
	# Renamed last, so that a cache directory is either whole or absent.
	mv "$tmp/tree" "$CACHE/linux-7.3"
	rm -rf "$tmp"
}

if [ -n "${KERNEL_SRC:-}" ]; then
	[ -d "$KERNEL_SRC" ] || die "$option=$KERNEL_SRC is not a directory" \
		"pass the top of a Linux 7.3 source tree$or"
	src=$(cd "$KERNEL_SRC" && pwd)
else
	src=$CACHE/linux-7.3
	if [ ! -d "$src" ]; then
		need_space "$CACHE" 5
		need_tools xz=xz-utils
		STEP_NAME="downloading the Linux 7.3 source" \
			step 90 "$CACHE/log/kernel-source.log" download
	fi
fi
check_tree "$src"
echo "$src"
