# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A machine to try things in that has nothing: a root made by debootstrap, in $root. Sourced, after
# toolchain.sh; root is assigned before a function is called.
# shellcheck disable=SC2154

# Of the machine, not of the user: how packages are reached from here.
network='^([a-z]+_proxy|[A-Z]+_PROXY|SSL_CERT_(FILE|DIR)|PIP_(CERT|INDEX_URL|DEFAULT_TIMEOUT)|CARGO_HTTP_[A-Z_]+)='

# need_root COMMAND: whether one can be made and entered, for COMMAND.
need_root() {
	[ "$(id -u)" = 0 ] || die "only root can change its root directory" "run $1 as root"
	unshare --mount --pid --fork true 2> /dev/null ||
		die "no namespaces here" "run $1 on a machine, or in a container with CAP_SYS_ADMIN"
	need_tools debootstrap=debootstrap unshare=util-linux
}

# bring FILE...: gives the root what the machine has there, links followed.
bring() {
	local file

	for file; do
		[ -e "$file" ] || continue
		mkdir -p "$root$(dirname "$file")"
		cp -rL --remove-destination "$file" "$root$(dirname "$file")/"
	done
}

# make_root RELEASE PACKAGES: of Debian.
make_root() {
	local release=$1 site

	site=$(debian_site)
	rm -rf --one-file-system "$root"
	debootstrap --variant=minbase --include="$2" "$release" "$root" "$site"
	bring /etc/apt/trusted.gpg.d /etc/apt/keyrings /usr/share/keyrings \
		/etc/hosts /etc/resolv.conf /etc/pip.conf /usr/local/share/ca-certificates
	# Not the files: others of them run programs that are not there.
	apt-config dump | grep -E '^Acquire::(http|https|Retries|Check-|Force)' > "$root/etc/apt/apt.conf.d/90machine" || true
}

# inside COMMAND...: runs it in the root. Mounts and processes are of a namespace
# that ends with it, so that neither outlives a failure.
inside() {
	local settings

	mapfile -t settings < <(env | grep -E "$network" || true)
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --pid --fork --kill-child bash -euc '
		root=$1
		shift
		mount --rbind /dev "$root/dev"
		mount --rbind /sys "$root/sys"
		mount -t proc proc "$root/proc"
		exec chroot "$root" "$@"' inside "$root" \
		env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"${settings[@]}" "$@" < /dev/null
}
