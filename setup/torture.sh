#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make torture: the torture module for some minutes on each of some kernels, in
# QEMU with 4 CPUs, and one line "N passed, N failed, N skipped" at the end.
#
# usage: torture.sh MINUTES [ENGINE...], of rust-torture (KASAN, lockdep and
# others; by default) and rust-kcsan. SEED=n repeats the decisions of a run.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

minutes=${1:-}
shift || true
engines=("$@")
[ $# -gt 0 ] || engines=(rust-torture)
seed=${SEED:-1}
passed=0
failed=0
skipped=0

# At most a week: more is a slip of the pen.
[[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] ||
	die "MINUTES=$minutes is not a number of minutes from 1 to 9999" "make torture MINUTES=30"
[[ $seed =~ ^[0-9]{1,18}$ ]] || die "SEED=$seed is not a number" "make torture MINUTES=30 SEED=1"
for engine in "${engines[@]}"; do
	case $engine in
	rust-torture | rust-kcsan) ;;
	*) die "no engine $engine to torture" "use rust-torture or rust-kcsan" ;;
	esac
done

# run ENGINE IMAGE: leaves the log in $scratch/log.
run() {
	cp "$(dirname "$2")/rust_bio_torture.ko" "$ROOT/guest/splats.awk" "$scratch/"
	printf 'TORTURE_SECONDS=%s\nTORTURE_SEED=%s\n' $((minutes * 60)) "$seed" > "$scratch/env"
	# identify_cpu() forgets for a moment that there are 5 levels of page tables, and KASAN reports
	# all that an interrupt touches then: more than it can print before the next.
	# KCSAN looks at one access of so many: of 4000 without that, too few to see ours.
	# Booting and loading again take their time; a kernel that hangs is not waited for.
	MEMORY=${MEMORY:-2G} "$ROOT/guest/qemu.sh" "$2" "$scratch" $((minutes * 60 + 1200)) \
		"$ROOT/guest/torture.sh" kasan_multi_shot log_buf_len=16M no5lvl kcsan.skip_watch=500
}

# A wrong tree is to be heard of now, and not after the tools are there.
[ -z "${KERNEL_SRC:-}" ] || "$ROOT/setup/kernel-source.sh" > /dev/null
need_space "$CACHE" 12
find_toolchain
need_tools insmod=kmod rmmod=kmod dmesg=util-linux mkfs.xfs=xfsprogs mkfs.ext4=e2fsprogs
"$ROOT/setup/overlay.sh"

for engine in "${engines[@]}"; do
	scratch=$BUILD/run/torture-$engine
	rc=0
	rm -rf "$scratch"
	mkdir -p "$scratch"
	image=$("$ROOT/setup/kernel.sh" x86 "$engine") || {
		failed=$((failed + 1))
		continue
	}
	echo "== $minutes min on $engine"
	run "$engine" "$image" || rc=$?
	# A log without its last line is that of a guest that died.
	if ! tail -n 1 "$scratch/log" 2> /dev/null | grep -qE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'; then
		tail -n 20 "$scratch/log" "$scratch/console" 2> /dev/null || true
		echo "not ok $engine stopped with status $rc; next: read $scratch/console"
		failed=$((failed + 1))
		continue
	fi
	grep -vE 'bio_torture: [0-9]+ s: ' "$scratch/log" || true
	grep -E 'bio_torture: [0-9]+ s: ' "$scratch/log" | sed -n '1p;$p' || true
	read -r p f s < <(tail -n 1 "$scratch/log" | awk '{ print $1, $3, $5 }')
	passed=$((passed + p))
	failed=$((failed + f))
	skipped=$((skipped + s))
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
