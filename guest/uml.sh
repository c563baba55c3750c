#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs a script in a UML guest: as an ordinary user, with this machine's files
# read-only, and one directory to write to.
#
# usage: uml.sh KERNEL SCRATCH SECONDS SCRIPT [KERNEL-ARGUMENT...]
#
# SCRIPT is run by sh in SCRATCH, where it finds io, fio (when built) and what
# the caller put there; its output is SCRATCH/log, its status is that of this
# script. A guest that is not done after SECONDS is killed: status 124.

. "$(dirname "${BASH_SOURCE[0]}")/../setup/lib.sh"

kernel=$1
scratch=$2
seconds=$3
script=$4
shift 4

mkdir -p "$scratch"
scratch=$(cd "$scratch" && pwd)
rm -f "$scratch/status" "$scratch/log"
cp "$script" "$scratch/run"
cp "$ROOT/guest/lib.sh" "$scratch/"
cp "$("$ROOT/guest/tools.sh")" "$scratch/io"
case $* in *mem=*) ;; *) set -- "$@" mem=1500M ;; esac

# The guest's memory is a file. /dev/shm is memory if it is large enough (in a
# container it often is not), a disk would be written to all the time.
shm=$(df -Pm /dev/shm 2> /dev/null | awk 'NR == 2 { print $4 }')
[ "${shm:-0}" -lt 4096 ] || export TMPDIR=/dev/shm

rc=0
timeout --foreground -k 5 "$seconds" "$kernel" "$@" seccomp=on \
	root=/dev/root rootfstype=hostfs rootflags=/ ro init="$ROOT/guest/init" \
	guest_scratch="$scratch" null_blk.nr_devices=0 con=null con0=fd:0,fd:1 \
	panic=-1 quiet > "$scratch/console" 2>&1 < /dev/null || rc=$?
stty sane 2> /dev/null || true
if [ -s "$scratch/status" ]; then
	exit "$(cat "$scratch/status")"
fi
tail -n 20 "$scratch/console" >&2
[ "$rc" -ne 124 ] || { say "the guest was not done after $seconds s"; exit 124; }
die "the guest stopped without a status" "read $scratch/console and $scratch/log"
