# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# shellcheck disable=SC2034 # for who sources this
# What the parts of the guest tests have in common. Sourced by each.

. ./lib.sh
# shellcheck source=/dev/null
. ./env

DONTCACHE=0x80
LAZY=0x200
policy=/proc/sys/vm/dontcache_policy
len=4194304
odd=$((len + 1234))
pages=$((len / 4096))

# shellcheck disable=SC2153 # of ./env
case $ENGINE in
rust) flags="$DONTCACHE $LAZY" ;;
*) flags=$DONTCACHE ;;
esac

# has FILESYSTEM: whether the kernel has it.
has() {
	grep -qw "$1" /proc/filesystems
}

filesystems=xfs
! has ext4 || filesystems="xfs ext4"

io() {
	./io "$@"
}

# set_policy NAME: where there is one.
set_policy() {
	[ ! -e $policy ] || echo "$1" > $policy
}
