#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Makes a disk of a virtual machine: this machine's release of Debian (debootstrap), with its own
# boot loader, where apt installs a kernel package as its user would.
#
# usage: deb-disk.sh DISK PACKAGE [KERNEL-ARGUMENT...]: DISK is a raw image; root, and a loop device.
#        deb-disk.sh --check: whether it could
# What runs in it when it is up is run of a 9p directory named "scratch", see deb-boot.service.

# Not run here: grub-install update-grub systemctl (the disk has its own)
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

disk=$1
package=${2:-}
arguments=${*:3}
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# What the guest tests run, beside what boots.
packages=systemd-sysv,udev,kmod,initramfs-tools,grub-pc,zstd,xfsprogs,e2fsprogs,btrfs-progs,nfs-kernel-server,nfs-common,keyutils,util-linux,util-linux-extra,procps,gawk
base=$CACHE/deb-base-$release-$(echo "$packages" | sha256sum | cut -c1-8).tar

make_base() {
	local dir=$BUILD/deb/base site

	site=$(debian_site)
	rm -rf --one-file-system "$dir"
	mkdir -p "$dir"
	DEBIAN_FRONTEND=noninteractive debootstrap --variant=minbase --include="$packages" "$release" "$dir" "$site"
	# No packages that are fetched, and no key of this machine's.
	rm -rf "$dir"/var/cache/apt/archives/*.deb "$dir"/var/lib/apt/lists/* "$dir/etc/machine-id"
	: > "$dir/etc/machine-id"
	tar -C "$dir" --numeric-owner -cf "$base.tmp" .
	mv "$base.tmp" "$base"
	rm -rf --one-file-system "$dir"
}

# The devices that grub and apt look at, and not all of this machine's.
make_devices() {
	local name

	mount -t tmpfs -o mode=755 dev "$mnt/dev"
	for name in null zero full random urandom tty; do
		cp -a "/dev/$name" "$mnt/dev/"
	done
	mkdir -p "$mnt/dev/disk/by-uuid" "$mnt/dev/pts"
	cp -a "$loop" "$loop"p1 "$mnt/dev/"
	# Names that udev would make, and that the kernel's command line is to have.
	ln -s "../../${loop##*/}p1" "$mnt/dev/disk/by-uuid/$uuid"
}

inside() {
	chroot "$mnt" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

fill() {
	mount "$loop"p1 "$mnt"
	tar -C "$mnt" --numeric-owner -xpf "$base"
	make_devices
	mount -t proc proc "$mnt/proc"
	mount -t sysfs sysfs "$mnt/sys"
	echo "UUID=$uuid / ext4 defaults 0 1" > "$mnt/etc/fstab"
	echo dontcache > "$mnt/etc/hostname"
	printf '%s\n' GRUB_DEFAULT=0 GRUB_TIMEOUT=0 GRUB_TERMINAL=serial GRUB_CMDLINE_LINUX_DEFAULT= \
		"GRUB_CMDLINE_LINUX=\"console=ttyS0 $arguments\"" > "$mnt/etc/default/grub"
	cp "$ROOT/setup/deb-boot.service" "$mnt/etc/systemd/system/"
	inside systemctl enable deb-boot.service
	cp "$package" "$mnt/root/"
	# What its user types. With no lists there is nothing to fetch.
	inside apt-get install -y "/root/$(basename "$package")"
	rm "$mnt/root/$(basename "$package")"
	inside grub-install --target=i386-pc "$loop"
	inside update-grub
	grep -q "root=UUID=$uuid" "$mnt/boot/grub/grub.cfg"
	umount "$mnt/sys" "$mnt/proc" "$mnt/dev"
	umount "$mnt"
}

make_disk() {
	rm -f "$disk"
	truncate -s 4G "$disk"
	echo 'start=2048, type=83, bootable' | sfdisk -q --label dos "$disk"
	loop=$(losetup -fP --show "$disk")
	# Whatever ends this: it keeps the disk's blocks. This is the shell of a step.
	trap 'losetup -d "$loop"; rm -f "$made"' EXIT
	made=
	# A kernel that reads no such tables is told.
	[ -e "/sys/class/block/${loop##*/}p1" ] || addpart "$loop" 1 2048 $((4 * 2 ** 21 - 2048))
	# Where no devtmpfs makes it; one that is left of another disk is not ours.
	if [ "$(stat -c %t:%T "${loop}p1" 2> /dev/null)" != "$(awk -F: '{ printf "%x:%x", $1, $2 }' "/sys/class/block/${loop##*/}p1/dev")" ]; then
		made=${loop}p1
		rm -f "$made"
		# shellcheck disable=SC2046 # major and minor
		mknod "$made" b $(tr : ' ' < "/sys/class/block/${loop##*/}p1/dev")
	fi
	mkfs.ext4 -q -F "${loop}p1"
	uuid=$(blkid -s UUID -o value "${loop}p1")
	mnt=$BUILD/deb/mnt
	mkdir -p "$mnt"
	export -f fill make_devices inside
	export loop uuid mnt base package arguments ROOT
	# Mounts of a namespace that ends with it.
	unshare --mount bash -euc fill
}

[ "$(id -u)" = 0 ] || die "only root can make a disk of a machine" "run this as root"
need_tools debootstrap=debootstrap sfdisk=fdisk mkfs.ext4=e2fsprogs losetup=mount unshare=util-linux blkid=util-linux addpart=util-linux
losetup -f > /dev/null 2>&1 || die "there is no loop device here" "modprobe loop, or use a machine that has one"
[ "$disk" != --check ] || exit 0
need_space "$BUILD" 6
mkdir -p "$BUILD/deb"
[ -e "$base" ] || STEP_NAME="making a machine of Debian $release" step 180 "$BUILD/log/deb-base.log" make_base
STEP_NAME="installing $(basename "$package") there" step 60 "$BUILD/log/deb-disk.log" make_disk
