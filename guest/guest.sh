# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What uml.sh and qemu.sh have in common: how a script gets into a guest, and
# its status out of it. Sourced.

. "$(dirname "${BASH_SOURCE[0]}")/../setup/lib.sh"

# prepare KERNEL SCRATCH SECONDS SCRIPT: sets those variables, and puts the
# script and its tools into the scratch directory.
prepare() {
	kernel=$1
	scratch=$2
	seconds=$3
	mkdir -p "$scratch"
	scratch=$(cd "$scratch" && pwd)
	rm -f "$scratch/status" "$scratch/log"
	cp "$4" "$scratch/run"
	cp "$ROOT/guest/lib.sh" "$scratch/"
	cp "$("$ROOT/guest/tools.sh")" "$scratch/io"
	cp "$("$ROOT/guest/tools.sh" dontcache)" "$scratch/"
	[ -f "$kernel" ] || die "no kernel $kernel" "setup/kernel.sh builds it"
}

# interruptible COMMAND...: runs what puts itself into a group of its own, as timeout does: it would
# not hear that the script is interrupted.
interruptible() {
	local pid

	"$@" &
	pid=$!
	trap 'kill '"$pid"' 2> /dev/null; exit 130' INT TERM
	wait "$pid"
}

# finish STATUS: exits as the script did, or says why there is no status of it,
# when the emulator ended with STATUS.
finish() {
	[ ! -s "$scratch/status" ] || exit "$(cat "$scratch/status")"
	tail -n 20 "$scratch/console" >&2
	[ "$1" -ne 124 ] || {
		say "the guest was not done after $seconds s"
		exit 124
	}
	die "the guest stopped without a status" "read $scratch/console and $scratch/log"
}
