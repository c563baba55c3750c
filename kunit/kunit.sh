#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs the KUnit suites of a kernel that setup/kernel.sh built, by kunit.py.
#
# usage: kunit.sh um|virtual|x86 ENGINE [FILTER [KERNEL-ARGUMENT...]]; KUNIT_TIMEOUT=n seconds, 300
# by default

. "$(dirname "${BASH_SOURCE[0]}")/../setup/lib.sh"
. "$ROOT/setup/toolchain.sh"

arch=$1
engine=$2
filter=${3:-}
args=(--build_dir="$BUILD/$arch-$engine" --timeout="${KUNIT_TIMEOUT:-300}")
case $arch in
um | virtual) args+=(--kernel_args=ncpus=4 --kernel_args=seccomp=on
		--kernel_args="uml_dir=$BUILD/$arch-$engine/") ;;
x86)
	QEMU=$("$ROOT/setup/qemu.sh")
	export QEMU
	# A panic ends the guest, and not the time-out.
	args+=(--arch=x86_64 --qemu_args='-smp 4' --kernel_args=panic=-1)
	# kunit.py wants KVM where there is a /dev/kvm, and that need not work.
	PATH=$ROOT/kunit/bin:$PATH
	;;
esac
need_tools python3=python3
for arg in "${@:4}"; do
	args+=(--kernel_args="$arg")
done
cd "$BUILD/linux"
rc=0
TERM=dumb python3 tools/testing/kunit/kunit.py exec "${args[@]}" ${filter:+"$filter"} < /dev/null || rc=$?
if [ $rc != 0 ] && ! grep -aq 'KTAP version' "$BUILD/$arch-$engine/test.log"; then
	echo "error: this kernel did not come to its tests; from $BUILD/$arch-$engine/test.log:"
	grep -a -m 1 -A 11 -E 'Oops|BUG:|Kernel panic' "$BUILD/$arch-$engine/test.log" ||
		tail -n 12 "$BUILD/$arch-$engine/test.log"
fi
exit $rc
