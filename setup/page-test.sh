#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make demo as people see it: in a terminal of 80 columns or a pipe, and its page in a browser.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/guest/lib.sh"

out=$BUILD/demo
log=$BUILD/log/page-demo.log
errors=$BUILD/log/page-errors.log

demo() {
	make -s -C "$ROOT" demo OUT="$out" > "$log" 2> "$errors" || {
		tail -n 5 "$errors"
		false
	}
}

# narrow FILE: nothing in it is wider than 80 columns, but for what says where something is.
narrow() {
	! grep -vE '^page: |^  next: ' "$1" | grep -E '.{81}'
}

plain() {
	! grep -P '\x1b|\r' "$log" "$errors"
}

browser() {
	env PAGE="$out/index.html" CHROMIUM="$(command -v chromium)" "$venv/bin/python" "$ROOT/bench/test_browser.py"
}

need_tools make=make chromium=chromium cmp=diffutils
venv=$("$ROOT/setup/venv.sh" requirements-page.txt)
mkdir -p "$BUILD/log"
check "demo" demo
cp "$log" "$log.first"
# What was built then is there.
start=$(date +%s)
check "demo, again" demo
took=$(($(date +%s) - start))
echo "# the second took $took s"
check "the same, to the bit" cmp "$log.first" "$log"
check "80 columns" narrow "$log"
check "80 columns of progress" narrow "$errors"
check "no colours in a pipe" plain
check "what to try next" grep -q '^next: make' "$log"
check "in a browser" browser
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
