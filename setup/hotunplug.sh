#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs guest/hotunplug.sh with 2 and with 4 CPUs, and prints its logs. Upstream's
# C code must hang in it: that is how we know that the test can see it.
#
# usage: hotunplug.sh ENGINE; JUDGE=1 makes a failure of I/O that takes 10 x the median,
# PARTS=nbd NBD_ROUNDS=300 looks for what is rare, CPUS=4 is one guest only, ICOUNT= uses all
# CPUs for it, so that times say nothing, and QEMU=PATH or QEMU_DIR=DIR is another QEMU than
# that of setup/qemu.sh

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"

engine=$1
need_tools mkfs.xfs=xfsprogs mkfs.ext4=e2fsprogs filefrag=e2fsprogs
fio=$("$ROOT/setup/fio.sh")
nbd=$("$ROOT/guest/tools.sh" nbd)
# What upstream makes of the other parts is not ours to test.
parts=${PARTS:-fio control nbd}
[[ $engine = rust* ]] || parts=${PARTS:-nbd}
# once CPUS: runs the guest.
once() {
	local cpus=$1 scratch=$BUILD/run/hotunplug-$engine-$1 rc=0

	rm -rf "$scratch"
	mkdir -p "$scratch"
	cp "$fio" "$scratch/fio"
	cp "$nbd" "$scratch/nbd"
	cp "$ROOT/guest/splats.awk" "$scratch/"
	printf '%s\n' "ENGINE=${engine%-*}" "PARTS='$parts'" FIO_ROUNDS=10 CONTROL_ROUNDS=10 \
		"NBD_ROUNDS=${NBD_ROUNDS:-100}" "JUDGE=${JUDGE:-}" > "$scratch/env"
	CPUS=$cpus ICOUNT=${ICOUNT-3} NVME=max_ioqpairs=1,msix_qsize=1 "$ROOT/guest/qemu.sh" \
		"$BUILD/x86-$engine/arch/x86/boot/bzImage" "$scratch" \
		$((1800 + 4 * ${NBD_ROUNDS:-0})) "$ROOT/guest/hotunplug.sh" \
		kunit.enable=0 nbd.nbds_max=1 nvme_core.io_timeout=5 || rc=$?
	touch "$scratch/log"
	return $rc
}

# guest CPUS: runs it, and once more if the emulated disk was what failed.
guest() {
	local run=$BUILD/run/hotunplug-$engine-$1 rc=0

	rm -f "$run.lost"
	once "$1" || rc=$?
	[ $rc != 0 ] && [ -s "$run/lost" ] || return $rc
	cp "$run/lost" "$run.lost"
	once "$1"
}

judge() {
	local cpus=$1 rc=$2 run=$BUILD/run/hotunplug-$engine-$1 line round
	local log=$run/log

	if [ -e "$run.lost" ]; then
		# Not to be overlooked: who is to blame if that comes often?
		result "skip $cpus CPUs: the first run: the disk lost I/O: $(head -n 1 "$run.lost")"
		[ ! -s "$run/lost" ] || result "not ok $cpus CPUs: the disk lost I/O again"
	fi
	while read -r line; do
		case $line in
		*' passed, '*) ;;
		'ok '*) result "ok $cpus CPUs: ${line#ok }" ;;
		'not ok offline of'*)
			# Upstream's.
			if [[ $engine = rust* ]]; then result "not ok $cpus CPUs: ${line#not ok }"; else echo "# $line"; fi
			;;
		'not ok '*) result "not ok $cpus CPUs: ${line#not ok }" ;;
		*) result "$line" ;;
		esac
	done < "$log"
	if [[ $engine = rust* ]]; then
		[ "$rc" = 0 ] || grep -q '^not ok' "$log" || result "not ok $cpus CPUs: the guest ended with $rc"
		return
	fi
	round=$(sed -n 's/^not ok offline of CPU 1 hangs in round \([0-9]*\) of nbd$/\1/p' "$log")
	if [ -n "$round" ] && grep -q blk_mq_hctx_notify_offline "$log" && grep -q folio_wait_writeback "$log"; then
		result "ok $cpus CPUs: upstream's C code hangs the offline in round $round"
	else
		result "not ok $cpus CPUs: upstream's C code should have hung the offline"
	fi
}

# Found once: two that begin at the same time would both download it.
QEMU=$("$ROOT/setup/qemu.sh")
export QEMU
# One after the other they would leave a CPU of this machine idle: a guest that
# counts instructions runs on one.
guests=()
for cpus in ${CPUS:-2 4}; do
	guest "$cpus" &
	guests+=("$cpus $!")
done
for one in "${guests[@]}"; do
	rc=0
	wait "${one#* }" || rc=$?
	judge "${one% *}" $rc
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
