#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs a script in a QEMU guest with an NVMe disk, booted by virtme-ng. Always
# emulated: where /dev/kvm exists it need not work. This machine's files are
# there read-only, but for one directory.
#
# usage: qemu.sh KERNEL SCRATCH SECONDS SCRIPT [KERNEL-ARGUMENT...]
#
# The same contract as that of uml.sh; CPUS and MEMORY (default 4, 1G) too, NVME
# (more properties of QEMU's NVMe device), and ICOUNT: an instruction takes
# 2^ICOUNT ns, and a machine that has other things to do shows little in times.
# QEMU=PATH, or QEMU_DIR=DIR with a qemu-system-x86_64, is another one than that
# of setup/qemu.sh.

. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"

prepare "${@:1:4}"
shift 4

. "$ROOT/setup/toolchain.sh"
qemu=$("$ROOT/setup/qemu.sh")
venv=$("$ROOT/setup/venv.sh")
truncate -s 512M "$scratch/disk"
cat > "$scratch/start" <<-'EOS'
	cd "$(dirname "$0")" || exit 1
	PATH=/usr/sbin:/usr/bin:/sbin:/bin
	export PATH
	mount -t tmpfs tmpfs /mnt
	mkdir /mnt/fs
	[ -e /sys/kernel/debug/block ] || mount -t debugfs debugfs /sys/kernel/debug
	# virtme-ng starts the machine's udevd, which reads a device each time somebody closes it:
	# pages in its cache that no test put there.
	! command -v udevadm > udev || udevadm control --exit > udev 2>&1
	sh ./run > log 2>&1 < /dev/null
	echo $? > status
EOS

args=()
for arg in "$@" null_blk.nr_devices=0 panic=-1; do
	args+=(--append "$arg")
done
rc=0
PATH=$venv/bin:$PATH interruptible timeout -k 5 "$seconds" "$venv/bin/vng" --disable-kvm --disable-microvm --force-9p \
	--cpus "${CPUS:-4}" --memory "${MEMORY:-1G}" --rwdir "$scratch" --qemu "$qemu" "${args[@]}" \
	--qemu-opts="-drive file=$scratch/disk,format=raw,cache=unsafe,if=none,id=nvm -device nvme,serial=dontcache,drive=nvm${NVME:+,$NVME}${ICOUNT:+ -icount shift=$ICOUNT,sleep=on}" \
	--verbose --run "$kernel" -- sh "$scratch/start" > "$scratch/console" 2>&1 < /dev/null || rc=$?
rm -f "$scratch/disk"
finish $rc
