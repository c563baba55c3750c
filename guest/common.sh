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

# What kernels have that do not pace writers.
default_policy=flush
policies="flush lazy kick"
if grep -q dontcache_write_checks /proc/kallsyms; then
	default_policy=paced
	policies="$policies paced"
fi

io() {
	./io "$@"
}

# set_policy NAME: where there is one.
set_policy() {
	[ ! -e $policy ] || echo "$1" > $policy
}

# Nothing is written but by what is tested. What was on its way until now gets there.
quiet() {
	echo 0 > /proc/sys/vm/dirty_writeback_centisecs
	[ ! -e /proc/sys/fs/xfs/xfssyncd_centisecs ] || echo 720000 > /proc/sys/fs/xfs/xfssyncd_centisecs
	echo 268435456 > /proc/sys/vm/dirty_background_bytes
	echo 536870912 > /proc/sys/vm/dirty_bytes
}

loud() {
	echo 500 > /proc/sys/vm/dirty_writeback_centisecs
	[ ! -e /proc/sys/fs/xfs/xfssyncd_centisecs ] || echo 3000 > /proc/sys/fs/xfs/xfssyncd_centisecs
	echo 10 > /proc/sys/vm/dirty_background_ratio
	echo 20 > /proc/sys/vm/dirty_ratio
}
