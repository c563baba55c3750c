#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make uninstall: takes out of a kernel tree what make install put there.
#
# usage: uninstall.sh KDIR BRANCH

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/installed.sh"

find_tree uninstall "$1" "$2"

remove_branch() {
	local from tip to

	from=$(theirs config "branch.$branch.dontcachefrom") ||
		die "no make install has made a branch $branch in $tree" "name it: make uninstall KDIR=$tree BRANCH=name"
	tip=$(theirs config "branch.$branch.dontcachetip")
	to=("$from")
	theirs show-ref -q --verify "refs/heads/$from" || to=(--detach "$from")
	[ "$(theirs rev-parse "$branch")" = "$tip" ] ||
		die "$branch has commits that make install did not make" \
			"keep them: git -C $tree branch mine $branch && git -C $tree switch ${to[*]} && git -C $tree branch -f $branch ${tip:0:12}; then run this again"
	if [ "$(theirs symbolic-ref -q --short HEAD)" != "$branch" ]; then
		from="where it was"
		! theirs merge-base --is-ancestor "$tip" HEAD ||
			die "what $tree is on is built on $branch" "git -C $tree switch ${to[*]}, and run this again"
	else
		theirs rev-parse -q --verify "$from^{commit}" > /dev/null ||
			die "$from, where make install began, is gone" "git -C $tree switch what you want, and run this again"
		theirs switch -q "${to[@]}" || die "git could not leave $branch" "commit or stash what is changed (git -C $tree stash); nothing was changed"
	fi
	theirs branch -q -D "$branch" || die "git could not remove $branch" "see above"
	say "$tree is on $from, and $branch is gone"
}

remove_files() {
	local changed file mine='' before=$tree/$STATE/before.tar

	[ -f "$tree/$STATE/installed" ] || die "no make install has put anything into $tree" "name its tree: make uninstall KDIR=DIR"
	mapfile -t changed < <(cd "$tree" && LC_ALL=C sha256sum --quiet -c "$STATE/installed" 2> /dev/null | sed 's/: FAILED.*//')
	for file in "${changed[@]}"; do
		[ ! -e "$tree/$file" ] || tar -xOf "$before" "$file" 2> /dev/null | cmp -s - "$tree/$file" || mine+=" $(printf %q "$tree/$file")"
	done
	[ -z "$mine" ] || die "what make install put into $tree was changed since" \
		"keep what you want of it elsewhere, then: rm$mine && tar -C $tree -xpf $before; and run this again"
	mapfile -t changed < <(tar -tf "$before")
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
