#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make check: rustfmt, clippy with the kernel's lints, W=1, sparse, clang's analyzer,
# checkpatch --strict, shellcheck and ruff over everything in this repository.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

# Logic in C is a fault: lines that patches/*.patch change in the C of the kernel's core, and
# lines of C of our own, tests left out. CONFIG_DONTCACHE_PACED has some more: it counts pages where
# the tags of folios change, and needs inline functions of wbs, tracepoints and attributes; and it
# asks a device for its queue.
MAX_PATCH_LINES=270
MAX_C_LINES=250
MAX_PACED_LINES=393

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

check_rustfmt() {
	local files

	# The files below rust/kernel/dontcache/ and samples/rust/bio_torture/ are reached through their parents.
	mapfile -t files < <(tracked 'block/*.rs' 'mm/*.rs' rust/kernel/dontcache.rs samples/rust/rust_bio_torture.rs 'samples/dontcache/*.rs' 'host/*.rs')
	(cd "$ROOT" && "$rustfmt" --check --edition 2021 --config-path "$BUILD/linux/.rustfmt.toml" "${files[@]}")
}

# W=1 for all, or what both steps build would be built twice in each run.
make_lint() {
	make -C "$BUILD/linux" O="$lint" ARCH=um "${KMAKE[@]}" "${clippy_args[@]}" W=1 -O -j"$JOBS" "$@"
}

build_clippy() {
	mkdir -p "$lint"
	(cd "$ROOT/guest/config" && cat base.config um.config smp.config rust-kunit.config) > "$lint/wanted.config"
	printf 'CONFIG_%s=y\n' SAMPLES SAMPLES_RUST SAMPLE_RUST_BIO_TORTURE >> "$lint/wanted.config"
	make_lint KCONFIG_ALLCONFIG="$lint/wanted.config" allnoconfig
	# Warnings are printed when a file is built, and only then.
	rm -f "$lint/rust/kernel.o" "$lint/block/bio_task.o" "$lint/mm/filemap_dontcache.o" \
		"$lint/samples/rust/rust_bio_torture.o"
	make_lint prepare
	make_lint block/bio_task.o mm/filemap_dontcache.o samples/rust/rust_bio_torture.o
}

check_clippy() {
	# Without the name of a directory, which is dontcache-rust for who clones it.
	! sed "s,$BUILD/linux/,," "$BUILD/log/clippy.log" |
		grep -B 6 -A 12 -E '^ *--> .*(dontcache|bio_task|bio_torture)'
}

# The C files and headers of this repository that are the kernel's.
own_c() {
	# Programs are none.
	tracked '*.c' '*.h' | grep -v -e ^tools/ -e ^samples/dontcache/ | while read -r file; do
		[ ! -e "$BUILD/linux/$file" ] || echo "$file"
	done
}

# The C files of the kernel that the patches touch.
touched_c() {
	# Helpers are no files of their own, and the kernel that clippy is built for has no NFS, migrates
	# nothing, has no huge pages, and keeps its memory.
	(cd "$ROOT" && tracked 'patches/*.patch' | xargs cat) | sed -n 's,^--- a/\(.*\.c\)$,\1,p' |
		grep -v -e ^rust/helpers/ -e ^fs/nfs/ -e ^mm/migrate.c -e ^mm/khugepaged.c -e ^mm/memory_hotplug.c | sort -u
}

# The sources of the objects that hold all that C. Helpers are included by one file.
c_sources() {
	{ own_c | grep '\.c$' | sed 's,^rust/helpers/.*,rust/helpers/helpers.c,' && touched_c; } | sort -u
}

# FILE:LINE for each line that the patches put into the kernel's C files and headers.
touched_lines() {
	local src file

	src=$(cat "$BUILD/linux/.overlay-source")
	(cd "$ROOT" && tracked 'patches/*.patch' | xargs cat) | sed -n 's,^--- a/\(.*\.[ch]\)$,\1,p' | sort -u |
		while read -r file; do
			{ diff -U0 "$src/$file" "$BUILD/linux/$file" || true; } | awk -v file="$file" '
				/^@@ / { split($3, at, "[+,]"); line = at[2]; next }
				/^\+/ && line { print file ":" line++ }'
		done
}

build_c() {
	local objects logs=$lint/check

	mkdir -p "$logs"
	{ own_c && touched_c; } > "$logs/files"
	{ own_c && touched_lines; } > "$logs/lines"
	mapfile -t objects < <(c_sources | sed 's/\.c$/.o/')
	# What is not built or not checked again says nothing.
	rm -f "$logs"/*.sparse
	(cd "$lint" && rm -f "${objects[@]}")
	SPARSE=$sparse CLANG=clang$LLVM_SUFFIX CHECK_TREE=$BUILD/linux CHECK_LOGS=$logs \
		make_lint C=2 CHECK="$ROOT/setup/checker.sh" "${objects[@]}"
}

# messages OURS LOG...: fails if a compiler or a checker says something about what OURS lists.
messages() {
	local ours=$1 found
	shift

	# ccache makes absolute names relative.
	found=$(sed "s,$BUILD/linux/,,g; s,^\.\./linux/,," "$@" | awk '
		NR == FNR { ours[$0]; next }
		# kernel-doc puts the word first, the others put it behind the place.
		/^(Warning|Error): / || /^[^ ]+:[0-9]+(:[0-9]+)?: (warning|error|fatal error): / {
			split($1 ~ /^(Warning|Error):$/ ? $2 : $1, at, ":")
			if (at[1] in ours || at[1] ":" at[2] in ours) print
		}' "$ours" -) || return 1
	[ -z "$found" ] && return
	sort -u <<< "$found"
	return 1
}

# A function that nothing calls any more is warned of where it is, not where the call was: so all
# of a file that the patches touch counts, and 7.3 gives no warning there.
check_w1() {
	messages "$lint/check/files" "$BUILD/log/lint-c.log"
}

check_sparse() {
	messages "$lint/check/lines" "$lint"/check/*.sparse
}

# Upstream's own files are not free of what it says.
check_analyzer() {
	local logs

	mapfile -t logs < <(c_sources | tr / - | sed "s,.*,$lint/check/&.analyzer,")
	messages "$lint/check/lines" "${logs[@]}"
}

check_checkpatch() {
	# EMBEDDED_FILENAME: the name of a Kconfig file, in the line that sources it.
	# UNDOCUMENTED_SETUP: looks for the documentation in the same patch only.
	# UNKNOWN_COMMIT_ID: looks for what is named by Fixes: in a history, which a tarball has not.
	local file rc=0
	local ignore=FILE_PATH_CHANGES,COMMIT_MESSAGE,EMBEDDED_FILENAME,UNDOCUMENTED_SETUP,UNKNOWN_COMMIT_ID

	cd "$BUILD/linux"
	for file in $(tracked 'patches/*.patch'); do
		perl scripts/checkpatch.pl --strict --no-signoff --terse --no-summary --ignore "$ignore" "$ROOT/$file" || rc=1
	done
	# What is built outside of the kernel declares what is QEMU's, in its types, and has libc's.
	for file in $(tracked 'bench/*.c' 'tools/*.c' 'samples/*.c'); do
		perl scripts/checkpatch.pl --strict --terse --no-summary \
			--ignore "$ignore,PREFER_KERNEL_TYPES,AVOID_EXTERNS,BIT_MACRO,VOLATILE,ARRAY_SIZE,EMBEDDED_FUNCTION_NAME" -f "$ROOT/$file" || rc=1
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

# The parts of the guest's tests are read into one shell: a name of two functions is that of the last.
check_guest_names() {
	local names

	names=$(cd "$ROOT/guest" && sed -n 's/^\([a-z_0-9]*\)() {.*/\1/p' {common,flags,policy,device,filesystems,dropping,paced,tool,errors,nfs,offline,lib,functional}.sh |
		sort | uniq -d)
	[ -z "$names" ] && return
	echo "$names"
	return 1
}

# rustfmt leaves comments as they are.
check_columns() {
	! (cd "$ROOT" && tracked 'rust/*.rs' 'mm/*.rs' 'block/*.rs' 'samples/*.rs' | xargs grep -nE '^.{101,}')
}

# How many lines patches/*.patch change in C files and headers of the kernel's core. What is in
# patches/upstream/ is for everybody, and does not count.
patch_lines() {
	cat "$ROOT"/patches/*.patch | awk '
		/^\+\+\+ b\// { core = $2 ~ /^b\/(block|mm|fs|include|io_uring)\/.*\.[ch]$/; next }
		/^--- / { next }
		core && /^[+-]/ { n++ }
		END { print n + 0 }'
}

# c_lines paced|all: how many lines of C of our own there are for CONFIG_DONTCACHE_PACED, or for all else.
c_lines() {
	(cd "$ROOT" && own_c | grep -v -e _test -e torture | xargs awk -v paced="$([ "$1" = paced ] && echo 1)" '
		FNR == 1 { inside = 0 }
		# An empty line is of what follows.
		NF == 0 { empty++; next }
		/^#ifdef CONFIG_DONTCACHE_PACED/ { inside = 1 }
		inside == paced + 0 { n += 1 + empty }
		{ empty = 0 }
		/^#endif/ { inside = 0 }
		END { print n + 0 }')
}

check_c_lines() {
	[ "$(c_lines all)" -le "$MAX_C_LINES" ] && [ "$(c_lines paced)" -le "$MAX_PACED_LINES" ]
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

lint=$BUILD/clippy
# clippy reads what rustc wrote, so it must be of the same version.
clippy=$(dirname "$RUSTC")/clippy-driver
if [ ! -x "$clippy" ] && [ "$RUSTC" = /usr/bin/rustc ] && can_install; then
	install_packages "$([ -n "$(available rust-web-clippy)" ] && echo rust-web-clippy || echo rust-clippy)"
fi
clippy_args=()
[ ! -x "$clippy" ] || clippy_args=(CLIPPY=1 CLIPPY_DRIVER="$clippy")
STEP_NAME="building with clippy" step 120 "$BUILD/log/clippy.log" build_clippy
if [ -x "$clippy" ]; then
	report clippy check_clippy
else
	skipped=$((skipped + 1))
	echo "skip clippy: no clippy-driver beside $RUSTC"
fi
sparse=$("$ROOT/setup/sparse.sh") || sparse=
STEP_NAME="building with W=1, sparse and the analyzer" step 60 "$BUILD/log/lint-c.log" build_c
report W=1 check_w1
if [ -n "$sparse" ]; then
	report sparse check_sparse
else
	skipped=$((skipped + 1))
	echo "skip sparse: none that reads Linux 7.3; next: read $CACHE/log/sparse.log"
fi
report "clang's analyzer" check_analyzer
report checkpatch check_checkpatch
report shellcheck check_shellcheck
report ruff check_ruff
report "tools are asked for by who runs them" python3 "$ROOT/setup/needed.py"
report "each function of the guest's has a name of its own" check_guest_names
report "no line of Rust has more than 100 columns" check_columns
lines=$(patch_lines)
report "$lines changed lines of C core (at most $MAX_PATCH_LINES)" [ "$lines" -le "$MAX_PATCH_LINES" ]
report "$(c_lines all) lines of C of our own (at most $MAX_C_LINES), $(c_lines paced) of a policy's (at most $MAX_PACED_LINES)" \
	check_c_lines

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
