#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make uninstall: takes out of a kernel tree what make install put there.
#
# usage: uninstall.sh KDIR BRANCH

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/installed.sh"

find_tree uninstall "$1"
branch=$2

remove_branch() {
	local from tip

	from=$(theirs config "branch.$branch.dontcachefrom") ||
		die "no make install has made a branch $branch in $tree" "name it: make uninstall KDIR=$tree BRANCH=name"
	tip=$(theirs config "branch.$branch.dontcachetip")
	[ "$(theirs rev-parse "$branch")" = "$tip" ] ||
		die "$branch has commits that make install did not make" \
			"keep them: git -C $tree switch -C mine $branch, git branch -f $branch ${tip:0:12}, and run this again"
	if [ "$(theirs symbolic-ref -q --short HEAD)" != "$branch" ]; then
		from="where it was"
		! theirs merge-base --is-ancestor "$tip" HEAD ||
			die "what $tree is on is built on $branch" "git -C $tree switch what is not, and run this again"
	else
		theirs rev-parse -q --verify "$from^{commit}" > /dev/null ||
			die "$from, where make install began, is gone" "git -C $tree switch what you want, and run this again"
		if theirs show-ref -q --verify "refs/heads/$from"; then
			theirs switch -q "$from"
		else
			theirs switch -q --detach "$from"
		fi || die "git could not leave $branch" "commit or stash what is changed (git -C $tree stash); nothing was changed"
	fi
	theirs branch -q -D "$branch" || die "git could not remove $branch" "see above"
	say "$tree is on $from, and $branch is gone"
}

remove_files() {
	local changed

	[ -f "$tree/$STATE/installed" ] || die "no make install has put anything into $tree" "name its tree: make uninstall KDIR=DIR"
	(cd "$tree" && sha256sum --quiet -c "$STATE/installed") >&2 ||
		die "what make install put into $tree was changed since" \
			"keep your changes elsewhere, and put these files back; what they replaced is in $tree/$STATE/before.tar"
	mapfile -t changed < <(tar -tf "$tree/$STATE/before.tar")
	restore_files
	# What was built of them in between is older than that, or make would take it for theirs.
	(cd "$tree" && touch -c -h -- "${changed[@]}")
	say "$tree is as it was before make install"
}

if [ -e "$tree/.git" ] && [ ! -e "$tree/$STATE" ]; then
	remove_branch
else
	remove_files
fi
