#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make demo: from a fresh machine to the table and the plot.
#
# usage: demo.sh OUTDIR [OPTION OF bench/demo.py...]

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

out=$1
shift

# A wrong option is to be heard of now, and not after the build.
python3 "$ROOT/bench/demo.py" --kernel x --fio x --out x --check-options "$@"
need_space "$CACHE" 12
need_tools mkfs.xfs=xfsprogs setpriv=util-linux
"$ROOT/setup/overlay.sh"
kernel=$("$ROOT/setup/kernel.sh" um rust)
fio=$("$ROOT/setup/fio.sh")
venv=$("$ROOT/setup/venv.sh")
exec "$venv/bin/python" "$ROOT/bench/demo.py" --kernel "$kernel" --fio "$fio" --out "$out" "$@"
