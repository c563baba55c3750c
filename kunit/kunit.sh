#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs the KUnit suites of a kernel that setup/kernel.sh built, by kunit.py.
#
# usage: kunit.sh um|virtual|x86 ENGINE [FILTER]; KUNIT_TIMEOUT=n seconds, 300 by default

. "$(dirname "${BASH_SOURCE[0]}")/../setup/lib.sh"
. "$ROOT/setup/toolchain.sh"

arch=$1
engine=$2
filter=${3:-}
args=(--build_dir="$BUILD/$arch-$engine" --timeout="${KUNIT_TIMEOUT:-300}")
case $arch in
um | virtual) args+=(--kernel_args=ncpus=4 --kernel_args=seccomp=on) ;;
x86)
	need_tools qemu-system-x86_64=qemu-system-x86
	args+=(--arch=x86_64 --qemu_args='-smp 4')
	# kunit.py wants KVM where there is a /dev/kvm, and that need not work.
	PATH=$ROOT/kunit/bin:$PATH
	;;
esac
need_tools python3=python3
cd "$BUILD/linux"
TERM=dumb python3 tools/testing/kunit/kunit.py exec "${args[@]}" ${filter:+"$filter"} < /dev/null
