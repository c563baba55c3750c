#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make test: every test, and one line "N passed, N failed, N skipped" at the end.
# A test that fails does not keep the others from running.
#
# usage: test.sh [PART...], of: check front install host um lab objects x86 guest hotunplug off
# (these by default; the last is the option off, on x86), docs (what sphinx, rustdoc and man say of
# ours), page (make demo, and its page in a browser), smp (UML with several CPUs), kunitconfig
# (kunit.py run in a tree of its users), ci (the CI files of Documentation/mm/dontcache-ci), kasan (x86
# with lockdep and KASAN, an hour), rt and hz100
# (x86 with PREEMPT_RT, and with HZ=100 and no buffer heads, half an hour each), upstream (each patch
# of patches/upstream/ alone, an hour), deb (the packages of make deb in a machine of Debian, an hour),
# series (a build after each patch of make series, an hour), reproducible (the same image twice) and
# mutations (faults put in again, 20 minutes)
#
# TEST_MINUTES=n: a kernel that would not be built after that many minutes is skipped, with its
# tests. CI kills what takes too long, and then nothing at all is known.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

passed=0
failed=0
skipped=0
parts=("$@")
[ $# -gt 0 ] || parts=(check front install host um lab objects x86 guest hotunplug off)
for part in "${parts[@]}"; do
	case $part in
	check | front | docs | page | install | host | um | lab | objects | x86 | guest | hotunplug | off | smp | kunitconfig | ci | kasan | rt | hz100 | upstream | deb | series | reproducible | mutations) ;;
	*) die "no part $part of the tests" "use check, front, docs, page, install, host, um, lab, objects, x86, guest, hotunplug, off, smp, kunitconfig, ci, kasan, rt, hz100, upstream, deb, series, reproducible or mutations" ;;
	esac
done
limit=${TEST_MINUTES:-9999}
[[ $limit =~ ^[0-9]{1,4}$ ]] || die "TEST_MINUTES=$limit is not a number of minutes" "make test TEST_MINUTES=50"

# count LOG: adds up what a runner says of itself in LOG.
count() {
	local p f s

	read -r p f s < <(awk '
		# cargo test
		/^test result:/ { p += $4; f += $6; s += $8 }
		# kunit.py
		/Testing complete. Ran [0-9]+ tests/ {
			for (i = 1; i < NF; i++) {
				if ($i == "passed:") p += $(i + 1)
				if ($i == "failed:" || $i == "crashed:" || $i == "errors:") f += $(i + 1)
				if ($i == "skipped:") s += $(i + 1)
			}
		}
		# our own scripts
		/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 }
		END { print p + 0, f + 0, s + 0 }' "$1")
	passed=$((passed + p))
	failed=$((failed + f))
	skipped=$((skipped + s))
	echo "    $p passed, $f failed, $s skipped"
	[ "$f" -gt 0 ] || [ "$p" -gt 0 ]
}

# run NAME COMMAND...: runs a set of tests, counts them, and shows what failed.
run() {
	local name=$1 log rc=0 before=$failed start memo estimate=60
	shift

	log=$BUILD/log/test-$(printf '%s' "$name" | tr -c 'A-Za-z0-9\n' '-').log
	start=$(date +%s)
	memo=$(memo "test $name")
	echo "== $name"
	[ ! -s "$memo" ] || estimate=$(cat "$memo")
	watched "$estimate" "$log" "$@"
	rc=$watched_rc
	count "$log" || { [ $rc -ne 0 ] || rc=125; }
	grep -E '^skip |\[SKIPPED\]' "$log" | sed 's/^/    /' || true
	if [ $rc -ne 0 ]; then
		# A runner that died counts as one failure, or it would count as none.
		[ "$failed" -gt "$before" ] || failed=$((failed + 1))
		grep -E -A 3 '^not ok|^error|FAILED|panicked' "$log" | head -n 40 || true
		tail -n 15 "$log"
		echo "    failed with status $rc; next: read $log"
	fi
	echo $(($(date +%s) - start)) > "$memo"
	echo "    $(cat "$memo") s"
}

# The C code fails this test, so the test can fail: it hangs the offline.
stock_fails_hotunplug() {
	"$ROOT/kunit/kunit.sh" x86 c-kunit 'bio_task' > "$BUILD/log/stock-hotunplug.log" 2>&1 || true
	sed 's/Testing complete/stock:/' "$BUILD/log/stock-hotunplug.log"
	if grep -q 'PASSED.*bio_task_context' "$BUILD/log/stock-hotunplug.log" &&
		grep -q 'the offline waits for bios that wait for it' "$BUILD/log/stock-hotunplug.log"; then
		echo "ok upstream's C code parks bios until the CPU is dead"
		echo "1 passed, 0 failed, 0 skipped"
	else
		echo "not ok upstream's C code should have failed bio_task_hotunplug"
		echo "0 passed, 1 failed, 0 skipped"
		return 1
	fi
}

host_tests() {
	cd "$ROOT/host"
	CARGO_TARGET_DIR=$BUILD/host "$CARGO" test --release --locked
}

# Built first and in the open: a kernel that does not build fails all of its tests.
build() {
	local minutes=$((($(date +%s) - start) / 60)) seconds=600
	local took=$CACHE/took/building-the-kernel-$1-$2

	# What it took here the last time, or with nothing in ccache on two slow CPUs.
	[ "$1" != x86 ] || seconds=1500
	[ ! -s "$took" ] || seconds=$(cat "$took")
	if [ ! -e "$BUILD/$1-$2/vmlinux" ] && [ $((minutes + seconds / 60)) -ge "$limit" ]; then
		echo "== $part"
		echo "skip $part: $minutes of $limit minutes are over, and the kernel $1-$2 takes $((seconds / 60));" \
			"next: make test TESTS=$part"
		skipped=$((skipped + 1))
		return 1
	fi
	"$ROOT/setup/kernel.sh" "$@" > /dev/null && return
	failed=$((failed + 1))
	return 1
}

start=$(date +%s)
# A wrong tree is to be heard of now, and not after the tools are there.
[ -z "${KERNEL_SRC:-}" ] || "$ROOT/setup/kernel-source.sh" > /dev/null
need_space "$CACHE" 12
find_toolchain
mkdir -p "$BUILD/log"
"$ROOT/setup/overlay.sh"

for part in "${parts[@]}"; do
	minutes=$((($(date +%s) - start) / 60))
	if [ "$minutes" -ge "$limit" ]; then
		echo "== $part"
		echo "skip $part: $minutes minutes are over; next: make test TESTS=$part"
		skipped=$((skipped + 1))
		continue
	fi
	case $part in
	check) run "style" "$ROOT/setup/check.sh" ;;
	front) run "bad input at the front door" "$ROOT/setup/front-test.sh" ;;
	docs) run "documentation" "$ROOT/setup/docs.sh" ;;
	page) run "the demo and its page" "$ROOT/setup/page-test.sh" ;;
	install) run "install and uninstall" "$ROOT/setup/install-test.sh" ;;
	host) run "pure parts on the host" host_tests ;;
	# One kernel without SMP for this and the lab. Others on QEMU have it.
	um)
		if build virtual rust-kunit; then
			run "KUnit on UML" "$ROOT/kunit/kunit.sh" virtual rust-kunit
			run "guest on UML, Rust" "$ROOT/setup/guest-test.sh" virtual rust-kunit
		fi
		;;
	smp)
		if build um rust-kunit; then
			run "KUnit on UML, 4 CPUs" "$ROOT/kunit/kunit.sh" um rust-kunit
			run "KUnit on UML, CPU 1 isolated" "$ROOT/kunit/kunit.sh" um rust-kunit dontcache_folios isolcpus=1
			run "guest on UML, 2 CPUs" "$ROOT/setup/guest-test.sh" um rust-kunit
		fi
		;;
	kunitconfig) run "kunit.py run, in an installed tree" "$ROOT/setup/kunitconfig-test.sh" ;;
	ci) run "CI files" "$ROOT/setup/ci-test.sh" ;;
	lab)
		if build virtual rust-kunit; then
			run "the lab on itself" "$ROOT/setup/lab-test.sh"
		fi
		;;
	objects) run "objects with the option off" "$ROOT/setup/objects.sh" ;;
	kasan)
		if build x86 rust-kasan; then
			run "KUnit on QEMU, lockdep and KASAN" "$ROOT/kunit/kunit.sh" x86 rust-kasan
			run "guest on QEMU, lockdep and KASAN" "$ROOT/setup/guest-test.sh" x86 rust-kasan
		fi
		;;
	rt | hz100)
		if build x86 "rust-kunit+$part"; then
			run "KUnit on QEMU, $part" "$ROOT/kunit/kunit.sh" x86 "rust-kunit+$part"
			PARTS="device dropping filesystems errors hung offline" run "guest on QEMU, $part" "$ROOT/setup/guest-test.sh" x86 "rust-kunit+$part"
		fi
		;;
	upstream) run "patches for upstream" "$ROOT/setup/upstream-test.sh" ;;
	reproducible) run "the same image twice" "$ROOT/setup/reproducible.sh" ;;
	series) run "a build after each patch" "$ROOT/setup/series-test.sh" ;;
	deb) run "packages in a machine" "$ROOT/setup/deb-test.sh" ;;
	mutations) run "faults that tests must see" "$ROOT/setup/mutations.sh" ;;
	x86)
		if build x86 rust-debug; then
			run "KUnit on QEMU, 4 CPUs" "$ROOT/kunit/kunit.sh" x86 rust-debug
		fi
		;;
	guest)
		if build x86 rust-debug; then
			run "guest on QEMU, Rust" "$ROOT/setup/guest-test.sh" x86 rust-debug
		fi
		;;
	hotunplug)
		if build x86 rust-debug; then
			run "CPU hot-unplug, Rust" "$ROOT/setup/hotunplug.sh" rust-debug
		fi
		;;
	off)
		if build x86 c-kunit; then
			run "KUnit on QEMU, option off" stock_fails_hotunplug
			run "guest on QEMU, option off" "$ROOT/setup/guest-test.sh" x86 c-kunit
			run "CPU hot-unplug, option off" "$ROOT/setup/hotunplug.sh" c-kunit
		fi
		;;
	esac
done

took=$(($(date +%s) - start))
echo "took $((took / 60)) min $((took % 60)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
