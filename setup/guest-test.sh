#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs guest/functional.sh in a guest, and prints its log.
#
# usage: guest-test.sh um|virtual|x86 ENGINE
#
# PARTS='device errors' runs only those, see guest/functional.sh; QEMU=PATH is another QEMU.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

arch=$1
engine=$2
rc=0

# boot NAME SECONDS PARTS [KERNEL-ARGUMENT...]: runs the tests in a guest, and prints their log.
boot() {
	local scratch=$BUILD/run/$arch-$engine$1 seconds=$2 parts=$3 disk=nullb status=0
	shift 3

	rm -rf "$scratch"
	mkdir -p "$scratch"
	cp "$fio" "$scratch/fio"
	cp "${samples[@]}" "$scratch/"
	cp "$ROOT"/guest/{common,flags,policy,device,dropping,paced,tool,filesystems,errors,nfs,nfsd,offline}.sh "$ROOT/guest/splats.awk" "$scratch/"
	[ "$arch" != x86 ] || disk=/dev/nvme0n1
	printf '%s\n' "ENGINE=${engine%-*}" "DISK=$disk" "PARTS='$parts'" "BOOT_POLICY=${boot_policy:-}" \
		"FOUND_POLICY=${found_policy:-}" "FOLIOS_A_LOCK=$folios_a_lock" > "$scratch/env"
	case $arch in
	um | virtual)
		# The disks of all parts are in memory, and stay.
		"$ROOT/guest/uml.sh" "$BUILD/$arch-$engine/linux" "$scratch" "$seconds" \
			"$ROOT/guest/functional.sh" ncpus=2 kunit.enable=0 mem=2000M "$@" || status=$?
		;;
	x86)
		"$ROOT/guest/qemu.sh" "$BUILD/x86-$engine/arch/x86/boot/bzImage" "$scratch" "$seconds" \
			"$ROOT/guest/functional.sh" kunit.enable=0 "${quirks[@]}" "$@" || status=$?
		;;
	esac
	cat "$scratch/log"
	[ $status = 0 ] || rc=$status
}

need_tools mkfs.xfs=xfsprogs xfs_io=xfsprogs mkfs.ext4=e2fsprogs chattr=e2fsprogs setpriv=util-linux
fio=$("$ROOT/setup/fio.sh")
samples=("$("$ROOT/guest/tools.sh" sample-uring)" "$("$ROOT/guest/tools.sh" sample-log)")
quirks=()
folios_a_lock=16
if [ "$engine" = rust-kasan ]; then
	# The disks are in memory, of which KASAN keeps much to itself.
	export MEMORY=${MEMORY:-2G}
	# identify_cpu() forgets for a moment that there are 5, and KASAN reports an interrupt of that.
	quirks=(no5lvl)
	folios_a_lock=8
fi
# Emulation of a kernel that checks its locks takes its time.
case $arch in
x86) seconds=2400 ;;
*) seconds=900 ;;
esac
parts=${PARTS:-}
[ "$parts" = offline ] || boot '' $seconds "${parts/offline/}"
if [[ $engine = rust* && -z ${PARTS:-} ]]; then
	# A policy from the command line, and one that there is not.
	boot_policy=kick found_policy=kick
	boot -boot 120 boot sysctl.vm.dontcache_policy=kick
	boot_policy=nonsense found_policy=paced
	boot -boot 120 boot sysctl.vm.dontcache_policy=nonsense
fi
# Half of the memory movable would be too little of the other for all else.
case " ${PARTS:-offline} " in
*' offline '*)
	if grep -qx CONFIG_MEMORY_HOTREMOVE=y "$BUILD/$arch-$engine/.config"; then
		boot -offline 900 offline movablecore=512M
	elif [ -n "$parts" ]; then
		echo "skip offline: this kernel cannot take memory offline"
		echo "0 passed, 0 failed, 1 skipped"
	fi
	;;
esac
exit $rc
