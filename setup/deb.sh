#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make deb: builds Debian packages of a kernel with the Rust engines (bindeb-pkg), and prints where
# they are.
#
# usage: deb.sh OUT [CONFIG]: the packages of setup/deb.config, which virtual machines boot, or of
# a configuration of one's own, to which what the engines need is added

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

place=$1
config=${2:-}
out=$BUILD/deb/kernel
kmake=()

configure() {
	local wanted

	mkdir -p "$out"
	if [ -n "$config" ]; then
		# Before the options that follow, since the last word on one counts.
		# Versions of symbols that Rust can have come from DWARF.
		grep -v '^CONFIG_GENKSYMS=' "$config" > "$out/wanted.config"
		printf 'CONFIG_%s=y\n' GENDWARFKSYMS RUST DONTCACHE_RUST DONTCACHE_LAZY >> "$out/wanted.config"
	else
		cp "$ROOT/setup/deb.config" "$out/wanted.config"
	fi
	# A build of the same is as it was, but for what changed in the tree.
	if [ -f "$out/.config" ] && cmp -s "$out/wanted.config" "$out/built.config"; then
		return
	fi
	# What is configured from here on may come out otherwise.
	rm -f "$out/built.config"
	if [ -n "$config" ]; then
		cp "$out/wanted.config" "$out/.config"
		"${kmake[@]}" olddefconfig
		return
	fi
	"${kmake[@]}" x86_64_defconfig kvm_guest.config
	(cd "$BUILD/linux" && scripts/kconfig/merge_config.sh -m -O "$out" "$out/.config" "$out/wanted.config")
	"${kmake[@]}" olddefconfig
	while read -r wanted; do
		grep -qxF "$wanted" "$out/.config" || echo "not in the configuration: $wanted"
	done < <(grep '^CONFIG_' "$out/wanted.config") > "$out/absent"
	cat "$out/absent"
	[ ! -s "$out/absent" ]
}

# possible: whether that configuration has the engines, and names no file that is not there.
possible() {
	local option file

	if ! grep -qx CONFIG_DONTCACHE_RUST=y "$out/.config"; then
		for option in MODVERSIONS RANDSTRUCT CFI_CLANG KASAN_SW_TAGS DEBUG_INFO_BTF; do
			! grep -qx "CONFIG_$option=y" "$out/wanted.config" ||
				say "  CONFIG_$option=y is in it, which Rust may not be able to live with"
		done
		die "CONFIG=$config with CONFIG_RUST and CONFIG_DONTCACHE_RUST added comes out without" \
			"look at what RUST depends on: $(printf '%q ' "${kmake[@]}")menuconfig, key / (needs libncurses-dev)"
	fi
	for option in SYSTEM_TRUSTED_KEYS SYSTEM_REVOCATION_KEYS; do
		file=$(sed -n "s/^CONFIG_$option=\"\(..*\)\"$/\1/p" "$out/.config")
		[ -z "$file" ] || [ -e "$BUILD/linux/$file" ] || [[ $file = /* && -e $file ]] ||
			die "CONFIG=$config names a file $file of its distribution in CONFIG_$option" \
				"in a copy of it, set that to \"\""
	done
}

# What is built, in a directory of its own, beside which dpkg-buildpackage puts the packages.
packages() {
	rm -f "$BUILD"/deb/*.{deb,buildinfo,changes}
	DEBFULLNAME=dontcache-rust DEBEMAIL=dontcache-rust@example.invalid KDEB_CHANGELOG_DIST=unstable \
		KDEB_PKGVERSION="$release-$(cat "$ROOT/VERSION")" DPKG_DEB_COMPRESSOR_TYPE=zstd \
		"${kmake[@]}" -j"$JOBS" bindeb-pkg
}

claim_out "$place"
[ -z "$config" ] || [ -f "$config" ] || die "CONFIG=$config is not a file" "name a configuration, as /boot/config-$(uname -r)"
# A wrong tree is to be heard of before anything is installed.
[ -z "${KERNEL_SRC:-}" ] || "$ROOT/setup/kernel-source.sh" > /dev/null
find_toolchain
need_tools /usr/share/build-essential/list=build-essential dpkg-buildpackage=dpkg-dev dh_builddeb=debhelper dpkg-deb=dpkg zstd=zstd depmod=kmod
# What bindeb-pkg asks for, whatever the configuration.
need_tools /usr/include/elfutils/libdw.h=libdw-dev
"$ROOT/setup/overlay.sh"
# With a distribution's thousands of modules, and what gdb wants of them.
need_space "$BUILD" "$([ -n "$config" ] && echo 40 || echo 6)"
kmake=(make -C "$BUILD/linux" O="$out" ARCH=x86_64 "${KMAKE[@]}" LOCALVERSION=-dontcache)
release=$("${kmake[@]}" -s kernelversion)
STEP_NAME="configuring the kernel for packages" step 20 "$BUILD/log/deb-config.log" configure
possible
cp "$out/wanted.config" "$out/built.config"
[ -z "$config" ] || say "a distribution's configuration has thousands of modules: that takes hours"
STEP_NAME="building the packages${config:+ of $(basename "$config")}" step 2400 "$BUILD/log/deb.log" packages
mkdir -p "$place"
# Of another version, or another configuration.
rm -f "$place"/linux-*.deb
cp "$BUILD"/deb/*.deb "$place/"
image=$(find "$place" -name 'linux-image-*.deb' ! -name '*-dbg_*')
say "  next: apt install $image, as root there, and boot it; others are for who builds modules or debugs"
ls "$place"/*.deb
