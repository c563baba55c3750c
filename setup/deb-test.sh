#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The packages of make deb in a machine as its users have it: installed by apt, booted through its
# own boot loader, and there KUnit and the guest tests. Root; 40 minutes for the packages and 20 for
# the tests.

# Not run here: mkfs.ext4 mkfs.xfs xfs_io (the machine has its own)
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"

scratch=$BUILD/run/deb
disk=$BUILD/deb/disk.img

# boot: until the machine ends itself.
boot() {
	timeout -k 5 3600 "$qemu" -machine q35,accel=tcg -cpu max,la57=off -smp 4 -m 2G -no-reboot -display none -monitor none \
		-serial "file:$scratch/console" -nic none \
		-drive "file=$disk,format=raw,cache=unsafe,if=virtio" \
		-drive "file=$scratch/nvme,format=raw,cache=unsafe,if=none,id=nvm" -device nvme,serial=dontcache,drive=nvm \
		-virtfs "local,path=$scratch,mount_tag=scratch,security_model=none,id=scratch"
}

# expect NAME COMMAND...
expect() {
	local name=$1
	shift

	if "$@" > /dev/null; then
		result "ok $name"
	else
		result "not ok $name"
	fi
}

need_tools python3=python3
"$ROOT/setup/deb.sh" "$BUILD/deb/packages" > /dev/null
package=$(ls "$BUILD"/deb/packages/linux-image-*.deb)
version=$(dpkg-deb -f "$package" Package)
version=${version#linux-image-}
expect "the kernel has the engines" grep -qx CONFIG_DONTCACHE_RUST=y "$BUILD/deb/kernel/.config"
"$ROOT/setup/deb-disk.sh" "$disk" "$package" kunit.enable=1 panic=-1
qemu=$("$ROOT/setup/qemu.sh")

rm -rf "$scratch"
mkdir -p "$scratch"
truncate -s 512M "$scratch/nvme"
cp "$("$ROOT/setup/fio.sh")" "$scratch/fio"
cp "$("$ROOT/guest/tools.sh")" "$scratch/io"
for tool in dontcache sample-uring sample-log; do
	cp "$("$ROOT/guest/tools.sh" $tool)" "$scratch/"
done
cp "$ROOT"/guest/*.sh "$ROOT/guest/splats.awk" "$scratch/"
cp "$ROOT/guest/functional.sh" "$scratch/run"
printf '%s\n' ENGINE=rust DISK=/dev/nvme0n1 "PARTS='rw filesystems errors memory hung device dropping paced tool nfs'" \
	FOLIOS_A_LOCK=16 > "$scratch/env"
cat > "$scratch/start" <<'EOS'
	cat /proc/cmdline > cmdline
	uname -r > release
	dpkg -S "/boot/vmlinuz-$(uname -r)" > owner
	# What has not been used is not in /proc/filesystems, and has no device.
	for module in null_blk:nr_devices=0 brd:rd_nr=1:rd_size=65536 btrfs nfs nfsv4 nfsd configfs; do
		# shellcheck disable=SC2046
		modprobe $(echo $module | tr : ' ') || echo $module
	done > modules 2>&1
	# It reads a device each time somebody closes it: pages in its cache that no test put there.
	systemctl stop systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udevd
	mount -t tmpfs tmpfs /mnt
	mkdir /mnt/fs
	PATH=$PWD:$PATH sh ./run > log 2>&1 < /dev/null
	echo $? > status
EOS
STEP_NAME="booting $version, and its tests" STEP_NEXT="read $scratch/console and" step 1200 "$BUILD/log/deb-boot.log" boot

expect "its own boot loader booted it" grep -q "^BOOT_IMAGE=/boot/vmlinuz-$version root=UUID=" "$scratch/cmdline"
expect "it is the package's" grep -q "^linux-image-$version: " "$scratch/owner"
expect "all modules are there" diff /dev/null "$scratch/modules"
(cd "$BUILD/linux" && TERM=dumb python3 tools/testing/kunit/kunit.py parse < "$scratch/console") > "$scratch/kunit.log" 2>&1 || true
while read -r kunit; do
	result "$kunit"
done < <(sed -n 's/^\[[0-9:]*\] \[PASSED\] /ok KUnit: /p; s/^\[[0-9:]*\] \[SKIPPED\] /skip KUnit: /p; s/^\[[0-9:]*\] \[\(FAILED\|CRASHED\)\] /not ok KUnit: /p' "$scratch/kunit.log")
expect "KUnit ran" grep -q 'Testing complete' "$scratch/kunit.log"
results guest "$scratch/log"
rm -f "$disk" "$scratch/nvme"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
