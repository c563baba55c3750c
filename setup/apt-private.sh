#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Downloads one package (or, with --source, the upstream tarball of one source
# package) from the newest suites of this machine's own Debian mirror, without
# touching the machine's apt configuration: lists and caches are private.
#
# usage: apt-private.sh [--source] NAME OUTDIR

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kind=deb
if [ "${1:-}" = --source ]; then
	kind=deb-src
	shift
fi
name=$1
out=$2
command -v apt-get > /dev/null ||
	die "$name can only be downloaded through apt, and there is no apt-get here" \
		"for the kernel, pass KERNEL_SRC=DIR with a Linux 7.3 tree; for fio, install fio >= 3.39"

apt=$CACHE/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$out"
site=$(debian_site)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || die "$keyring is missing" "apt-get install debian-archive-keyring"

for suite in experimental sid trixie-backports; do
	printf '%s [signed-by=%s] %s %s main\n' "$kind" "$keyring" "$site" "$suite"
done > "$apt/sources.list"
opts=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
	-o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache"
	-o APT::Sandbox::User=root -o Acquire::Languages=none
	-o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false)
apt-get "${opts[@]}" update || die "the package lists could not be read" "check the network and run again"
cd "$out"
if [ "$kind" = deb-src ]; then
	apt-get "${opts[@]}" source --download-only --tar-only "$name" ||
		die "the source of $name could not be downloaded" "check the network and run again"
else
	apt-get "${opts[@]}" download "$name" ||
		die "the package $name could not be downloaded" "check the network and run again"
fi
