# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What make install left in a tree of the user's. Sourced, after lib.sh.

# Where install_files() keeps what it replaced.
STATE=.dontcache-installed

# find_tree WHAT KDIR BRANCH: sets tree to the top of a Linux 7.3 tree, and branch.
find_tree() {
	# Not every shell expands it behind KDIR=.
	local kdir=${2/#\~\//$HOME/}

	[ -n "$kdir" ] || die "KDIR= says which kernel tree" "make $1 KDIR=~/linux"
	tree=$(KERNEL_SRC=$kdir TREE_OPTION=KDIR "$ROOT/setup/kernel-source.sh") || exit 1
	# What root writes there its owner could not change any more.
	[ "$(stat -L -c %u "$tree")" = "$(id -u)" ] ||
		die "$tree is $(stat -L -c %U "$tree")'s" "run this as $(stat -L -c %U "$tree")"
	# shellcheck disable=SC2034 # for who sources this
	branch=${3:-dontcache-rust}
	[ -z "$3" ] || [ -e "$tree/.git" ] ||
		die "BRANCH=$3 is for a tree with git, and $tree has none" "make $1 KDIR=$tree"
	unfinished
}

# unfinished: git is not in the middle of something there.
unfinished() {
	local name

	[ -e "$tree/.git" ] || return 0
	for name in rebase-merge rebase-apply MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG index.lock; do
		[ ! -e "$(cd "$tree" && realpath "$(git rev-parse --git-path $name 2> /dev/null || echo /none)")" ] ||
			die "git is in the middle of something in $tree ($name)" "end it: git -C $tree status"
	done
}

# theirs ARGUMENTS...: git in that tree, with its user's settings but for hooks.
theirs() {
	git -C "$tree" -c core.hooksPath=/dev/null -c gc.auto=0 -c maintenance.auto=false \
		-c advice.detachedHead=false "$@"
}

# restore_files: the plain files of the tree as they were.
restore_files() {
	local file before=$tree/$STATE/before.tar

	[ ! -f "$tree/$STATE/new" ] || while read -r file; do
		rm -f "$tree/$file"
		(cd "$tree" && rmdir -p --ignore-fail-on-non-empty "$(dirname "$file")" 2> /dev/null) || true
	done < "$tree/$STATE/new"
	if [ -s "$before" ]; then
		tar -C "$tree" -xpf "$before" --unlink-first 2> /dev/null || true
		tar -C "$tree" --diff -f "$before" >&2 ||
			die "not all is as it was" "mend what tar says above, then: tar -C $tree -xpf $before"
	fi
	rm -rf "${tree:?}/$STATE"
}
