#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prints the path of a QEMU >= 10 for guest/qemu.sh (QEMU=PATH), downloading it the
# first time: what hangs once in a thousand rounds on an old QEMU may be the
# emulator's fault. It comes from the newest suite of this machine's own Debian
# mirror, with all that it is linked to, and is unpacked into the cache: nothing is
# installed, and the libraries of the machine are neither used nor touched.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$CACHE/qemu
arch=x86_64-linux-gnu
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# With a private list of what is installed, and that is nothing, apt resolves the
# whole closure, down to libc.
download() {
	local apt=$dir.tmp/apt site opts deb

	command -v apt-get > /dev/null || die "no apt-get here" "install QEMU >= 10 and pass QEMU=PATH"
	site=$(debian_site)
	[ -e "$keyring" ] || die "$keyring is missing" "apt-get install debian-archive-keyring"

	rm -rf "$dir.tmp"
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$dir.tmp/root"
	printf 'deb [signed-by=%s] %s sid main\n' "$keyring" "$site" > "$apt/sources.list"
	: > "$apt/status"
	opts=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::Etc::preferencesparts=/dev/null -o "Dir::State=$apt" -o "Dir::State::Lists=$apt/lists"
		-o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false
		-o Debug::NoLocking=true)
	apt-get "${opts[@]}" update || die "the package lists could not be read" "check the network and run again"
	apt-get "${opts[@]}" install -y --download-only --no-install-recommends \
		qemu-system-x86 qemu-system-data seabios ipxe-qemu ||
		die "QEMU could not be downloaded" "check the network and run again"
	for deb in "$apt"/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir.tmp/root" --keep-directory-symlink --no-same-owner
	done
	rm -rf "$apt"
	# Renamed last, so that the directory is either whole or absent.
	rm -rf "$dir"
	mv "$dir.tmp" "$dir"
}

# The program, its loader and its libraries belong together; those of the machine are older.
wrapper() {
	local loader

	loader=$(find "$dir/root" -name 'ld-linux-x86-64.so.2' | head -n 1)
	[ -n "$loader" ] || die "no loader in $dir" "remove $dir and run again"
	cat > "$dir/qemu-system-x86_64.tmp" <<-EOS
		#!/bin/sh
		root=\$(dirname "\$(readlink -f "\$0")")/root
		QEMU_MODULE_DIR=\$root/usr/lib/$arch/qemu
		export QEMU_MODULE_DIR
		exec "\$root${loader#"$dir/root"}" --library-path "\$root/usr/lib/$arch:\$root/lib/$arch" \\
			"\$root/usr/bin/qemu-system-x86_64" -L "\$root/usr/share/qemu" -L "\$root/usr/share/seabios" \\
			-L "\$root/usr/lib/ipxe/qemu" "\$@"
	EOS
	chmod +x "$dir/qemu-system-x86_64.tmp"
	mv "$dir/qemu-system-x86_64.tmp" "$dir/qemu-system-x86_64"
}

if [ ! -x "$dir/qemu-system-x86_64" ]; then
	need_space "$CACHE" 3
	STEP_NAME="downloading QEMU" step 90 "$CACHE/log/qemu.log" download
	wrapper
fi
"$dir/qemu-system-x86_64" --version > /dev/null || die "$dir/qemu-system-x86_64 does not run" "remove $dir and run again"
echo "$dir/qemu-system-x86_64"
