# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Finds what a kernel with Rust is built with, installs what is missing where
# that is possible (root and apt), and otherwise says what to install. Sourced
# after lib.sh; find_toolchain sets:
#
#   KMAKE[]     arguments of the kernel's make
#   RUSTC       >= 1.85, with the source of its library in RUST_LIB_SRC
#   LLVM_SUFFIX of clang and its tools, such as -19, or nothing; LLVM >= 17,
#               and of the same major as rustc's where there is a choice
#   CARGO       for the host tests

MIN_RUSTC=1.85.0
MIN_LLVM=17
MIN_BINDGEN=0.71.1
NEW_BINDGEN=0.72.1

# at_least HAVE WANT: compares versions.
at_least() {
	[ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

have() {
	command -v "$1" > /dev/null
}

can_install() {
	[ "$(id -u)" = 0 ] && have apt-get && [ -z "${DONTCACHE_NO_INSTALL:-}" ]
}

# absent TOOL=PACKAGE...: the packages of the tools (or files) that are not there. A guest has the
# directories of root in its path, an ordinary user has not.
absent() {
	local item

	for item; do
		case $item in
		/*) [ -e "${item%%=*}" ] || echo "${item#*=}" ;;
		*) PATH=$PATH:/usr/sbin:/sbin have "${item%%=*}" || echo "${item#*=}" ;;
		esac
	done
}

# ever_needed: all that some script asks for and that is not there, so that who has to ask an
# administrator asks once.
ever_needed() {
	local items

	mapfile -t items < <(sed -n '/need_tools /,/[^\\]$/p' "$ROOT"/{setup,guest}/*.sh |
		grep -oE '[A-Za-z0-9_./-]+=[a-z][a-z0-9.+-]+' | sort -u)
	{
		absent "${items[@]}" cargo=cargo /usr/share/doc/python3-venv=python3-venv
		[ -n "$(rustcs)" ] || printf '%s\n' rustc rust-src
		[ -n "$(llvms)" ] || printf '%s\n' {clang,lld,llvm}-19 libclang-19-dev
	} | sort -u | tr '\n' ' '
}

APT_UPDATED=
# install_packages PACKAGE...
install_packages() {
	can_install || die "missing packages: $*" \
		"apt-get install $*; for all that any target asks for: apt-get install $(ever_needed)"
	if [ -z "$APT_UPDATED" ]; then
		STEP_NAME="reading the package lists" STEP_NEXT="check the network, and read" \
			step 10 "$CACHE/log/apt-update.log" apt-get -o DPkg::Lock::Timeout=300 update
		APT_UPDATED=y
	fi
	STEP_NAME="installing $*" STEP_NEXT="check the network, and read" step 60 "$CACHE/log/apt-install.log" \
		env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
		install -y --no-install-recommends "$@"
}

# need_tools TOOL=PACKAGE...: installs the packages of the tools (or files) that are not there.
need_tools() {
	local missing

	mapfile -t missing < <(absent "$@")
	[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
}

# available PACKAGE: the version that apt would install, without epoch.
available() {
	apt-cache policy "$1" 2> /dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { sub(/^[0-9]+:/, "", $2); print $2 }'
}

rustc_version() {
	"$1" --version 2> /dev/null | awk '{ print $2 }'
}

# The library source that belongs to the rustc $1.
lib_src_of() {
	local dir

	for dir in "${RUST_LIB_SRC:-}" "$("$1" --print sysroot 2> /dev/null)/lib/rustlib/src/rust/library" \
		"/usr/src/rustc-$(rustc_version "$1")/library" /usr/src/rustc-*/library; do
		[ -f "$dir/core/src/lib.rs" ] || continue
		# A source of another version compiles to nonsense, or not at all.
		case $dir in
		/usr/src/rustc-*) [ "$dir" = "/usr/src/rustc-$(rustc_version "$1")/library" ] || continue ;;
		esac
		echo "$dir"
		return
	done
	return 1
}

llvm_of_rustc() {
	"$1" -vV 2> /dev/null | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p'
}

clang_major() {
	"$1" --version 2> /dev/null | sed -n 's/.*clang version \([0-9]*\).*/\1/p'
}

# Prints "major suffix" of each usable LLVM, the plain names first.
llvms() {
	local suffix major

	for suffix in '' $(seq -f -%g 30 -1 "$MIN_LLVM"); do
		if have "clang$suffix" && have "ld.lld$suffix" && have "llvm-ar$suffix" && have "llvm-objcopy$suffix"; then
			major=$(clang_major "clang$suffix")
			[ "${major:-0}" -lt "$MIN_LLVM" ] || printf '%s %s\n' "$major" "$suffix"
		fi
	done
}

# Prints "rustc libsrc" of each usable rustc, the one that was asked for first.
rustcs() {
	local rustc src

	for rustc in ${RUSTC:-rustc /usr/bin/rustc /usr/lib/rust-*/bin/rustc "$HOME"/.rustup/toolchains/*/bin/rustc}; do
		rustc=$(command -v "$rustc") || continue
		at_least "$(rustc_version "$rustc" | sed 's/-.*//')" "$MIN_RUSTC" || continue
		src=$(lib_src_of "$rustc") || continue
		printf '%s %s\n' "$rustc" "$src"
	done
}

install_rustc() {
	local pair

	[ -z "${RUSTC:-}" ] || die "RUSTC=$RUSTC is not a rustc >= $MIN_RUSTC with its library source" \
		"pass RUST_LIB_SRC=DIR (rustup component add rust-src), or leave RUSTC out"
	if can_install; then
		apt-get -qq update || true
		for pair in "rustc rust-src" "rustc-web rust-web-src"; do
			# shellcheck disable=SC2086 # a pair of names
			if at_least "$(available ${pair% *})" "$MIN_RUSTC" && [ -n "$(available ${pair% *})" ]; then
				# shellcheck disable=SC2086
				install_packages $pair
				return
			fi
		done
	fi
	die "no rustc >= $MIN_RUSTC with its library source" \
		"apt-get install rustc-web rust-web-src (Debian 12), rustc rust-src (newer), or rustup component add rust-src"
}

install_clang() {
	local major

	if can_install; then
		apt-get -qq update || true
		for major in $(seq 30 -1 "$MIN_LLVM"); do
			if [ -n "$(available "clang-$major")" ] && [ -n "$(available "lld-$major")" ]; then
				install_packages "clang-$major" "lld-$major" "llvm-$major" "libclang-$major-dev"
				return
			fi
		done
	fi
	die "no clang >= $MIN_LLVM with lld and the llvm tools" \
		"apt-get install clang-19 lld-19 llvm-19 libclang-19-dev, or a newer version of all four"
}

find_bindgen() {
	local tool

	for tool in "${BINDGEN:-}" bindgen "$CACHE/bindgen/bin/bindgen"; do
		tool=$(command -v "$tool") || continue
		if at_least "$("$tool" --version | awk '{ print $2 }')" "$MIN_BINDGEN"; then
			echo "$tool"
			return
		fi
	done
	return 1
}

find_cargo() {
	[ -z "${CARGO:-}" ] || command -v "$CARGO" > /dev/null || die "CARGO=$CARGO is not a program" "leave it out, or name one"
	CARGO=$(command -v "${CARGO:-cargo}") ||
		{ need_tools cargo="$([ -n "$(available cargo-web)" ] && echo cargo-web || echo cargo)" && CARGO=$(command -v cargo); }
}

find_toolchain() {
	local rustc src major suffix best_rustc='' best_src='' best_major='' best_suffix=''

	need_tools make=make gcc=gcc flex=flex bison=bison bc=bc cpio=cpio ccache=ccache rsync=rsync \
		git=git xz=xz-utils perl=perl python3=python3 /usr/include/stdio.h=libc6-dev \
		/usr/include/libelf.h=libelf-dev /usr/include/openssl/ssl.h=libssl-dev \
		/etc/ssl/certs/ca-certificates.crt=ca-certificates

	[ -z "${RUST_LIB_SRC:-}" ] || [ -f "$RUST_LIB_SRC/core/src/lib.rs" ] ||
		die "RUST_LIB_SRC=$RUST_LIB_SRC has no source of Rust's library" "leave it out, or name the directory that has core/"
	[ -n "$(rustcs)" ] || install_rustc
	[ -n "$(llvms)" ] || install_clang
	while read -r rustc src; do
		while read -r major suffix; do
			# With equal majors C and Rust share one code generator, and helpers can be inlined.
			if [ -z "$best_rustc" ] || { [ "$major" = "$(llvm_of_rustc "$rustc")" ] &&
				[ "$best_major" != "$(llvm_of_rustc "$best_rustc")" ]; }; then
				best_rustc=$rustc best_src=$src best_major=$major best_suffix=$suffix
			fi
		done < <(llvms)
	done < <(rustcs)
	RUSTC=$best_rustc RUST_LIB_SRC=$best_src LLVM_SUFFIX=$best_suffix
	[ -n "$RUSTC" ] || die "no usable pair of rustc and clang" "read $CACHE/log/apt-install.log"

	# bindgen loads a libclang of its own choice unless told.
	LIBCLANG_PATH=$("llvm-config$LLVM_SUFFIX" --libdir 2> /dev/null || echo "/usr/lib/llvm$LLVM_SUFFIX/lib")
	[ ! -d "$LIBCLANG_PATH" ] || export LIBCLANG_PATH
	find_cargo
	[ -z "${BINDGEN:-}" ] || at_least "$("$BINDGEN" --version 2> /dev/null | awk '{ print $2 }')" "$MIN_BINDGEN" ||
		die "BINDGEN=$BINDGEN is not a bindgen >= $MIN_BINDGEN" "leave it out, or name one"
	if ! BINDGEN=$(find_bindgen); then
		STEP_NAME="building bindgen $NEW_BINDGEN" step 60 "$CACHE/log/bindgen.log" \
			env CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
			"$CARGO" install --locked --no-default-features --features runtime --root "$CACHE/bindgen" --version "$NEW_BINDGEN" bindgen-cli
		BINDGEN=$(find_bindgen) || die "bindgen $NEW_BINDGEN does not run" "read $CACHE/log/bindgen.log"
	fi

	# shellcheck disable=SC2034 # for who sources this
	KMAKE=(LLVM="${LLVM_SUFFIX:-1}" CC="ccache clang$LLVM_SUFFIX"
		RUSTC="$RUSTC" HOSTRUSTC="$RUSTC" RUSTDOC="$(dirname "$RUSTC")/rustdoc"
		RUST_LIB_SRC="$RUST_LIB_SRC" BINDGEN="$BINDGEN"
		KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=dontcache KBUILD_BUILD_HOST=rust LOCALVERSION=)
	export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-4G}
}
