#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs guest/functional.sh in a guest, and prints its log.
#
# usage: guest-test.sh um|virtual|x86 ENGINE

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

arch=$1
engine=$2
scratch=$BUILD/run/$arch-$engine
rc=0

need_tools mkfs.xfs=xfsprogs mkfs.ext4=e2fsprogs setpriv=util-linux
rm -rf "$scratch"
mkdir -p "$scratch"
cp "$("$ROOT/setup/fio.sh")" "$scratch/fio"
case $arch in
um | virtual)
	printf 'ENGINE=%s\nDISK=nullb\n' "${engine%-*}" > "$scratch/env"
	"$ROOT/guest/uml.sh" "$BUILD/$arch-$engine/linux" "$scratch" 300 "$ROOT/guest/functional.sh" \
		ncpus=2 kunit.enable=0 || rc=$?
	;;
x86)
	printf 'ENGINE=%s\nDISK=/dev/nvme0n1\n' "${engine%-*}" > "$scratch/env"
	"$ROOT/guest/qemu.sh" "$BUILD/x86-$engine/arch/x86/boot/bzImage" "$scratch" 900 \
		"$ROOT/guest/functional.sh" kunit.enable=0 || rc=$?
	;;
esac
cat "$scratch/log"
exit $rc
