#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Builds one guest kernel from $BUILD/linux and prints the file to boot.
#
# usage: kernel.sh um|virtual|x86 ENGINE
#
# "virtual" is UML with one CPU and a time that moves only when all wait. ENGINE
# is rust or c (lean, to measure), rust-kunit, c-kunit, rust-debug or rust-kasan (to test), or
# rust-torture or rust-kcsan (with the torture module, which is put beside the file
# to boot). The configuration is allnoconfig with the fragments of guest/config/ for
# both; "um rust" is built in $BUILD/um-rust, and so on.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

arch=${1:-}
engine=${2:-}
case $arch in
um) karch=um image=linux target=linux seconds=300 configs=(base um smp) ;;
virtual) karch=um image=linux target=linux seconds=300 configs=(base um virtual) ;;
x86) karch=x86_64 image=arch/x86/boot/bzImage target=bzImage seconds=600 configs=(base x86 smp) ;;
*) die "no architecture $arch" "use um, virtual or x86" ;;
esac
configs+=("${engine%%+*}")
[ "$engine" = "${engine%%+*}" ] || configs+=("variants/${engine#*+}")
[ -f "$ROOT/guest/config/${engine%%+*}.config" ] || die "no engine $engine" "use rust, c, rust-kunit, c-kunit, rust-debug, rust-kasan, rust-torture or rust-kcsan"
[ -f "$ROOT/guest/config/${configs[-1]}.config" ] || die "no variant of $engine" "use one of guest/config/variants/"
case $engine in
# Sanitizers double the time of every file.
rust-kasan | rust-torture | rust-kcsan) seconds=1800 ;;
esac
name=$arch-$engine
out=$BUILD/$name

configure() {
	local wanted absent=

	mkdir -p "$out"
	# The last word on an option counts.
	(cd "$ROOT/guest/config" && cat "${configs[@]/%/.config}") | tac |
		awk '{ option = /^# CONFIG_.* is not set$/ ? $2 : $1; sub(/=.*/, "", option) }
			option !~ /^CONFIG_/ || !seen[option]++' | tac > "$out/wanted.config"
	# With one code generator for both, atomics and the like cost Rust no call. Not for UML.
	if [[ $arch = x86 && $engine = rust* ]] &&
		[ "$(clang_major "clang$LLVM_SUFFIX")" = "$(llvm_of_rustc "$RUSTC")" ]; then
		echo CONFIG_RUST_INLINE_HELPERS=y >> "$out/wanted.config"
	fi
	if [ -f "$out/.config" ] && cmp -s "$out/wanted.config" "$out/built.config" &&
		[ ! "$BUILD/linux/mm/Kconfig.dontcache" -nt "$out/.config" ]; then
		return
	fi
	make -C "$BUILD/linux" O="$out" ARCH="$karch" "${KMAKE[@]}" \
		KCONFIG_ALLCONFIG="$out/wanted.config" allnoconfig
	# An option that fell to its dependencies would make a different test of this kernel.
	while read -r wanted; do
		grep -qxF "$wanted" "$out/.config" && continue
		# An unset option need not be mentioned at all.
		[[ $wanted == '# '* ]] && ! grep -q "^$(echo "$wanted" | awk '{ print $2 }')=" "$out/.config" &&
			continue
		echo "not in the configuration: $wanted"
		absent=y
	done < <(grep -E '^(CONFIG_|# CONFIG_.* is not set)' "$out/wanted.config")
	[ -z "$absent" ]
	cp "$out/wanted.config" "$out/built.config"
}

build() {
	local targets=("$target")

	configure
	if ! grep -qx CONFIG_MODULES=y "$out/.config"; then
		make -C "$BUILD/linux" O="$out" ARCH="$karch" "${KMAKE[@]}" -j"$JOBS" "${targets[@]}"
		return
	fi
	targets+=(modules)
	make -C "$BUILD/linux" O="$out" ARCH="$karch" "${KMAKE[@]}" -j"$JOBS" "${targets[@]}"
	cp "$out"/samples/rust/*.ko "$(dirname "$out/$image")/"
}

find_toolchain
need_space "$BUILD" 3
STEP_NAME="building the kernel $name" step "$seconds" "$BUILD/log/$name.log" build
echo "$out/$image"
