#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make mutants: changes the pure files of the host crate, one operator, return
# value or arm at a time, and runs the host tests on each change. A change that
# no test sees is a test that is missing, or is listed with the reason why
# nothing can see it in host/equivalent-mutants.txt.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

MUTANTS_VERSION=27.1.0
# Seconds of the processor, since those on the wall also run while other jobs do: a mutant that
# needs more is in an endless loop. The tests take two without loom, and twenty with it.
CPU_LIMIT=20
LOOM_CPU_LIMIT=180
# On the wall; who is not done by then has no verdict.
WALL_LIMIT=600

out=$BUILD/mutants
tree=$out/tree
tool=$CACHE/cargo-mutants/bin/cargo-mutants

# cargo-mutants neither copies nor changes a file outside of the workspace, and the crate's own
# are: so a workspace that begins above both the crate and the kernel's source. Its files are new
# to cargo, or what was built of a mutant whose run was interrupted would pass for theirs.
stage() {
	rm -rf "$tree"
	mkdir -p "$tree"
	(cd "$ROOT" && ours -- '*.rs' host |
		rsync -r --files-from=- --ignore-missing-args . "$tree")
	mv "$tree/host/Cargo.lock" "$tree"
	# It knows test code by a plain cfg(test), and would change tests that have KUnit in it too.
	find "$tree" -name '*.rs' -exec sed -i -E 's/cfg\(any\(test, [A-Z_]+\)\)/cfg(test)/' {} +
	# Overflow checks as in the kernel; no debug info, since nobody looks at these builds.
	cat > "$tree/Cargo.toml" <<- END
		[workspace]
		members = ["host"]
		resolver = "2"

		[profile.mutants]
		inherits = "dev"
		opt-level = 1
		debug = false

		[profile.mutants.package."*"]
		opt-level = 3
	END
}

# test_targets quick|loom: the library's own tests and those that take seconds, or the models.
test_targets() {
	local file is

	[ "$1" = loom ] || echo --cargo-arg=--lib
	for file in "$tree"/host/tests/*.rs; do
		is=quick
		! grep -q '^use loom' "$file" || is=loom
		[ "$is" != "$1" ] || echo "--cargo-arg=--test=$(basename "$file" .rs)"
	done
}

# mutate NAME LIMIT TARGETS...: what it found is in $out/NAME. 0, or 2 and 3 if mutants survive or
# time out, is a run that came to its end.
mutate() {
	local name=$1 limit=$2 rc=0
	shift 2

	# A seed of its own for each run would let a mutant survive today and not tomorrow. Doubles
	# for the tests are not what is tested. In place: each job more would build loom and proptest
	# for itself, which takes longer than what it saves.
	# The soft limit only: a hard one ends in SIGKILL, which does not say why.
	(ulimit -S -t "$limit" && PROPTEST_RNG_SEED=1 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 CARGO="$CARGO" \
		"$tool" mutants --dir "$tree" --output "$out" --no-config --no-shuffle --profile mutants \
		--in-place --timeout "$WALL_LIMIT" --exclude 'test_*.rs' --iterate --colors never "$@") || rc=$?
	rm -rf "${out:?}/$name"
	cp -r "$out/mutants.out" "$out/$name"
	[ "$rc" = 0 ] || [ "$rc" = 2 ] || [ "$rc" = 3 ]
}

all_mutants() {
	local quick loom

	mapfile -t quick < <(test_targets quick)
	mapfile -t loom < <(test_targets loom)
	# loom and proptest take longer to build than a mutant may.
	(cd "$tree" && "$CARGO" test --locked --profile mutants --no-run)
	rm -rf "$out/mutants.out" "$out/loom"
	mutate quick "$CPU_LIMIT" "${quick[@]}"
	# Only what survived is worth minutes of a model.
	if [ ${#loom[@]} -gt 0 ] && [ -s "$out/mutants.out/missed.txt" ]; then
		mutate loom "$LOOM_CPU_LIMIT" "${loom[@]}"
	fi
}

need_tools rsync=rsync git=git gcc=gcc python3=python3
find_cargo
if [ "$("$tool" mutants --version 2> /dev/null | awk '{ print $2 }')" != "$MUTANTS_VERSION" ]; then
	STEP_NAME="building cargo-mutants $MUTANTS_VERSION" step 180 "$CACHE/log/cargo-mutants.log" \
		"$CARGO" install --locked --root "$CACHE/cargo-mutants" --version "$MUTANTS_VERSION" cargo-mutants
fi
export CARGO_TARGET_DIR=$out/target
stage
STEP_NAME="testing mutants" step 600 "$BUILD/log/mutants.log" all_mutants
# It only warns of a file that it does not find, and the mutants of that would be missed in silence.
! grep -E 'WARN|Skipping source file' "$BUILD/log/mutants.log" >&2 ||
	die "cargo-mutants did not follow all that host/src/lib.rs includes" "read $BUILD/log/mutants.log"
python3 "$ROOT/setup/mutants.py" "$ROOT/host/equivalent-mutants.txt" "$tree" "$out"/{quick,loom}
