#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What kbuild runs as CHECK on a C file: sparse and clang's analyzer, each with
# a log of its own in $CHECK_LOGS, named for the file.
#
# usage: SPARSE= CLANG= CHECK_TREE= CHECK_LOGS= checker.sh FLAGS... FILE
# SPARSE may be empty where there is none.

set -eu

file=${*: -1}
# kbuild first asks with a file of its own whether the checker understands the kernel's C.
case $file in
"$CHECK_TREE"/*) ;;
*) exec ${SPARSE:-true} "$@" ;;
esac
file=${file#"$CHECK_TREE"/}
log=$CHECK_LOGS/${file//\//-}
# A minute for fs/ext4/inode.c is too much for the lines of it that are ours.
mode=shallow
[ ! -e "$(dirname "$0")/../$file" ] || mode=deep
[ -z "$SPARSE" ] || "$SPARSE" "$@" > "$log.sparse" 2>&1

# The flags of the compiler are behind those of sparse, and begin with where dependencies go.
while [[ $1 != -Wp,-MMD,* ]]; do
	shift
done
shift
# It is the slowest of all checks, so not for a text that it has read before.
sum=$({ cat "$0" && "$CLANG" --version && "$CLANG" -E "$@"; } 2>&1 | sha256sum)
if [ ! -e "$log.analyzer" ] || [ "$(cat "$log.sum" 2> /dev/null)" != "$sum" ]; then
	rm -f "$log.sum"
	# As scripts/clang-tools/run-clang-tools.py does: the kernel has its own memcpy().
	"$CLANG" --analyze --analyzer-output text -Xclang -analyzer-config -Xclang "mode=$mode" -Xclang \
		-analyzer-disable-checker=security.insecureAPI.DeprecatedOrUnsafeBufferHandling \
		"$@" > "$log.analyzer" 2>&1
	echo "$sum" > "$log.sum"
fi
