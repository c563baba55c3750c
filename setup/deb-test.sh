#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The packages of make deb in a machine as its users have it: installed by apt, booted through its
# own boot loader, and there KUnit and the guest tests. Root.

# Not run here: mkfs.ext4 mkfs.xfs xfs_io (the machine has its own)
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"

scratch=$BUILD/run/deb
disk=$BUILD/deb/disk.img

# boot: until the machine ends itself.
boot() {
	timeout --foreground -k 5 3600 "$qemu" -machine q35,accel=tcg -cpu max,la57=off -smp 4 -m 2G -no-reboot -display none -monitor none \
		-serial "file:$scratch/console" -nic none \
		-drive "file=$disk,format=raw,cache=unsafe,if=virtio" \
		-drive "file=$scratch/nvme,format=raw,cache=unsafe,if=none,id=nvm" -device nvme,serial=dontcache,drive=nvm \
		-virtfs "local,path=$scratch,mount_tag=scratch,security_model=none,id=scratch"
}

parse() {
	cd "$BUILD/linux"
	TERM=dumb python3 tools/testing/kunit/kunit.py parse < "$scratch/console" > "$scratch/kunit.log" 2>&1
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
# Before the packages, which take long.
"$ROOT/setup/deb-disk.sh" --check
"$ROOT/setup/deb.sh" "$BUILD/deb/packages" > /dev/null
package=$(find "$BUILD/deb/packages" -name 'linux-image-*.deb' ! -name '*-dbg_*')
version=$(dpkg-deb -f "$package" Package)
version=${version#linux-image-}
expect "the kernel has the engines" grep -qx CONFIG_DONTCACHE_RUST=y "$BUILD/deb/kernel/.config"
"$ROOT/setup/deb-disk.sh" "$disk" "$package" kunit.enable=1 panic=-1
qemu=$("$ROOT/setup/qemu.sh")

rm -rf "$scratch"
mkdir -p "$scratch"
truncate -s 512M "$scratch/nvme"
fio=$("$ROOT/setup/fio.sh")
mkdir "$scratch/lib"
cp "$fio" "$scratch/fio"
# Of fio's the one that the machine has not.
cp -L "$(ldd "$fio" | awk '/libaio/ { print $3 }')" "$scratch/lib/"
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
	# The tests have a server of their own, and one is there from boot on where its package is.
	systemctl stop nfs-server nfs-mountd nfs-idmapd
	mount -t tmpfs tmpfs /tmp
	mount -t tmpfs tmpfs /mnt
	mkdir /mnt/fs
	PATH=$PWD:$PATH LD_LIBRARY_PATH=$PWD/lib sh ./run > log 2>&1 < /dev/null
	echo $? > status
EOS
STEP_NAME="booting $version, and its tests" STEP_NEXT="read $scratch/console and" step 1200 "$BUILD/log/deb-boot.log" boot

expect "its own boot loader booted it" grep -q "^BOOT_IMAGE=/boot/vmlinuz-$version root=UUID=" "$scratch/cmdline"
expect "it is the package's" grep -q "^linux-image-$version: " "$scratch/owner"
expect "all modules are there" diff /dev/null "$scratch/modules"
if (parse) && grep -q '\[PASSED\]' "$scratch/kunit.log"; then
	result "ok KUnit: $(grep -o 'Ran [0-9]* tests: .*' "$scratch/kunit.log")"
else
	result "not ok KUnit"
	tail -n 12 "$scratch/kunit.log"
fi
results guest "$scratch/log"
rm -f "$disk" "$scratch/nvme"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
