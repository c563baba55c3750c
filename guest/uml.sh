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

. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"

prepare "${@:1:4}"
shift 4

case $* in *mem=*) ;; *) set -- "$@" mem=1500M ;; esac

# The guest's memory is a file. /dev/shm is memory if it is large enough (in a
# container it often is not), a disk would be written to all the time.
shm=$(df -Pm /dev/shm 2> /dev/null | awk 'NR == 2 { print $4 }')
[ "${shm:-0}" -lt 4096 ] || export TMPDIR=/dev/shm

rc=0
interruptible timeout -k 5 "$seconds" "$kernel" "$@" seccomp=on \
	root=/dev/root rootfstype=hostfs rootflags=/ ro init="$ROOT/guest/init" \
	guest_scratch="$scratch" uml_dir="$scratch/" null_blk.nr_devices=0 con=null con0=fd:0,fd:1 \
	panic=-1 quiet > "$scratch/console" 2>&1 < /dev/null || rc=$?
stty sane 2> /dev/null || true
finish $rc
