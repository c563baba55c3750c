# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# The kernel's NFS server without the programs that a server has for it: what they
# tell the kernel is written here. Sourced.

nfsd=/proc/fs/nfsd
never=2147483647

# nfs_serve DIR: exports DIR to this machine as the root of version 4.
nfs_serve() {
	./io loopback
	[ -e $nfsd/threads ] || mount -t nfsd nfsd $nfsd || return 1
	# No client has a state that it could want back.
	echo 10 > $nfsd/nfsv4leasetime
	echo 10 > $nfsd/nfsv4gracetime
	echo "nfsd 127.0.0.1 $never guest" > /proc/net/rpc/auth.unix.ip/channel || return 1
	# NFSEXP_INSECURE_PORT | NFSEXP_NOSUBTREECHECK | NFSEXP_FSID; root stays root.
	echo "guest $1 $never $((0x2402)) 65534 65534 0" > /proc/net/rpc/nfsd.export/channel || return 1
	printf 'guest 1 \\x00000000 %s %s\n' $never "$1" > /proc/net/rpc/nfsd.fh/channel || return 1
	# Version 3 would want rpcbind.
	echo '-3 +4' > $nfsd/versions || return 1
	echo 'tcp 2049' > $nfsd/portlist || return 1
	echo 4 > $nfsd/threads
}

nfs_stop() {
	echo 0 > $nfsd/threads
}
