#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The CI files of Documentation/mm/dontcache-ci/ as their runners would run them: in a root of the
# release that they name as their container, in an installed tree. Root.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/result.sh"
. "$ROOT/setup/series.sh"
. "$ROOT/setup/root.sh"

root=$BUILD/ci
log=$BUILD/log

copy() {
	rm -rf "$root/tree"
	copy_source "$src" "$root/tree"
	make -s -C "$ROOT" install KDIR="$root/tree"
}

need_root "make test TESTS=ci"
need_space "$BUILD" 8
need_tools rsync=rsync git=git make=make
src=$("$ROOT/setup/kernel-source.sh")
venv=$("$ROOT/setup/venv.sh" requirements-docs.txt)
made=
# The shells of their runners, and of the matrix what has nothing to quote and what has.
for job in "github:sh -e:dir=block arch=x86_64" "gitlab:bash -eo pipefail:dir=mm arch=um"; do
	IFS=: read -r name shell values <<< "$job"
	script=$BUILD/run/ci-$name.sh
	mkdir -p "$BUILD/run"
	# shellcheck disable=SC2086 # words
	"$venv/bin/python" "$ROOT/setup/ci_commands.py" "$ROOT/Documentation/mm/dontcache-ci/$name.yml" $values > "$script"
	image=$(sed -n 's/^# image debian://p' "$script")
	if [ "$made" != "$image" ]; then
		STEP_NAME="making a machine of Debian $image" step 60 "$log/ci-root.log" make_root "$image" apt,ca-certificates
		echo "deb $(debian_site) $image main" > "$root/etc/apt/sources.list"
		made=$image
	fi
	STEP_NAME="installing into a kernel tree" step 40 "$log/ci-copy.log" copy
	# As in a container of Docker's: nothing of /dev/shm runs, and there is no KVM.
	sed -i '1a mount -t tmpfs -o nosuid,nodev,noexec,size=64m shm /dev/shm' "$script"
	sed -i '2a [ ! -e /dev/kvm ] || mount --bind /dev/null /dev/kvm' "$script"
	sed -i 's,^# checkout$,cd /tree,' "$script"
	say "what $name.yml says with $values (about 10 min)"
	# shellcheck disable=SC2086 # words
	watched 600 "$log/ci-$name.log" inside $shell -c "$(cat "$script")"
	if [ "$watched_rc" = 0 ] && grep -qE 'PASSED.* (bio_task|dontcache_)' "$log/ci-$name.log"; then
		result "ok $name: $(grep -o 'Ran [0-9]* tests: .*' "$log/ci-$name.log")"
	else
		result "not ok $name"
		# Not to be counted as tests of ours.
		tail -n 12 "$log/ci-$name.log" | sed 's/Testing complete/kunit.py/'
		echo "# next: read $log/ci-$name.log"
		! cp "$root/tree/.kunit/test.log" "$log/ci-$name-console.log" 2> /dev/null ||
			echo "# and what that kernel said, in $log/ci-$name-console.log"
	fi
done
rm -rf --one-file-system "$root"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
