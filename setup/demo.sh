#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make demo: the lab in small, on one kernel: four modes of I/O on four workloads, in virtual time:
# what comes out is the same each time.
#
# usage: demo.sh OUTDIR POLICY MODES WORKLOADS [OPTION OF bench/lab.py run...]

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

out=$1
policy=${2:-paced}
modes=${3:-buffered,dontcache,direct,lazy}
workloads=${4:-seqwrite,mixed,randwrite,seqread}
shift 4

case $policy in
flush | lazy | kick | paced) ;;
*) die "invalid choice of a policy: $policy" "use flush, lazy, kick or paced" ;;
esac
# The lab has a name for each pair of a kernel and a mode; ours is the kernel here.
names=
for mode in ${modes//,/ }; do
	case $mode in
	buffered | direct) names+=,r$mode ;;
	dontcache) names+=,$policy ;;
	lazy) names+=,lazyflag ;;
	*) die "mode $mode is not one of buffered, dontcache, direct, lazy" "give some of them as MODES=a,b" ;;
	esac
done
exec "$ROOT/setup/bench.sh" "$out" --instruments virtual --variations 1 --repeat 0 --narrow \
	--modes "${names#,}" --workloads "$workloads" "$@"
