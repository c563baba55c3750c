#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Prints the x86 code of what one deferred bio costs in bio_endio()'s context,
# C and Rust, so that its instructions can be counted along the path taken.
# Needs the kernels that `make bench INSTRUMENT=count` builds.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"

find_toolchain
# show TITLE OBJECT FUNCTION
show() {
	local object=$BUILD/$2

	[ -f "$object" ] || die "no $object" "make bench INSTRUMENT=count builds it"
	echo "== $1: $3"
	"llvm-objdump$LLVM_SUFFIX" -dr --no-show-raw-insn --disassemble-symbols="$3" "$object" |
		awk -F '\t' '
			/R_X86_64/ { if ($0 ~ /PLT32|PC32/) { sub(/.*R_X86_64_[A-Z0-9]*[ \t]*/, ""); print "         -> " $0 }; next }
			/^ *[0-9a-f]+:/ && $2 !~ /^(nop|lock$)/ { printf "  %3d  %s %s\n", ++n, $2, $3 }
			END { printf "  %d instructions in all\n", n }'
}

show "C" x86-c/block/bio.o __bio_complete_in_task
show "Rust, shim" x86-rust/block/bio.o __bio_complete_in_task
show "Rust, entry point" x86-rust/block/bio_task.o bio_task_enqueue
# None with CONFIG_RUST_INLINE_HELPERS.
for helper in $("llvm-objdump$LLVM_SUFFIX" -dr --disassemble-symbols=bio_task_enqueue \
	"$BUILD/x86-rust/block/bio_task.o" | grep -o 'rust_helper_[a-z0-9_]*' | sort -u || true); do
	show "Rust, helper" x86-rust/rust/helpers/helpers.o "$helper"
done
