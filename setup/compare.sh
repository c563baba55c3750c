#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make bench-compare: what got better or worse from a run of the lab to another.
#
# usage: compare.sh A B [OPTION OF bench/lab.py compare...]
#
# Not run here: mkfs.xfs mkfs.ext4 qemu-system-x86_64 nm (they are of bench/lab.py run)

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

[[ -n $1 && -n $2 ]] || die "two runs are compared" "make bench-compare A=before/lab.json B=build/bench/lab.json"
need_tools python3=python3
exec python3 "$ROOT/bench/lab.py" compare "$@"
