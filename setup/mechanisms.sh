#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# make mechanisms: what each mechanism of the engines brings, counted in QEMU on a
# kernel without it. What that is, in sed(1), is all that there is to a variant.
#
# usage: mechanisms.sh OUTDIR SEEDS [VARIANT...]

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

out=$1
seeds=$2
shift 2
engines=rust/kernel/dontcache

# The files of the tree that a variant changes, and how. "thread" is what is left without both.
declare -A files=(
	[thread]="$engines/completion/backlog.rs $engines/dropping/batch.rs"
	[unbounded]=$engines/completion/backlog.rs
	[folio-by-folio]=$engines/dropping/batch.rs
)
budget='s/^pub const BUDGET: usize = 64;/pub const BUDGET: usize = usize::MAX;/'
folios='s/^const FOLIOS: usize = .*;/const FOLIOS: usize = 1;/'
[[ $seeds =~ ^[1-9][0-9]?$ ]] || die "SEEDS=$seeds is not a number of boots" "make mechanisms SEEDS=9"
variants=("$@")
[ $# -gt 0 ] || variants=(paced counted thread unbounded folio-by-folio)
for variant in "${variants[@]}"; do
	[[ $variant = paced || $variant = counted ]] || [ -n "${files[$variant]:-}" ] || die "no variant $variant" "use some of paced counted ${!files[*]}"
done

# keep NAME ENGINE: builds a kernel, and keeps what bench/count.py needs of it.
keep() {
	local to=$out/$1 image from
	image=$("$ROOT/setup/kernel.sh" x86 "$2")
	from=$(dirname "$image")/../../..

	mkdir -p "$to/arch/x86/boot"
	cp "$image" "$to/arch/x86/boot/"
	cp "$from/vmlinux" "$to/"
}

claim_out "$out"
# A wrong tree is to be heard of now, and not after the tools are there.
[ -z "${KERNEL_SRC:-}" ] || "$ROOT/setup/kernel-source.sh" > /dev/null
need_space "$BUILD" 8
need_space "$out" 1 OUT=
find_toolchain
need_tools qemu-system-x86_64=qemu-system-x86 nm=binutils mkfs.xfs=xfsprogs mkfs.ext4=e2fsprogs
"$ROOT/setup/overlay.sh"
keep c c
keep rust rust+unpaced
# The overlay comes back, whatever happens.
trap '"$ROOT/setup/overlay.sh"' EXIT
for variant in "${variants[@]}"; do
	"$ROOT/setup/overlay.sh"
	# With what the policy needs: under it, as users have it, and under upstream's.
	if [[ $variant = paced || $variant = counted ]]; then
		keep "$variant" rust
		continue
	fi
	for file in ${files[$variant]}; do
		sed -i "$budget;$folios" "$BUILD/linux/$file"
		! cmp -s "$BUILD/linux/$file" "$ROOT/$file" ||
			die "variant $variant changes nothing" "mend its line in $0"
	done
	keep "$variant" rust+unpaced
done
python3 "$ROOT/bench/mechanisms.py" --out "$out" --seeds "$seeds" c rust "${variants[@]}"
