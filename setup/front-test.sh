#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Bad input at the front door: one clear error with what to do next, an exit
# status that is not 0, and nothing changed, neither the user's tree nor ours.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

passed=0
failed=0
skipped=0
src=$("$ROOT/setup/kernel-source.sh")
tmp=$(mktemp -d)
trap 'umount "$tmp/small" 2> /dev/null; rm -rf "$tmp"' EXIT
export DONTCACHE_BUILD=$tmp/build

# refuses NAME TEXT COMMAND...: COMMAND fails, says TEXT and what to do next, but nothing of git's,
# and leaves no kernel tree behind.
refuses() {
	local name=$1 text=$2 output rc=0
	shift 2

	output=$("$@" 2>&1 < /dev/null) || rc=$?
	if [ $rc -ne 0 ] && [ ! -e "$tmp/build/linux" ] && [[ $output == *"$text"* && $output == *next:* && $output != *hint:* ]]; then
		passed=$((passed + 1))
		echo "ok $name"
	else
		failed=$((failed + 1))
		printf 'not ok %s: status %s, output:\n%s\n' "$name" "$rc" "$output"
	fi
}

# state: what is in the source, by names, sizes and times.
state() {
	find "$1" -printf '%P %s %T@\n' | sort | sha256sum
}

before=$(state "$src")
cd "$ROOT"

refuses "no such tree" "is not a directory" env KERNEL_SRC="$tmp/none" make demo
mkdir "$tmp/empty"
refuses "not a kernel tree" "is not a kernel tree" env KERNEL_SRC="$tmp/empty" make demo

cp -rs "$src" "$tmp/old"
rm "$tmp/old/Makefile"
sed 's/^PATCHLEVEL = 3/PATCHLEVEL = 2/' "$src/Makefile" > "$tmp/old/Makefile"
refuses "another release" "is Linux 7.2" env KERNEL_SRC="$tmp/old" make demo
refuses "another release, make test" "is Linux 7.2" env KERNEL_SRC="$tmp/old" make test TESTS=host

cp "$src/Makefile" "$tmp/old/Makefile"
rm "$tmp/old/block/bio.c"
sed 's/bio_complete_batch/bio_batch/g' "$src/block/bio.c" > "$tmp/old/block/bio.c"
changed=$(state "$tmp/old")
refuses "patch that does not apply" "does not apply" env KERNEL_SRC="$tmp/old" make demo
refuses "patch that does not apply, make apply" "does not apply" env KERNEL_SRC="$tmp/old" make apply
refuses "tree untouched by that" "does not apply" env KERNEL_SRC="$tmp/old" setup/overlay.sh
[ "$changed" = "$(state "$tmp/old")" ] || { failed=$((failed + 1)); echo "not ok the user's tree was changed"; }

refuses "unknown policy" "invalid choice" make demo POLICY=eager
refuses "unknown mode" "is not one of" make demo MODES=buffered,turbo
refuses "unknown workload" "is not one of" make demo WORKLOADS=sleep
refuses "unknown instrument" "is not one of" make bench INSTRUMENT=stopwatch
refuses "unknown device" "is not one of" make bench MODEL=tape
refuses "unknown mode, make bench" "is not one of" make bench MODES=c,turbo
refuses "no repetitions" "less than 1" make bench REPETITIONS=0
refuses "not a number of repetitions" "is not a whole number" make bench REPETITIONS=x
refuses "not a seed" "is not a number" make demo SEED=abc
refuses "a seed that fio does not take" "is not a number" make demo SEED=9223372036854775808
refuses "not a number of jobs" "is not a number" make demo JOBS=x
refuses "a device for the demo" "has no MODEL" make demo MODEL=slow
refuses "nothing to run" "has none of these" make demo WORKLOADS=append MODES=direct
refuses "a space in a place" "there is a space" make demo OUT="a b"
refuses "a mode twice" "is there twice" make demo MODES=direct,direct
refuses "one run to compare" "two runs are compared" make bench-compare A=x
refuses "a file for results" "cannot create" make demo OUT=README.md
refuses "nowhere to put results" "another place with OUT=" make mechanisms OUT=/proc/none
refuses "nothing to compare" "No such file" make bench-compare A="$tmp/none" B="$tmp/none"
echo '{}' > "$tmp/none.json"
refuses "compare what is no run" "next: give a lab.json" make bench-compare A="$tmp/none.json" B="$tmp/none.json"
refuses "a loss of nothing" "is not from 0 to 1" make bench-compare A=x B=x MARGIN=nan
refuses "a loss of less" "is not from 0 to 1" make bench-compare A=x B=x MARGIN=-5
refuses "unknown tests" "no part nothing" make test TESTS=nothing
refuses "not a number of minutes" "is not a number of minutes" make test TEST_MINUTES=soon
refuses "no such configuration" "is not a file" make deb CONFIG="$tmp/none"
refuses "torture for no time" "is not a number of minutes" make torture MINUTES=soon
refuses "torture an unknown engine" "no engine steam" make torture MINUTES=1 ENGINES=steam
refuses "unknown architecture" "no architecture" setup/kernel.sh vax rust
refuses "unknown engine" "no engine" setup/kernel.sh um steam

# Without the right to install, what is missing is named with its package.
mkdir "$tmp/bin"
for tool in bash env make awk sed grep dirname basename tr nproc id mkdir df cat date sort head seq gcc python3 git \
	flex bison bc cpio ccache rsync xz perl rustc cut cmp sha256sum uname; do
	ln -s "$(command -v $tool || echo /usr/bin/$tool)" "$tmp/bin/"
done
refuses "missing clang" "no clang" env PATH="$tmp/bin" DONTCACHE_NO_INSTALL=1 RUSTC="${RUSTC:-/usr/bin/rustc}" \
	setup/kernel.sh um rust
rm "$tmp/bin/flex"
refuses "missing flex" "missing packages: flex" env PATH="$tmp/bin" DONTCACHE_NO_INSTALL=1 setup/kernel.sh um rust
rm "$tmp/bin/python3"
refuses "missing python3" "missing packages: python3" env PATH="$tmp/bin" DONTCACHE_NO_INSTALL=1 make bench-compare A=x B=x
refuses "no such bindgen" "is not a bindgen" env BINDGEN="$tmp/none" setup/kernel.sh um rust
refuses "another program as bindgen" "is not a bindgen" env BINDGEN=/bin/true setup/kernel.sh um rust
refuses "no such cargo" "is not a program" env CARGO="$tmp/none" make test TESTS=host
refuses "no such library" "has no source" env RUST_LIB_SRC="$tmp/none" setup/kernel.sh um rust
refuses "wrong tree, make test" "is not a directory" env KERNEL_SRC="$tmp/none" make test TESTS=host
refuses "wrong rustc" "is not a rustc" env RUSTC=/bin/true DONTCACHE_NO_INSTALL=1 setup/kernel.sh um rust

# What is somebody else's is not built in, nor removed.
mkdir -p "$tmp/theirs/linux/.git" "$tmp/a place"
touch "$tmp/theirs/linux/Makefile"
theirs=$(state "$tmp/theirs")
refuses "a directory with a tree of theirs" "has something else" env DONTCACHE_BUILD="$tmp/theirs" make apply
refuses "the same as a cache" "has something else" env DONTCACHE_CACHE="$tmp/theirs" make distclean
refuses "the same to be cleaned" "has something else" env DONTCACHE_BUILD="$tmp/theirs" make clean
for target in demo bench mechanisms series; do
	refuses "results in it, make $target" "has something else" make "$target" OUT="$tmp/theirs"
done
refuses "results in /" "has something else" make demo OUT=/
if [ "$theirs" = "$(state "$tmp/theirs")" ]; then
	passed=$((passed + 1))
	echo "ok that directory is as it was"
else
	failed=$((failed + 1))
	echo "not ok that directory was changed"
fi
refuses "a space in a name" "a space or a colon" env DONTCACHE_BUILD="$tmp/a place" make apply

mkdir "$tmp/small"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=64M tmpfs "$tmp/small" 2> /dev/null; then
	refuses "full disk" "GiB are needed" env DONTCACHE_BUILD="$tmp/small/build" make demo
	refuses "full disk, make apply" "GiB are needed" env DONTCACHE_BUILD="$tmp/small/build" make apply
else
	skipped=$((skipped + 1))
	echo "skip full disk: a small filesystem needs root"
fi

if [ "$before" = "$(state "$src")" ]; then
	passed=$((passed + 1))
	echo "ok the kernel source is as it was"
else
	failed=$((failed + 1))
	echo "not ok the kernel source was changed"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
