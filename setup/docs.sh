#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Whether htmldocs, the ABI's parser, rustdoc and man say anything of what is ours, and whether
# what it refers to is there. Upstream's pages have warnings of their own.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"

# silent NAME LOG: nothing of ours is named there.
silent() {
	if grep -iE 'dontcache|bio_task' "$2"; then
		result "not ok $1"
	else
		result "ok $1"
	fi
}

# made NAME FILE...: what says nothing may have done nothing.
made() {
	local name=$1
	shift

	if ls "$@" > /dev/null; then
		result "ok $name"
	else
		result "not ok $name"
	fi
}

html() {
	PATH=$venv/bin:$PATH make -s -C "$tree" O="$out" htmldocs SPHINXDIRS="admin-guide/mm mm" SPHINXBUILD="$venv/bin/sphinx-build"
}

rust() {
	make -C "$tree" O="$BUILD/virtual-rust-kunit" ARCH=um "${KMAKE[@]}" rustdoc
}

# What Documentation/ is said to have.
refers() {
	(cd "$tree" && perl tools/docs/documentation-file-ref-check 2>&1) || true
}

find_toolchain
need_tools groff=groff-base perl=perl
"$ROOT/setup/overlay.sh"
"$ROOT/setup/kernel.sh" virtual rust-kunit > /dev/null
venv=$("$ROOT/setup/venv.sh" requirements-docs.txt)
tree=$BUILD/linux
out=$BUILD/docs
log=$BUILD/log
rm -rf "$out"
mkdir -p "$out"
STEP_NAME="making the pages" step 60 "$log/htmldocs.log" html
silent "htmldocs" "$log/htmldocs.log"
pages=("$out"/Documentation/output/{admin-guide/mm,mm}/dontcache.html)
made "pages" "${pages[@]}"
(cd "$tree" && "$venv/bin/python" tools/docs/get_abi.py validate) > "$log/abi.log" 2>&1 || true
silent "ABI" "$log/abi.log"
refers > "$log/refers.log"
silent "references" "$log/refers.log"
STEP_NAME="making rustdoc's pages" step 120 "$log/rustdoc.log" rust
grep -A 6 -E '^(warning|error)' "$log/rustdoc.log" > "$log/rustdoc.warnings" || true
silent "rustdoc" "$log/rustdoc.warnings"
made "rustdoc's pages" "$BUILD/virtual-rust-kunit/Documentation/output/rust/rustdoc/kernel/dontcache/index.html"
(echo '.TH readv 2' && cat "$ROOT"/man/readv.2.dontcache) | groff -man -ww -z > "$log/man.log" 2>&1 || true
sed -i 's/^/dontcache: /' "$log/man.log"
silent "man" "$log/man.log"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
