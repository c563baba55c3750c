#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Whether a kernel can be built after each patch of make series, so that git bisect can stop there:
# UML, and on x86 the directories that they change, with what they add enabled where it is there.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"
. "$ROOT/setup/series.sh"

tree=$BUILD/series-test/linux
series=$BUILD/series-test/patches
log=$BUILD/log/series-test.log
# Of x86 what UML has not: migration, memory that goes offline, NFS.
x86=(MEMORY_HOTPLUG MEMORY_HOTREMOVE NETWORK_FILESYSTEMS INET NFS_FS NFS_V3 NFS_V4 NFSD NFSD_V4)
dirs=(mm/ block/ fs/ rust/)

# built ARCH CONFIG TARGET...: with that configuration and what there is of ours.
built() {
	local arch=$1 out=$BUILD/series-test/$1 config=$2
	shift 2

	mkdir -p "$out"
	# XFS is large, and no patch is of it.
	cat "$ROOT"/guest/config/{base,"$config",rust-kunit}.config | grep -v '^CONFIG_XFS_FS=' > "$out/wanted.config"
	[ "$arch" = um ] || printf 'CONFIG_%s=y\n' "${x86[@]}" >> "$out/wanted.config"
	make -s -C "$tree" O="$out" ARCH="$arch" "${KMAKE[@]}" KCONFIG_ALLCONFIG="$out/wanted.config" allnoconfig &&
		make -s -C "$tree" O="$out" ARCH="$arch" "${KMAKE[@]}" -j"$JOBS" "$@"
}

# after PATCH: applies it, and builds.
after() {
	(cd "$tree" && GIT_CEILING_DIRECTORIES="$BUILD" git apply "$series/$1") &&
		built um um linux && built x86_64 x86 prepare && built x86_64 x86 "${dirs[@]}"
}

find_toolchain
need_space "$BUILD" 6
need_tools rsync=rsync git=git make=make
src=$("$ROOT/setup/kernel-source.sh")
"$ROOT/setup/make-series.sh" "$series"
rm -rf "$tree"
STEP_NAME="copying the kernel source" step 30 "$BUILD/log/copy-tree.log" copy_source "$src" "$tree"
mapfile -t patches < "$series/series"
start=$(date +%s)
for nr in "${!patches[@]}"; do
	patch=${patches[$nr]}
	watched 240 "$log" after "$patch"
	if [ "$watched_rc" = 0 ]; then
		result "ok $patch"
	else
		result "not ok $patch"
		tail -n 12 "$log"
	fi
	say "  $((nr + 1)) of ${#patches[@]}, about $((($(date +%s) - start) * (${#patches[@]} - nr - 1) / (nr + 1))) s left"
done
# What is built last is all of it.
if grep -qx CONFIG_DONTCACHE_PACED=y "$BUILD/series-test/um/.config"; then
	result "ok all of it was enabled"
else
	result "not ok all of it was enabled"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
