#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make check: rustfmt, clippy with the kernel's lints, checkpatch --strict, ruff
# and shellcheck over everything in this repository.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

passed=0
failed=0
skipped=0

# report NAME COMMAND...: one line for each check, its output if it fails.
report() {
	local name=$1 output
	shift

	if output=$("$@" 2>&1); then
		passed=$((passed + 1))
		echo "ok $name"
	else
		failed=$((failed + 1))
		printf '%s\nnot ok %s\n' "$output" "$name"
	fi
}

tracked() {
	(cd "$ROOT" && git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
		[ ! -e "$file" ] || echo "$file"
	done)
}

check_rustfmt() {
	local files

	# The files below rust/kernel/dontcache/ and samples/rust/bio_torture/ are reached through their parents.
	mapfile -t files < <(tracked 'block/*.rs' 'mm/*.rs' rust/kernel/dontcache.rs samples/rust/rust_bio_torture.rs 'host/*.rs')
	(cd "$ROOT" && "$rustfmt" --check --edition 2021 --config-path "$BUILD/linux/.rustfmt.toml" "${files[@]}")
}

build_clippy() {
	local out=$BUILD/clippy make

	mkdir -p "$out"
	(cd "$ROOT/guest/config" && cat base.config um.config smp.config rust-kunit.config) > "$out/wanted.config"
	printf 'CONFIG_%s=y\n' SAMPLES SAMPLES_RUST SAMPLE_RUST_BIO_TORTURE >> "$out/wanted.config"
	make=(make -C "$BUILD/linux" O="$out" ARCH=um "${KMAKE[@]}" CLIPPY=1 CLIPPY_DRIVER="$clippy")
	"${make[@]}" KCONFIG_ALLCONFIG="$out/wanted.config" allnoconfig
	# Warnings are printed when a file is built, and only then.
	rm -f "$out/rust/kernel.o" "$out/block/bio_task.o" "$out/mm/filemap_dontcache.o" \
		"$out/samples/rust/rust_bio_torture.o"
	"${make[@]}" -j"$JOBS" prepare
	"${make[@]}" block/bio_task.o mm/filemap_dontcache.o samples/rust/rust_bio_torture.o
}

check_clippy() {
	! grep -B 6 -A 12 -E '^ *--> .*(dontcache|bio_task|bio_torture)' "$BUILD/log/clippy.log"
}

check_checkpatch() {
	# EMBEDDED_FILENAME: the name of a Kconfig file, in the line that sources it.
	# UNDOCUMENTED_SETUP: looks for the documentation in the same patch only.
	local file rc=0
	local ignore=FILE_PATH_CHANGES,COMMIT_MESSAGE,EMBEDDED_FILENAME,UNDOCUMENTED_SETUP

	cd "$BUILD/linux"
	for file in "$ROOT"/patches/*.patch; do
		perl scripts/checkpatch.pl --strict --no-signoff --terse --no-summary --ignore "$ignore" "$file" || rc=1
	done
	# What is built outside of the kernel declares what is QEMU's, in its types.
	for file in $(tracked 'bench/*.c'); do
		perl scripts/checkpatch.pl --strict --terse --no-summary \
			--ignore "$ignore,PREFER_KERNEL_TYPES,AVOID_EXTERNS" -f "$ROOT/$file" || rc=1
	done
	# The macros of tracepoints are laid out in a way of their own.
	for file in $(tracked 'include/trace/*.h'); do
		perl scripts/checkpatch.pl --strict --terse --no-summary \
			--ignore "$ignore,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT" -f "$ROOT/$file" || rc=1
	done
	for file in $(tracked 'block/*.c' 'mm/*.c' 'rust/helpers/*.c' 'include/linux/*.h' 'guest/*.c'); do
		perl scripts/checkpatch.pl --strict --terse --no-summary --ignore "$ignore" -f "$ROOT/$file" || rc=1
	done
	return $rc
}

check_shellcheck() {
	local files

	mapfile -t files < <(tracked '*.sh' guest/init kunit/bin .ci/run)
	(cd "$ROOT" && shellcheck -x -P SCRIPTDIR -P guest "${files[@]}")
}

check_ruff() {
	(cd "$ROOT" && "$venv/bin/ruff" check . && "$venv/bin/ruff" format --check .)
}

# check_lines LIMIT PATCH...: how many lines of C core they change, and whether LIMIT is kept.
check_lines() {
	local lines limit=$1
	shift

	# What the patches change in C files and headers of the kernel's core.
	lines=$(cat "$@" | awk '
		/^\+\+\+ b\// { core = $2 ~ /^b\/(block|mm|fs|include|io_uring)\/.*\.[ch]$/; next }
		/^--- / { next }
		core && /^[+-]/ { n++ }
		END { print n + 0 }')
	echo "$lines changed lines of C core"
	[ "$lines" -le "$limit" ]
}

find_toolchain
need_tools shellcheck=shellcheck perl=perl
venv=$("$ROOT/setup/venv.sh")
"$ROOT/setup/overlay.sh"

rustfmt=$(command -v "$(dirname "$RUSTC")/rustfmt" || command -v rustfmt || true)
if ! "$rustfmt" --version > /dev/null 2>&1; then
	[ -z "$(available rustfmt-web)" ] || install_packages rustfmt-web
	rustfmt=$(command -v rustfmt) || die "no rustfmt" "rustup component add rustfmt, or apt-get install rustfmt-web"
fi
report rustfmt check_rustfmt

# clippy reads what rustc wrote, so it must be of the same version.
clippy=$(dirname "$RUSTC")/clippy-driver
if [ ! -x "$clippy" ] && [ "$RUSTC" = /usr/bin/rustc ] && can_install; then
	install_packages "$([ -n "$(available rust-web-clippy)" ] && echo rust-web-clippy || echo rust-clippy)"
fi
if [ -x "$clippy" ]; then
	STEP_NAME="building with clippy" step 120 "$BUILD/log/clippy.log" build_clippy
	report clippy check_clippy
else
	skipped=$((skipped + 1))
	echo "skip clippy: no clippy-driver beside $RUSTC"
fi
report checkpatch check_checkpatch
report shellcheck check_shellcheck
report ruff check_ruff
# The first five patches do what upstream does, the others what it does not.
report "$(check_lines 60 "$ROOT"/patches/000[1-5]-*) at parity (at most 60)" \
	check_lines 60 "$ROOT"/patches/000[1-5]-*
report "$(check_lines 100 "$ROOT"/patches/*) in all (at most 100)" check_lines 100 "$ROOT"/patches/*

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
