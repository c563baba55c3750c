# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The overlay as commits, new files included, in the order of patches/series. Sourced, after lib.sh.

# own_file FILE: where this repository has what is FILE in the kernel tree.
own_file() {
	case $1 in
	mm/Kconfig.dontcache) echo "$ROOT/Kconfig" ;;
	*) echo "$ROOT/$1" ;;
	esac
}

# own_files: what this repository adds to a kernel tree, by its names there. Not what was built beside it.
own_files() {
	tracked block include mm rust samples Documentation tools && echo mm/Kconfig.dontcache
}

# files_of NAME: those of them that patches/new/NAME lists.
files_of() {
	local line

	sed '1,/^files:$/d' "$ROOT/patches/new/$1" | while read -r line; do
		case $line in
		*/) own_files | grep "^$line" | LC_ALL=C sort ;;
		*) [ -f "$(own_file "$line")" ] && echo "$line" ;;
		esac || die "patches/new/$1: there is no $line" "name a file, or a directory with / at its end"
	done
}

# new_names: the names of patches/new/ that the series has, in its order.
new_names() {
	sed -n 's/^#new //p' "$ROOT/patches/series"
}

# check_new: each file of our own is in one patch, or it would be in no tree, or in two.
check_new() {
	local name all found

	all=$(own_files | sort)
	found=$(new_names | while read -r name; do files_of "$name"; done | sort)
	[ "$all" = "$found" ] || {
		diff <(echo "$all") <(echo "$found") | sed -n 's/^[<>]/ /p' >&2
		die "these files are in no patch of patches/new, or in two" "list them once"
	}
}

# commit_series REPO NAME: puts all of it on the branch of REPO, whose work tree needs no file: git
# takes what it patches from the index. NAME is what REPO's first commit is of, for messages.
commit_series() {
	local repo=$1 name=$2 line file

	check_new
	while read -r line; do
		case $line in
		"#new "*)
			line=${line#"#new "}
			while read -r file; do
				! own_git -C "$repo" cat-file -e "HEAD:$file" 2> /dev/null ||
					die "$name has $file already" "use a Linux 7.3 tree without this overlay; nothing was changed"
				mkdir -p "$repo/$(dirname "$file")"
				cp "$(own_file "$file")" "$repo/$file"
				chmod 644 "$repo/$file"
				own_git -C "$repo" add -f -- "$file"
			done < <(files_of "$line")
			sed '/^files:$/,$d' "$ROOT/patches/new/$line" | own_git -C "$repo" commit -q -F -
			;;
		"#"*) ;;
		*)
			own_git -C "$repo" am -q --committer-date-is-author-date "$ROOT/patches/$line" \
				> "$repo.log" 2>&1 || rejected "$line" "$name" "$repo.log"
			;;
		esac
	done < "$ROOT/patches/series"
}
