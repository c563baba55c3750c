# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Patches of patches/, and how they get onto files of a kernel tree that is only
# read. Sourced, after lib.sh.

# series PREFIX: the patches of patches/series that begin with PREFIX, a pattern of sed's, which
# may be empty, in the order in which they apply.
series() {
	local patch

	for patch in "$ROOT"/patches/{,split/}*.patch; do
		# Else a patch that somebody adds is in the repository and nowhere else.
		grep -qxF "${patch#"$ROOT/patches/"}" "$ROOT/patches/series" ||
			die "patches/${patch##*/} is not in patches/series" "add it where it is to be applied"
	done
	sed -n "/^[^#]/s,^$1,$ROOT/patches/&,p" "$ROOT/patches/series"
}

# touched PATCH...: the files of the kernel that they change.
touched() {
	sed -n 's,^--- a/,,p' "$@" | sort -u
}

# The user's own git settings (hooks, signing, whitespace) must not decide what applies, and the
# same files are the same commits.
own_git() {
	GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 \
		GIT_AUTHOR_NAME=dontcache-rust GIT_AUTHOR_EMAIL=dontcache-rust@example.invalid \
		GIT_COMMITTER_NAME=dontcache-rust GIT_COMMITTER_EMAIL=dontcache-rust@example.invalid \
		GIT_AUTHOR_DATE=2026-11-23T00:00:00Z GIT_COMMITTER_DATE=2026-11-23T00:00:00Z \
		git -c core.hooksPath=/dev/null -c gc.auto=0 -c core.autocrlf=false "$@"
}

# rejected PATCH NAME LOG: git am did not take it, and says in LOG why.
rejected() {
	[ ! -e "$2/mm/dontcache.c" ] || die "the overlay is in $2 already" \
		"make uninstall KDIR=$2, or use a tree without it; nothing was changed"
	die "patches/$1 does not apply to $2: $(sed -n 's/^error: //p' "$3" | head -n 1)" \
		"use an unmodified Linux 7.3 tree; nothing was changed"
}

# stage_patches STAGE SRC PATCH...: makes STAGE, with those files of SRC that the
# patches change, and what the patches make of them.
stage_patches() {
	local stage=$1 src=$2 file patch
	shift 2

	rm -rf "$stage"
	mkdir -p "$stage"
	while read -r file; do
		[ -f "$src/$file" ] || die "$src has no $file, which the patches change" "pass a complete Linux 7.3 tree"
		mkdir -p "$stage/$(dirname "$file")"
		cp "$src/$file" "$stage/$file"
	done < <(touched "$@")

	own_git -C "$stage" init -q
	own_git -C "$stage" add -A
	own_git -C "$stage" commit -q -m "$src"
	for patch; do
		own_git -C "$stage" am -q "$patch" > "$BUILD/am.log" 2>&1 ||
			rejected "${patch#"$ROOT/patches/"}" "$src" "$BUILD/am.log"
	done
	rm -rf "$stage/.git"
}

# link_tree SRC TREE: makes TREE, of links to the files of SRC: the user's own tree must
# not be written to, and may be in use.
link_tree() {
	rm -rf "$2"
	mkdir -p "$(dirname "$2")"
	cp -rs "$1" "$2"
	rm -rf "$2/.git"
	make -s -C "$2" mrproper
}

# copy_source SRC TO: makes TO, of what git knows of SRC, as it is in the work tree, or of its files:
# no objects of an in-tree build. Not with SRC's times, which may be older than objects of another
# tree that was there, and not as its owner's.
copy_source() {
	local src=$1 to=$2

	mkdir -p "$to"
	if git -C "$src" rev-parse --git-dir > /dev/null 2>&1 &&
		[ "$(git -C "$src" rev-parse --show-toplevel)" = "$src" ]; then
		git -C "$src" ls-files -z | rsync -rlpD --from0 --files-from=- --ignore-missing-args "$src/" "$to/"
	else
		rsync -rlpD --exclude=/.git "$src/" "$to/"
		# An in-tree build left files that make O= refuses to build over.
		if [ -e "$src/include/config" ] || [ -e "$src/.config" ]; then
			make -s -C "$to" mrproper
		fi
	fi
}
