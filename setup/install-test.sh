#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make install, make uninstall and make series on small trees that have the files that the overlay
# changes: whatever goes wrong, the tree is as it was, and so it is after make uninstall.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/setup/series.sh"

passed=0
failed=0
skipped=0
need_tools git=git make=make perl=perl chattr=e2fsprogs unshare=util-linux
src=$("$ROOT/setup/kernel-source.sh")
tmp=$(mktemp -d)
trap 'chattr -i "$tmp"/*/rust/kernel/lib.rs 2> /dev/null; rm -rf "$tmp"' EXIT
cd "$ROOT"
export GIT_AUTHOR_NAME=user GIT_AUTHOR_EMAIL=user@localhost GIT_COMMITTER_NAME=user GIT_COMMITTER_EMAIL=user@localhost

# ok NAME COMMAND...
ok() {
	local name=$1 output
	shift

	if output=$("$@" 2>&1 < /dev/null); then
		passed=$((passed + 1))
		echo "ok $name"
	else
		failed=$((failed + 1))
		printf 'not ok %s: %s\n' "$name" "$(head -n 9 <<< "$output")"
	fi
}

# files DIR: what is in it, with contents and times of files.
files() {
	(
		cd "$1"
		find . -path ./.git -prune -o -type f -printf '%p %m %T@ \n' -o -type l -printf '%p %l\n' | sort
		find . -path ./.git -prune -o -type f -exec sha256sum {} + | sort
	)
}

timeless() {
	sed 's/ [0-9]*\.[0-9]* / /'
}

# whole DIR: the same of a git tree, whose switches give files a new time, and what git knows.
whole() {
	files "$1" | timeless
	git -C "$1" status --porcelain=v2 --branch
	git -C "$1" stash list
	git -C "$1" diff
	git -C "$1" for-each-ref
	git -C "$1" config --list
	git -C "$1" worktree list
}

# refuses NAME TEXT STATE TREE COMMAND...: it fails, says TEXT and what to do next, and STATE of TREE is as before.
refuses() {
	local name=$1 text=$2 state=$3 of=$4 before output rc=0
	shift 4

	before=$("$state" "$of")
	output=$("$@" 2>&1 < /dev/null) || rc=$?
	if [ $rc -ne 0 ] && [[ $output == *"$text"* ]] && [[ $output == *next:* ]] && [ "$before" = "$("$state" "$of")" ]; then
		passed=$((passed + 1))
		echo "ok $name"
	else
		failed=$((failed + 1))
		printf 'not ok %s: status %s, output:\n%s\n' "$name" "$rc" "$output"
		diff <(echo "$before") <("$state" "$of") | head -n 9 || true
	fi
}

# advised NAME COMMAND...: it fails, and works when what it advises was done.
advised() {
	local name=$1 command
	shift

	command=$("$@" 2>&1 | sed -n 's/^  next: [^:]*: \(.*\); .*/\1/p') || true
	ok "$name: the advice" bash -c "$command"
	ok "$name: then" "$@"
}

# there_and_back NAME STATE TREE: both work, the overlay is there in between, and nothing of it is left.
there_and_back() {
	local before

	before=$("$2" "$3")
	ok "$1: install" make -s install KDIR="$3"
	ok "$1: it is there" cmp Kconfig "$3/mm/Kconfig.dontcache"
	ok "$1: the C is patched" grep -q DONTCACHE_RUST "$3/mm/filemap.c" "$3/block/bio.c"
	[ ! -e "$3/.git" ] ||
		ok "$1: the same as by make series" [ "$(git -C "$3" rev-parse 'dontcache-rust^{tree}')" = "$series" ]
	ok "$1: uninstall" make -s uninstall KDIR="$3"
	# With new times, or make would take for theirs what was built in between.
	ok "$1: as it was" diff <(timeless <<< "$before") <("$2" "$3" | timeless)
}

# half_way NAME STATE TREE: a file that is to be replaced cannot be, when others are already.
half_way() {
	local file=$3/rust/kernel/lib.rs

	if chattr +i "$file" 2> /dev/null; then
		refuses "$1" "undone" "$2" "$3" make -s install KDIR="$3"
		chattr -i "$file"
	else
		skipped=$((skipped + 1))
		echo "skip $1: no chattr +i here"
	fi
}

patches=$(series '')
mapfile -t patches <<< "$patches"
mkdir "$tmp/plain"
(cd "$src" && {
	touched "${patches[@]}"
	echo Makefile
	echo Kbuild
	echo mm/Kconfig.debug
	echo README
} | xargs cp -p --parents -t "$tmp/plain")
cp -a "$tmp/plain" "$tmp/git"
git -C "$tmp/git" init -q -b main
git -C "$tmp/git" add -f .
git -C "$tmp/git" commit -q -m v7.3
git -C "$tmp/git" tag v7.3

# What reviewers get is what make install makes: by git am, and by the one patch.
ok "series" make -s series OUT="$tmp/series"
cp -a "$tmp/git" "$tmp/am"
ok "git am takes the series" git -C "$tmp/am" am -q "$tmp"/series/*.patch
series=$(git -C "$tmp/am" rev-parse 'HEAD^{tree}')
git -C "$tmp/am" reset -q --hard v7.3
ok "git apply takes the one patch" git -C "$tmp/am" apply --index "$tmp/series/combined/dontcache-rust.patch"
ok "which is the same" [ "$(git -C "$tmp/am" write-tree)" = "$series" ]
git -C "$tmp/am" reset -q --hard v7.3
# The overlay that all other tests are of.
ok "overlay" "$ROOT/setup/overlay.sh"
git -C "$tmp/am" apply --index "$tmp/series/combined/dontcache-rust.patch"
while read -r file; do
	cmp "$BUILD/linux/$file" "$tmp/am/$file"
done < <(git -C "$tmp/am" diff --cached --name-only v7.3) > "$tmp/differ" 2>&1 || true
ok "the tests' tree is the same" [ ! -s "$tmp/differ" ]
(cd "$BUILD/linux" && perl scripts/checkpatch.pl --strict --no-signoff --terse --no-summary \
	--ignore FILE_PATH_CHANGES,COMMIT_MESSAGE,EMBEDDED_FILENAME,UNDOCUMENTED_SETUP,UNKNOWN_COMMIT_ID,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT,BIT_MACRO,VOLATILE,ARRAY_SIZE,EMBEDDED_FUNCTION_NAME \
	"$tmp"/series/*.patch) > "$tmp/checkpatch" 2> /dev/null || true
ok "checkpatch says nothing of it" diff /dev/null "$tmp/checkpatch"

# A tarball needs no git repository, and no network where there is a tree.
if [ -e .git ]; then
	ok "dist" make -s dist OUT="$tmp/dist"
	ok "dist, twice" env TZ=Asia/Tokyo make -s dist OUT="$tmp/dist2"
	ok "which is the same" diff -r "$tmp/dist" "$tmp/dist2"
	refuses "dist, where something is" "something else in it" files "$tmp/plain" make -s dist OUT="$tmp/plain"
	mkdir "$tmp/unpacked"
	tar -xf "$tmp"/dist/*.tar.gz -C "$tmp/unpacked" --strip-components=1
	# What is built beside the sources is not of the series.
	: > "$tmp/unpacked/tools/dontcache/dontcache"
	offline=()
	if unshare --net true 2> /dev/null; then
		offline=(unshare --net)
	else
		skipped=$((skipped + 1))
		echo "skip its series without network: this user may not unshare it"
	fi
	ok "its series" env -u DONTCACHE_BUILD DONTCACHE_CACHE="$tmp/cache" KERNEL_SRC="$src" \
		"${offline[@]}" make -s -C "$tmp/unpacked" series OUT="$tmp/again"
	[ -n "$(git status --porcelain)" ] || ok "is the same" diff -r "$tmp/series" "$tmp/again"
else
	skipped=$((skipped + 1))
	echo "skip dist: a tarball makes none"
fi

there_and_back "plain files" files "$tmp/plain"
cp -al "$tmp/plain" "$tmp/links"
before=$(files "$tmp/plain")
ok "hard links: install" make -s install KDIR="$tmp/links"
ok "hard links: the other copy is as it was" diff <(echo "$before") <(files "$tmp/plain")
refuses "that tree is no directory of ours" "something else in it" files "$tmp/links" env DONTCACHE_BUILD="$tmp/links" make -s clean
refuses "plain files, twice" "is in $tmp/links already" files "$tmp/links" make -s install KDIR="$tmp/links"
refuses "make apply of it" "is in $tmp/links already" files "$tmp/links" env KERNEL_SRC="$tmp/links" make -s apply
tar -C "$tmp/links" -xf "$tmp/links/.dontcache-installed/before.tar" mm/filemap.c
echo "// mine" >> "$tmp/links/mm/dontcache.c"
echo "// mine" >> "$tmp/links/block/bio.c"
refuses "uninstall what was changed" "was changed since" files "$tmp/links" make -s uninstall KDIR="$tmp/links"
advised "uninstall what was changed" make -s uninstall KDIR="$tmp/links"
ok "as it was" diff <(timeless <<< "$before") <(files "$tmp/links" | timeless)
refuses "a branch without git" "is for a tree with git" files "$tmp/plain" make -s install KDIR="$tmp/plain" BRANCH=dc
refuses "uninstall what is not there" "no make install" files "$tmp/plain" make -s uninstall KDIR="$tmp/plain"
touch "$tmp/plain/mm/dontcache.c"
refuses "a file of ours is there" "mm/dontcache.c already" files "$tmp/plain" make -s install KDIR="$tmp/plain"
rm "$tmp/plain/mm/dontcache.c"
mv "$tmp/plain/rust" "$tmp/rust"
ln -s ../rust "$tmp/plain/rust"
refuses "a directory of another tree" "no directory of that tree" files "$tmp/rust" make -s install KDIR="$tmp/plain"
rm "$tmp/plain/rust"
mv "$tmp/rust" "$tmp/plain/rust"
half_way "half way a file cannot be written" files "$tmp/plain"

# Somebody's settings, changes of all kinds, and a branch of their own.
git -C "$tmp/git" config commit.gpgsign true
git -C "$tmp/git" config core.hooksPath "$tmp/hooks"
git -C "$tmp/git" config apply.whitespace error-all
mkdir "$tmp/hooks"
for hook in post-checkout pre-commit applypatch-msg reference-transaction; do
	printf '#!/bin/sh\necho %s >> %s/hooks.log; exit 1\n' $hook "$tmp" > "$tmp/hooks/$hook"
	chmod +x "$tmp/hooks/$hook"
done
# changes TREE
changes() {
	echo "# mine" >> "$1/README"
	echo "# staged" >> "$1/mm/Kconfig.debug"
	git -C "$1" add mm/Kconfig.debug
	echo "# not staged" >> "$1/mm/Kconfig.debug"
	echo mine > "$1/untracked"
}
changes "$tmp/git"
there_and_back "git, local changes" whole "$tmp/git"
git -C "$tmp/git" -c core.hooksPath=/dev/null worktree add -q --detach "$tmp/worktree" v7.3
changes "$tmp/worktree"
there_and_back "worktree, no branch, local changes" whole "$tmp/worktree"
git clone -q --depth 1 "file://$tmp/git" "$tmp/shallow"
there_and_back "shallow clone" whole "$tmp/shallow"
ok "no hook was called" [ ! -e "$tmp/hooks.log" ]

echo "/* mine */" >> "$tmp/git/mm/filemap.c"
refuses "a change where the overlay has one" "has changes in files" whole "$tmp/git" make -s install KDIR="$tmp/git"
git -C "$tmp/git" show v7.3:mm/filemap.c > "$tmp/git/mm/filemap.c"
mkdir -p "$tmp/git/rust/kernel/dontcache"
touch "$tmp/git/rust/kernel/dontcache/dropping.rs"
refuses "an untracked file where we have one" "dropping.rs already" whole "$tmp/git" make -s install KDIR="$tmp/git"
echo /rust/kernel/dontcache > "$tmp/git/.git/info/exclude"
refuses "one that git ignores" "dropping.rs already" whole "$tmp/git" make -s install KDIR="$tmp/git"
rm -r "$tmp/git/rust/kernel/dontcache"
touch "$tmp/git/rust/kernel/dontcache"
refuses "a file where we have a directory" "no directory of that tree" whole "$tmp/git" make -s install KDIR="$tmp/git"
rm "$tmp/git/rust/kernel/dontcache"
git -C "$tmp/am" reset -q --hard v7.3
git -C "$tmp/am" apply --index "$tmp/series/combined/dontcache-rust.patch" 2> /dev/null
echo "/* mine */" >> "$tmp/am/mm/dontcache.c"
refuses "the overlay is staged, and changed" "already" whole "$tmp/am" make -s install KDIR="$tmp/am"
git -C "$tmp/am" reset -q --hard v7.3
git -C "$tmp/am" switch -q -c work
git -C "$tmp/am" commit -q --allow-empty -m work
git -C "$tmp/am" switch -q main
refuses "another name of a branch of theirs" "no name of a branch" whole "$tmp/am" make -s install KDIR="$tmp/am" BRANCH='@{-1}'
cp -a "$tmp/am" "$tmp/copied"
ok "a copied tree" make -s install KDIR="$tmp/copied"
refuses "on top of it" "is in $tmp/copied already" whole "$tmp/copied" make -s install KDIR="$tmp/copied" BRANCH=other
git -C "$tmp/copied" switch -q -c mine
refuses "uninstall below a branch of mine" "is built on" whole "$tmp/copied" make -s uninstall KDIR="$tmp/copied"
git -C "$tmp/copied" switch -q main
ok "uninstall from elsewhere" make -s uninstall KDIR="$tmp/copied"
touch "$tmp/am/.git/rebase-merge"
refuses "in the middle of a rebase" "in the middle" whole "$tmp/am" make -s install KDIR="$tmp/am"
rm "$tmp/am/.git/rebase-merge"
git -C "$tmp/shallow" switch -q -c other
sed -i 's/bio_complete_batch/bio_batch/g' "$tmp/shallow/block/bio.c"
git -C "$tmp/shallow" commit -q -a -m other
refuses "a patch that does not apply" "does not apply" whole "$tmp/shallow" make -s install KDIR="$tmp/shallow"
git -C "$tmp/shallow" switch -q main
git -C "$tmp/shallow" -c core.hooksPath=/dev/null branch dontcache-rust
refuses "the name of the branch is taken" "already
  next: name another" whole "$tmp/shallow" make -s install KDIR="$tmp/shallow"
refuses "no name of a branch" "no name of a branch" whole "$tmp/shallow" make -s install KDIR="$tmp/shallow" BRANCH=a..b
refuses "uninstall another's branch" "no make install" whole "$tmp/shallow" make -s uninstall KDIR="$tmp/shallow"
ok "another name" make -s install KDIR="$tmp/shallow" BRANCH=dc
git -C "$tmp/shallow" commit -q --allow-empty -m mine
refuses "uninstall with commits of mine" "commits that make install did not make" whole "$tmp/shallow" \
	make -s uninstall KDIR="$tmp/shallow" BRANCH=dc
advised "uninstall with commits of mine" make -s uninstall KDIR="$tmp/shallow" BRANCH=dc
ok "they are kept" git -C "$tmp/shallow" rev-parse -q --verify mine
half_way "half way git cannot write a file" whole "$tmp/git"

if [ "$(id -u)" = 0 ]; then
	chown 65534 "$tmp/plain"
	refuses "somebody else's tree" "run this as" files "$tmp/plain" make -s install KDIR="$tmp/plain"
	chown 0 "$tmp/plain"
fi
sed -i 's/^PATCHLEVEL = 3/PATCHLEVEL = 2/' "$tmp/plain/Makefile"
refuses "another release" "not 7.3" files "$tmp/plain" make -s install KDIR="$tmp/plain"
refuses "no tree" "is not a directory" files "$tmp/plain" make -s install KDIR="$tmp/none"
refuses "no KDIR" "KDIR=" files "$tmp/plain" make -s install
refuses "no KDIR to uninstall" "KDIR=" files "$tmp/plain" make -s uninstall

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
