#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make install: the overlay on a new branch of a Linux 7.3 tree, or as plain files where there is
# no git. Everything is put together elsewhere first; what fails is undone.
#
# usage: install.sh KDIR BRANCH

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/series.sh"
. "$ROOT/setup/patchset.sh"
. "$ROOT/setup/installed.sh"

need_tools git=git
find_tree install "$1" "$2"
need_space "$tree" 1 KDIR=
tmp=$(mktemp -d)
undo=:
trap 'rc=$?; trap "" INT TERM HUP; $undo; rm -rf "$tmp"; exit $rc' EXIT
trap 'exit 130' INT TERM

# Git says of a file that it could not write, and that all went well. Nobody had changed any of
# $tmp/paths: that is looked at before this is $undo.
undo_branch() {
	theirs diff -z --name-only --no-renames --diff-filter=M "$base" "$tip" |
		theirs checkout -q --pathspec-from-file=- --pathspec-file-nul "$base" 2> /dev/null || true
	theirs diff -z --name-only --no-renames --diff-filter=A "$base" "$tip" |
		theirs rm -q -f --ignore-unmatch --pathspec-from-file=- --pathspec-file-nul || true
	theirs update-index -q --refresh || true
	if ! xargs -0 -a "$tmp/paths" git -C "$tree" diff --quiet "$base" --; then
		say "error: not all of it could be undone; $branch is there still"
		say "  next: mend what git says above, then: git -C $tree checkout -f $from"
		return
	fi
	if theirs show-ref -q --verify "refs/heads/$from"; then
		theirs symbolic-ref HEAD "refs/heads/$from"
	else
		theirs update-ref --no-deref HEAD "$base"
	fi
	theirs branch -q -D "$branch" || true
	say "  what was done is undone"
}

# vacant FILE...: none of these, which the overlay brings, is there, ignored by git or not, and what
# they are to be in are directories of the tree and not of another.
vacant() {
	local file dir real

	real=$(realpath "$tree")
	for file; do
		{ [ ! -e "$tree/$file" ] && [ ! -L "$tree/$file" ]; } ||
			die "$tree has $file already" "move it away, or use a tree without this overlay; nothing was changed"
	done
	for dir in $(printf '%s\n' "$@" | xargs dirname | sort -u); do
		while [ ! -e "$tree/$dir" ] && [ ! -L "$tree/$dir" ]; do
			dir=$(dirname "$dir")
		done
		if [ ! -d "$tree/$dir" ] || [[ $(realpath "$tree/$dir")/ != "$real"/* ]]; then
			die "$tree/$dir is no directory of that tree" "put one there; nothing was changed"
		fi
	done
}

install_branch() {
	local objects shallow new

	base=$(theirs rev-parse -q --verify 'HEAD^{commit}') ||
		die "git does not read $tree" "run: git -C $tree log -1"
	from=$(theirs symbolic-ref -q --short HEAD || echo "$base")
	! theirs show-ref -q --verify "refs/heads/$branch" || die "$tree has a branch $branch already" \
		"$(! theirs config "branch.$branch.dontcachetip" > /dev/null ||
			echo "make uninstall KDIR=$tree BRANCH=$branch, or ")name another: make install KDIR=$tree BRANCH=name"
	# Not what git makes another name of.
	[ "$(theirs check-ref-format --branch "$branch" 2> /dev/null)" = "$branch" ] ||
		die "BRANCH=$branch is no name of a branch" "make install KDIR=$tree BRANCH=dontcache-rust"

	# A repository that has the objects of theirs, and no work tree.
	objects=$(cd "$tree" && cd "$(git rev-parse --git-path objects)" && pwd)
	shallow=$(cd "$tree" && cd "$(git rev-parse --git-common-dir)" && pwd)/shallow
	own_git init -q "$tmp/repo"
	echo "$objects" > "$tmp/repo/.git/objects/info/alternates"
	[ ! -f "$shallow" ] || cp "$shallow" "$tmp/repo/.git/shallow"
	own_git -C "$tmp/repo" update-ref HEAD "$base"
	own_git -C "$tmp/repo" read-tree HEAD
	commit_series "$tmp/repo" "$tree"
	tip=$(own_git -C "$tmp/repo" rev-parse HEAD)

	theirs fetch -q --no-tags --no-write-fetch-head "$tmp/repo" HEAD
	theirs diff -z --name-only --no-renames "$base" "$tip" > "$tmp/paths"
	mapfile -d '' -t new < <(theirs diff -z --name-only --no-renames --diff-filter=A "$base" "$tip")
	vacant "${new[@]}"
	# A tree that was copied has other times than git knows of.
	theirs update-index -q --refresh > /dev/null || true
	if ! xargs -0 -a "$tmp/paths" git -C "$tree" diff --cached --quiet "$base" -- ||
		! xargs -0 -a "$tmp/paths" git -C "$tree" diff --quiet "$base" -- ||
		! theirs read-tree -n -m -u "$base" "$tip"; then
		die "$tree has changes in files that the overlay changes" \
			"commit or stash them (git -C $tree stash); nothing was changed"
	fi
	theirs branch -q --no-track "$branch" "$tip" || die "git could not make the branch $branch" "name another with BRANCH="
	undo=undo_branch
	theirs config "branch.$branch.dontcachefrom" "$from"
	theirs config "branch.$branch.dontcachetip" "$tip"
	if ! theirs switch -q "$branch" ||
		! theirs diff -z --name-only --no-renames "$base" "$tip" | xargs -0 git -C "$tree" diff --quiet "$tip" --; then
		die "git could not switch to $branch" "mend what it says above"
	fi
	undo=:
	say "$tree is on the new branch $branch, $(theirs rev-list --count "$base..$tip") commits on $from"
}

install_files() {
	local patches list=$tmp/list file new base dirs

	patches=$(series '')
	mapfile -t patches <<< "$patches"
	mkdir "$tmp/tree"
	touched "${patches[@]}" > "$list"
	(cd "$tree" && xargs cp --parents -t "$tmp/tree" < "$list") ||
		die "$tree lacks files of Linux 7.3" "pass a complete tree: make install KDIR=DIR; nothing was changed"
	mapfile -t new < <(own_files)
	vacant "${new[@]}"
	own_git -C "$tmp/tree" init -q
	own_git -C "$tmp/tree" add -f .
	own_git -C "$tmp/tree" commit -q -m base
	base=$(own_git -C "$tmp/tree" rev-parse HEAD)
	commit_series "$tmp/tree" "$tree"

	mapfile -t new < <(own_git -C "$tmp/tree" diff --name-only --no-renames --diff-filter=M "$base" HEAD)
	for dirs in $(printf '%s\n' "${new[@]}" | xargs dirname | sort -u); do
		[[ $(realpath "$tree/$dirs")/ = "$(realpath "$tree")"/* ]] ||
			die "$tree/$dirs is no directory of that tree" "put one there; nothing was changed"
	done

	undo=restore_files
	mkdir "$tree/$STATE"
	own_git -C "$tmp/tree" diff --name-only --no-renames --diff-filter=A "$base" HEAD > "$tree/$STATE/new"
	own_git -C "$tmp/tree" diff --name-only --no-renames --diff-filter=M "$base" HEAD > "$list"
	# Under another name until it is whole: what is half is not put back.
	if ! tar -C "$tree" --format=posix -cf "$tree/$STATE/before.tmp" -T "$list" || ! sync "$tree/$STATE/before.tmp"; then
		die "what was there could not be kept" "free some space in $tree; nothing was changed"
	fi
	mv "$tree/$STATE/before.tmp" "$tree/$STATE/before.tar"
	cat "$tree/$STATE/new" >> "$list"
	(cd "$tmp/tree" && xargs sha256sum < "$list") > "$tree/$STATE/installed"
	(cd "$tmp/tree" && xargs chmod 644 < "$list")
	while read -r file; do
		[ ! -e "$tree/$file" ] || chmod --reference="$tree/$file" "$tmp/tree/$file"
	done < "$list"
	# Not into the file that is there: another tree may have a link to it.
	(cd "$tmp/tree" && xargs cp --parents --remove-destination --no-preserve=ownership -t "$tree" < "$list") ||
		die "cannot write into $tree" "mend what cp says above; what was done is undone"
	undo=:
	say "$tree has the overlay: $(wc -l < "$tree/$STATE/new") new files, $(tar -tf "$tree/$STATE/before.tar" | wc -l) changed"
}

if [ -e "$tree/$STATE" ]; then
	die "the overlay is in $tree already" "make uninstall KDIR=$tree"
elif [ -e "$tree/.git" ]; then
	install_branch
else
	install_files
fi
say "  next: cd $tree"
say "        make LLVM=1 rustavailable         # what Rust needs: Documentation/rust/quick-start.rst"
say "        scripts/config -e RUST -e DONTCACHE_RUST -e DONTCACHE_LAZY && make LLVM=1 olddefconfig"
say "        make LLVM=1 -j$(nproc)"
say "  back: make uninstall KDIR=$tree${2:+ BRANCH=$2}"
