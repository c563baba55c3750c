#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prints the directory of the Python tools (virtme-ng, matplotlib, ruff) in a
# virtual environment of its own in the cache, made once for each list of them.
#
# usage: venv.sh [LIST], of a list beside this script, requirements.txt by default

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

list=$ROOT/setup/${1:-requirements.txt}
venv=$CACHE/venv-$(sha256sum < "$list" | cut -c1-8)

build() {
	rm -rf "$venv"
	python3 -m venv "$venv.tmp" && rm -rf "$venv.tmp"
	# A virtual environment cannot be moved, so the last step marks it as whole.
	python3 -m venv "$venv"
	"$venv/bin/pip" install --disable-pip-version-check -r "$list"
	touch "$venv/complete"
}

if [ ! -e "$venv/complete" ]; then
	need_tools python3=python3
	python3 -c 'import ensurepip, venv' 2> /dev/null || install_packages python3-venv
	STEP_NAME="installing the Python tools" step 60 "$CACHE/log/venv.log" build
fi
echo "$venv"
