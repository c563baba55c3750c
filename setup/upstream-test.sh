#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests each patch of patches/upstream/ alone, on an otherwise pristine tree: that it
# applies, builds, boots, and passes the test that upstream without it fails. That
# upstream does is shown first, with one kernel for all.
#
# usage: upstream-test.sh [stock|NUMBER]...: all by default, 2 is 0002-*.patch

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"
. "$ROOT/setup/series.sh"
QEMU=$("$ROOT/setup/qemu.sh")
export QEMU

up=$BUILD/upstream
tree=$up/linux
out=$up/x86
log=$BUILD/log/upstream.log
# As if it were the tree with the overlay: most objects are in ccache then.
export CCACHE_BASEDIR=$up
# The pristine files that any patch touches, with PATCH... applied, and the KUnit suite.
set_tree() {
	local file

	rm -rf "$up/stage"
	while read -r file; do
		mkdir -p "$up/stage/$(dirname "$file")"
		cp "$src/$file" "$up/stage/$file"
	done < <(touched "${all[@]}")
	[ $# = 0 ] || {
		stage_patches "$up/patched" "$src" "$@"
		cp -r "$up/patched/." "$up/stage/"
	}

	mkdir -p "$up/stage/block"
	cp "$ROOT/block/bio_task_test.c" "$up/stage/block/"
	cp "$src/block/Kconfig" "$src/block/Makefile" "$up/stage/block/"
	# shellcheck disable=SC2016 # make's
	echo 'obj-$(CONFIG_BIO_TASK_KUNIT_TEST) += bio_task_test.o' >> "$up/stage/block/Makefile"
	cat >> "$up/stage/block/Kconfig" <<-EOC

		config BIO_TASK_KUNIT_TEST
			bool "KUnit tests for task-context bio completion"
			depends on BLOCK && KUNIT=y
	EOC
	# Written, and so newer than its object, only where it differs.
	rsync -rc "$up/stage/" "$tree/"
}

build() {
	local make=(make -C "$tree" O="$out" ARCH=x86_64 "${KMAKE[@]}")

	mkdir -p "$out"
	(cd "$ROOT/guest/config" && cat base.config x86.config smp.config upstream.config) > "$out/wanted.config"
	if ! cmp -s "$out/wanted.config" "$out/built.config"; then
		"${make[@]}" KCONFIG_ALLCONFIG="$out/wanted.config" allnoconfig
		# What fell to its dependencies would be missed by a test.
		if grep -E '^CONFIG_' "$out/wanted.config" | grep -vxFf "$out/.config"; then
			echo "error: not in the configuration"
			return 1
		fi
		cp "$out/wanted.config" "$out/built.config"
	fi
	"${make[@]}" -j"$JOBS" bzImage
}

kunit() {
	(
		cd "$tree"
		PATH=$ROOT/kunit/bin:$PATH PYTHONDONTWRITEBYTECODE=1 TERM=dumb python3 \
			tools/testing/kunit/kunit.py exec --build_dir="$out" --timeout=300 --arch=x86_64 \
			--qemu_args='-smp 4' 'bio_task.bio_task_[ch]o*' < /dev/null
	) > "$up/$name.kunit" 2>&1 || true
}

# Prepares the directory of a guest, run-NAME-TEST.
guest_dir() {
	scratch=$up/run-$name-$1
	rm -rf "$scratch"
	mkdir -p "$scratch"
	cp "$ROOT/guest/splats.awk" "$ROOT/guest/nfsd.sh" "$scratch/"
}

nbd() {
	guest_dir nbd
	cp "$("$ROOT/guest/tools.sh" nbd)" "$scratch/nbd"
	printf '%s\n' ENGINE=c "PARTS=nbd" "NBD_ROUNDS=${NBD_ROUNDS:-40}" JUDGE= > "$scratch/env"
	CPUS=2 ICOUNT=3 NVME=max_ioqpairs=1,msix_qsize=1 "$ROOT/guest/qemu.sh" "$out/arch/x86/boot/bzImage" \
		"$scratch" 900 "$ROOT/guest/hotunplug.sh" kunit.enable=0 nbd.nbds_max=1 nvme_core.io_timeout=5 || true
	touch "$scratch/log"
}

# guest PART: what guest/upstream.sh has of it.
guest() {
	guest_dir "$1"
	echo "PARTS=$1" > "$scratch/env"
	"$ROOT/guest/qemu.sh" "$out/arch/x86/boot/bzImage" "$scratch" 900 "$ROOT/guest/upstream.sh" \
		kunit.enable=0 numa=fake=2 || true
	touch "$scratch/log"
}

# fails PART TEST...: upstream fails these tests and no other.
fails() {
	local part=$1 line test
	shift

	guest "$part"
	for test; do
		if grep -qF "not ok $test" "$scratch/log"; then
			result "ok upstream without it fails: $test"
		else
			result "not ok upstream without it should have failed: $test"
		fi
	done
	while read -r line; do
		[[ $line = 'not ok '* ]] || continue
		for test; do
			[[ $line != "not ok $test"* ]] || continue 2
		done
		result "not ok upstream without it: ${line#not ok }"
	done < "$scratch/log"
	grep '^#' "$scratch/log" || true
	grep -q ' passed, ' "$scratch/log" || result "not ok upstream without it: the guest for $part did not end"
}

# passes PART: with the patch there is no failure.
passes() {
	guest "$1"
	results "$name" "$scratch/log"
}

stock() {
	kunit
	if grep -q 'PASSED.*bio_task_context' "$up/$name.kunit" &&
		grep -q 'the offline waits for bios that wait for it' "$up/$name.kunit"; then
		result "ok upstream without it fails: KUnit bio_task_hotunplug"
	else
		result "not ok upstream without it should have failed KUnit bio_task_hotunplug: see $up/$name.kunit"
	fi
	nbd
	if grep -q '^not ok offline of CPU 1 hangs in round [0-9]* of nbd$' "$scratch/log" &&
		grep -q blk_mq_hctx_notify_offline "$scratch/log" && grep -q folio_wait_writeback "$scratch/log"; then
		result "ok upstream without it hangs: $(grep '^not ok offline' "$scratch/log")"
	else
		result "not ok upstream without it should have hung the offline: see $scratch/log"
	fi
	fails ext4 "ext4 delalloc: overwrite is dropped" "ext4 dioread_lock: new file is dropped" \
		"ext4 dioread_lock: overwrite is dropped" "ext4 nodelalloc: new file is dropped" \
		"ext4 nodelalloc: overwrite is dropped" \
		"ext4: overwrite and append are dropped"
	fails nfs "nfs: stable writes are dropped" "nfs: stable overwrite is dropped" \
		"nfs: stable, parts of pages"
	fails migrate "migrate: pages are moved and dropped" "migrate: one page is asked for after"
}

block() {
	local test

	kunit
	for test in bio_task_context bio_task_hotunplug; do
		if grep -q "PASSED.*$test" "$up/$name.kunit"; then
			result "ok $name: KUnit $test"
		else
			result "not ok $name: KUnit $test: see $up/$name.kunit"
		fi
	done
	nbd
	results "$name" "$scratch/log"
}

need_tools filefrag=e2fsprogs e2fsck=e2fsprogs rsync=rsync git=git mkfs.xfs=xfsprogs mkfs.ext4=e2fsprogs \
	qemu-system-x86_64=qemu-system-x86
find_toolchain
need_space "$BUILD" 3
src=$("$ROOT/setup/kernel-source.sh")
all=("$ROOT"/patches/upstream/*.patch)
[ $# -gt 0 ] || set -- stock "${all[@]}"
mkdir -p "$up"
[ "$(cat "$up/links-to" 2> /dev/null)" = "$src" ] || {
	rm -rf "$out"
	STEP_NAME="linking the pristine source" step 10 "$log" link_tree "$src" "$tree"
	echo "$src" > "$up/links-to"
}

for which; do
	patches=()
	name=stock
	case $which in
	stock) ;;
	*)
		patches=("$which")
		[ -f "$which" ] || patches=("$ROOT/patches/upstream/000$which"-*.patch)
		[ -f "${patches[0]}" ] || die "no patch $which in patches/upstream" "give the number of one, or nothing for all"
		name=$(basename "${patches[0]}" | cut -c 1-4)
		;;
	esac
	# A step that fails ends its shell.
	if ! (STEP_NAME="patching a pristine tree: $name" step 5 "$log" set_tree "${patches[@]}"); then
		result "not ok $name applies alone"
		continue
	fi
	[ "$name" = stock ] || result "ok $name applies alone"
	if ! (STEP_NAME="building a pristine kernel with $name" step 900 "$BUILD/log/upstream-$name.log" build); then
		result "not ok $name builds"
		continue
	fi
	result "ok $name builds"
	case ${patches[0]:-} in
	'') stock ;;
	*-block-*) block ;;
	*-ext4-*) passes ext4 ;;
	*-NFS-*) passes nfs ;;
	*-migrate-*) passes migrate ;;
	*-in-sync-*) result "skip $name: no test here, no stream of upstream's kernel was seen to keep sync so;" \
		"WORKLOADS=sync of the lab and guest/paced.sh have one that does; it builds" ;;
	*-fs-*) result "skip $name: no test, since what it closes is open for some instructions; it builds" ;;
	*) result "not ok $name has no test" ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
