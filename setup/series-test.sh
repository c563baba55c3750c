#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Whether a kernel can be built after each patch of make series, so that git bisect can stop there:
# UML, and on x86 the objects of files that UML has not; after the last the directories that all of
# them change, and the tool. What they add is enabled where it is there, but for KCSAN, which is a
# kernel of its own (make torture).

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"
. "$ROOT/setup/series.sh"

tree=$BUILD/series-test/linux
series=$BUILD/series-test/patches
log=$BUILD/log/series-test.log
# Of x86 what UML has not: migration, memory that goes offline, NFS, CPUs that go offline.
x86=(MEMORY_HOTPLUG MEMORY_HOTREMOVE NETWORK_FILESYSTEMS INET NFS_FS NFS_V3 NFS_V4 NFSD NFSD_V4
	SAMPLES SAMPLES_RUST SAMPLE_RUST_BIO_TORTURE)
dirs=(mm/ block/ fs/ rust/ samples/rust/)

# built ARCH CONFIG TARGET...: with that configuration and what there is of ours.
built() {
	local arch=$1 out=$BUILD/series-test/$1 config=$2
	shift 2

	mkdir -p "$out"
	# XFS is large, and no patch is of it.
	cat "$ROOT"/guest/config/{base,"$config",smp,rust-kunit}.config | grep -v '^CONFIG_XFS_FS=' > "$out/wanted.config"
	[ "$arch" = um ] || printf 'CONFIG_%s=y\n' "${x86[@]}" >> "$out/wanted.config"
	make -s -C "$tree" O="$out" ARCH="$arch" "${KMAKE[@]}" KCONFIG_ALLCONFIG="$out/wanted.config" allnoconfig &&
		make -s -C "$tree" O="$out" ARCH="$arch" "${KMAKE[@]}" -j"$JOBS" "$@"
}

# only_x86 PATCH: the objects of what it changes that the UML kernel has not.
only_x86() {
	local file of=("$series/$1")

	# Who knows who includes it.
	! touched "${of[@]}" | grep -q '\.h$' || of=("$series"/*.patch)
	touched "${of[@]}" | sed -n 's/\.c$/.o/p' | { grep -E '^(mm|block|fs)/' || true; } | while read -r file; do
		[ -e "$BUILD/series-test/um/$file" ] || echo "$file"
	done
}

# after PATCH [TARGET...]: applies it, and builds, on x86 those too.
after() {
	local patch=$1 found objects=()
	shift

	(cd "$tree" && GIT_CEILING_DIRECTORIES="$BUILD" git apply "$series/$patch") || return
	built um um linux || return
	found=$(only_x86 "$patch") || return
	[ -z "$found" ] || mapfile -t objects <<< "$found"
	objects+=("$@")
	[ ${#objects[@]} = 0 ] || { built x86_64 x86 prepare && built x86_64 x86 "${objects[@]}"; } || return
	[ $# = 0 ] || make -s -C "$tree/tools" "${KMAKE[@]}" dontcache
}

find_toolchain
need_space "$BUILD" 6
need_tools rsync=rsync git=git make=make
src=$("$ROOT/setup/kernel-source.sh")
"$ROOT/setup/make-series.sh" "$series"
# Objects of another series are newer than what they would be made of.
rm -rf "$BUILD/series-test"/{linux,um,x86_64}
STEP_NAME="copying the kernel source" step 30 "$BUILD/log/copy-tree.log" copy_source "$src" "$tree"
mapfile -t patches < "$series/series"
start=$(date +%s)
for nr in "${!patches[@]}"; do
	patch=${patches[$nr]}
	targets=()
	[ $((nr + 1)) -lt ${#patches[@]} ] || targets=("${dirs[@]}")
	watched 240 "$log" after "$patch" "${targets[@]}"
	if [ "$watched_rc" = 0 ]; then
		result "ok $patch"
	else
		result "not ok $patch"
		tail -n 12 "$log"
	fi
	say "  $((nr + 1)) of ${#patches[@]}, about $((($(date +%s) - start) * (${#patches[@]} - nr - 1) / (nr + 1))) s left"
done
# What is built last is all of it.
for arch in um x86_64; do
	absent=$(grep -E '^CONFIG_[A-Z0-9_]*=y' "$BUILD/series-test/$arch/wanted.config" |
		grep -vxFf "$BUILD/series-test/$arch/.config" | paste -sd ' ') || true
	if [ -z "$absent" ] && [ -s "$BUILD/series-test/$arch/.config" ]; then
		result "ok all of it was enabled: $arch"
	else
		result "not ok all of it was enabled: $arch has no $absent"
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
