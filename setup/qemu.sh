#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prints the path of the QEMU for guests: QEMU=PATH or that of QEMU_DIR=DIR if one is set, the
# machine's own if it is new enough, or what setup/qemu-new.sh gets. QEMU 7.2, that of Debian 12,
# runs instructions that are no longer there: after text_poke() has put a kernel's code back, a
# CPU meets the int3 that stood there, and one boot in some dozens dies before its first test.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

given=${QEMU:-${QEMU_DIR:+$QEMU_DIR/qemu-system-x86_64}}
if [ -n "$given" ]; then
	[ -x "$given" ] || die "no QEMU $given" "setup/qemu-new.sh gets one, and prints its path"
	echo "$given"
	exit
fi
. "$ROOT/setup/toolchain.sh"
need_tools qemu-system-x86_64=qemu-system-x86
own=$(command -v qemu-system-x86_64)
version=$("$own" --version | sed -n 's/^QEMU emulator version \([0-9]*\).*/\1/p')
if [ "${version:-0}" -lt 10 ] && new=$("$ROOT/setup/qemu-new.sh"); then
	own=$new
elif [ "${version:-0}" -lt 10 ]; then
	echo "warning: QEMU $version may crash a guest by itself; next: install QEMU >= 10" >&2
fi
echo "$own"
