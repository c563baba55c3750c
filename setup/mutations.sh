#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make mutations: faults that a kernel of ours has had, or that its reviewers named, put in
# again one by one; a test of each must turn red. What cargo-mutants cannot do: the files
# that it breaks are pure, these need a booted kernel, or loom.
#
# usage: mutations.sh [MUTATION...]

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"

engines=rust/kernel/dontcache
order=()
declare -A file change tests

# mutation NAME FILE TESTS SED-EXPRESSION: TESTS is loom, a KUnit filter, or guest and a part of the
# guest's tests.
mutation() {
	order+=("$1")
	file[$1]=$engines/$2
	tests[$1]=$3
	change[$1]=$4
}

# shellcheck disable=SC2016 # sed's
{
	mutation barrier-removed completion/batch.rs loom 's/^ *queue\.barrier();$//'
	mutation wake-up-removed completion/batch.rs 'bio_task*' 's/^ *queue\.wake();$//'
	mutation no-budget completion/backlog.rs 'bio_task*' 's/^pub const BUDGET: usize = 64;/pub const BUDGET: usize = usize::MAX;/'
	mutation no-time-limit completion/worker.rs 'bio_task*' 's/^const JIFFIES: usize = 2;/const JIFFIES: usize = usize::MAX;/'
	mutation bi-next-stale completion/backlog.rs 'bio_task*' '/Mostly\. Nothing/,/return nr/s/^ *queue\.set_next(node, None);$//'
	mutation bi-next-stale-in-a-lane completion/backlog.rs 'bio_task*' 's/^ *queue\.set_next(oldest, None);$//'
	mutation refused-taken-for-gone dropping/batch.rs 'dontcache_folios*' 's/if gone & 1 == 0 {/if gone == 0 {/'
	mutation reference-not-put dropping/batch.rs 'dontcache_folios*' 's/(pages as c_uint)\.wrapping_add(1)/pages as c_uint/'
	mutation mappings-mixed dropping/batch.rs 'dontcache_folios*' 's/ \&\& folio\.mapping() != mapping {/ \&\& false {/'
	mutation lock-not-dropped dropping/folio.rs 'dontcache_folios*' '/^impl Drop for Locked/,/^}/s/^ *unsafe { bindings::folio_unlock.*//'
	mutation lock-not-taken dropping/folio.rs 'dontcache_folios*' 's/if unsafe { bindings::folio_trylock(self\.as_ptr()) } {/if true {/'
	mutation refused-not-retried dropping/batch.rs 'dontcache_folios*' '/^unsafe fn drop_group/,/^}/s/^ *retry::later(folio);$//'
	mutation interrupt-not-retried dropping/batch.rs 'dontcache_folios*' '/^pub unsafe fn end_writeback/,/^}/s/^ *retry::later(folio);$//'
	mutation mapped-dropped dropping/folio.rs 'dontcache_folios*' 's/^            mapped,$/            mapped: mapped \&\& false,/'
	mutation pinned-dropped dropping/folio.rs 'dontcache_folios*' 's/^            pinned,$/            pinned: pinned \&\& false,/'
	mutation pages-miscounted dropping/folio.rs 'dontcache_folios*' '/fn pages/,/^    }/s/as usize }/as usize + 1 }/'
	mutation unlisted-not-drained dropping/retry.rs 'dontcache_folios*' 's/if unlisted {/if unlisted \&\& false {/'
	mutation mark-kept dropping/retry.rs 'dontcache_folios*' '/^fn try_again/,/^}/s/^ *locked\.keep();$//'
	mutation commit-forgotten dropping/retry.rs 'dontcache_folios*' 's/ \&\& !locked\.is_to_be_committed()//'
	mutation nowait-starts-nothing writeback/wb.rs 'guest paced' '/fn must_wait/,/^}/s/footprint\.writeback == 0/footprint.writeback == usize::MAX/'
	mutation told-twice writeback/dirty.rs 'guest paced' '/fn failed/,/^}/s/if errors & SEEN != 0 {/if errors \& SEEN == u32::MAX {/'
	mutation writers-do-not-wait writeback/wb.rs 'guest paced' '/fn pace/,/^}/s/if nowait ||/if target > 0 || nowait ||/'
	mutation queue-is-not-waited-for writeback/room.rs 'guest paced' 's/self\.writeback <= queue/self.writeback <= queue || queue > 0/'
	mutation errors-are-not-told writeback/dirty.rs 'guest paced' 's/^    to_result(-((errors.*/    let _ = to_result(0);\n    Ok(())/'
	mutation stuck-is-waited-for writeback/wb.rs 'guest paced' '/fn must_wait/,/^}/s/let stuck = wb\.stuck(.*);/let stuck = 0;/'
	mutation nowait-finds-nothing-out writeback/wb.rs 'guest paced' '/fn must_wait/,/^}/s/^ *wb\.heed(.*$//'
	mutation worker-called-for-each-write writeback/wb.rs 'guest paced' 's/if gathered \&\& nr > 0 /if gathered \&\& nr == usize::MAX /'
	mutation pages-not-capped writeback/mapping.rs 'guest device' 's/last, nr as c_long)/last, nr as c_long | c_long::MAX)/'
	mutation remembered-twice dropping/retries.rs 'dontcache_*' 's/\.is_none_or(|other| other\.pfn == retry\.pfn)/.is_none()/'
}

# red_in NAME: whether the tests see it, which is said in $seen.
red_in() {
	local log=$BUILD/log/mutation-$1.log rc=0

	if [ "${tests[$1]}" = loom ]; then
		# The host crate includes the overlay's files, so the change is made in a copy. Cargo takes
		# what was built of one for that of the other if both have the same target directory.
		rm -rf "$BUILD/mutation"
		mkdir -p "$BUILD/mutation"
		(cd "$ROOT" && ours -z -- '*.rs' host |
			rsync -r0 --files-from=- --ignore-missing-args . "$BUILD/mutation")
		sed -i "${change[$1]}" "$BUILD/mutation/${file[$1]}"
		! cmp -s "$ROOT/${file[$1]}" "$BUILD/mutation/${file[$1]}" || return 2
		(cd "$BUILD/mutation/host" && CARGO_TARGET_DIR=$BUILD/mutation-host timeout 600 "$CARGO" test --release --locked --no-fail-fast) \
			> "$log" 2>&1 < /dev/null || rc=$?
		seen=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | sort -u | paste -sd ' ')
		grep -q 'test result: FAILED' "$log"
		return
	fi
	"$ROOT/setup/overlay.sh" || return 4
	sed -i "${change[$1]}" "$BUILD/linux/${file[$1]}"
	! cmp -s "$ROOT/${file[$1]}" "$BUILD/linux/${file[$1]}" || return 2
	"$ROOT/setup/kernel.sh" virtual rust-kunit > /dev/null || return 3
	if [[ ${tests[$1]} = "guest "* ]]; then
		PARTS=${tests[$1]#guest } "$ROOT/setup/guest-test.sh" virtual rust-kunit > "$log" 2>&1 < /dev/null || rc=$?
		seen=$(sed -n 's/^not ok \([^:]*:[^:]*\).*/\1/p' "$log" | sort -u | paste -sd ,)
		[ "$rc" -ne 0 ] && [ -n "$seen" ]
		return
	fi
	KUNIT_TIMEOUT=120 "$ROOT/kunit/kunit.sh" virtual rust-kunit "${tests[$1]}" > "$log" 2>&1 || rc=$?
	seen=$(sed -n 's/.*\[\(FAILED\|CRASHED\|TIMED OUT\)\] \([^=]*[^= ]\) *=*$/\2/p' "$log" | sort -u | paste -sd ,)
	[ -n "$seen" ] || ! grep -qE 'Kernel panic|BUG:|timed out|TIMED OUT' "$log" || seen="the kernel stopped"
	[ "$rc" -ne 0 ] && [ -n "$seen" ]
}

[ $# -gt 0 ] || set -- "${order[@]}"
for name; do
	[ -n "${file[$name]:-}" ] || die "no mutation $name" "use some of ${order[*]}"
done
need_space "$BUILD" 4
need_tools rsync=rsync git=git
find_toolchain
mkdir -p "$BUILD/log"
"$ROOT/setup/overlay.sh"
# The overlay comes back, whatever happens.
trap '"$ROOT/setup/overlay.sh"; rm -rf "$BUILD/mutation"' EXIT
for name; do
	seen=
	rc=0
	red_in "$name" || rc=$?
	case $rc in
	0) result "ok $name is seen: $seen" ;;
	2) result "not ok $name changes nothing: mend its line in setup/mutations.sh" ;;
	3) result "not ok $name does not compile: read $BUILD/log/virtual-rust-kunit.log" ;;
	4) result "not ok $name: the overlay does not apply: read $BUILD/log" ;;
	*) result "not ok $name is seen by no test: read $BUILD/log/mutation-$name.log" ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
