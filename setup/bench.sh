#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make bench: from a fresh machine to tables, plots and one page.
#
# usage: bench.sh OUTDIR [OPTION OF bench/lab.py run...]

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

out=$1
shift

need_tools python3=python3
# A wrong option is to be heard of now, and not after the builds.
kernels=$(python3 "$ROOT/bench/lab.py" kernels "$@")
claim_out "$out"
need_space "$out" 1 OUT=
need_space "$CACHE" 12
need_tools mkfs.xfs=xfsprogs mkfs.ext4=e2fsprogs setpriv=util-linux
[[ $kernels != *x86* ]] || need_tools qemu-system-x86_64=qemu-system-x86 nm=binutils
"$ROOT/setup/overlay.sh"
while read -r arch engine; do
	"$ROOT/setup/kernel.sh" "$arch" "$engine" > /dev/null
done <<< "$kernels"
fio=$("$ROOT/setup/fio.sh")
venv=$("$ROOT/setup/venv.sh")
exec "$venv/bin/python" "$ROOT/bench/lab.py" run --build "$BUILD" --fio "$fio" --out "$out" "$@"
