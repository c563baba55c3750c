#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The lab on itself: in virtual time cells repeat to the bit, and the self-check
# and the comparison see what is wrong.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/setup/toolchain.sh"
. "$ROOT/guest/lib.sh"

# Not run here: qemu-system-x86_64 nm mkfs.ext4 (bench/count.py counts with them)
need_tools mkfs.xfs=xfsprogs setpriv=util-linux
venv=$("$ROOT/setup/venv.sh")
fio=$("$ROOT/setup/fio.sh")
out=$BUILD/lab-test
rm -rf "$out"
# Its figures are of no interest, so it need not be a lean kernel.
mkdir -p "$out"
ln -s "$BUILD/virtual-rust-kunit" "$out/virtual-rust"

lab() {
	"$venv/bin/python" "$ROOT/bench/lab.py" "$@"
}

# Of the kernel that is built for this; all of them twice, so that each is compared.
check "a run without faults" lab run --build "$out" --fio "$fio" --out "$out" --instruments virtual \
	--modes kick,lazy,rdirect --workloads writers,mixed --repeat 6 > "$BUILD/log/lab.log"
tail -n 20 "$BUILD/log/lab.log"
check "equal to the bit" grep -q '^6 cells of nvme ran twice in virtual time and are equal to the bit$' "$BUILD/log/lab.log"
for file in lab.json index.html virtual-nvme-mixed.png virtual-nvme-mixed.svg; do
	check "left $file" test -s "$out/$file"
done
check "the page is one file" sh -c "! grep -Eq '(src|href)=\"[^#]' $out/index.html"
check "its judgement" env LAB_JSON="$out/lab.json" "$venv/bin/python" "$ROOT/bench/test_lab.py" 2>&1
check "its page" env LAB_JSON="$out/lab.json" "$venv/bin/python" "$ROOT/bench/test_page.py" 2>&1
broken() {
	! lab run --build "$out" --fio /bin/false --out "$out/broken" --instruments virtual --modes lazy \
		--workloads append --repeat 0 > "$BUILD/log/lab-broken.log" 2>&1 &&
		grep -q 'append lazy 0.0 failed' "$BUILD/log/lab-broken.log"
}
check "a job that fails is a failure" broken
check "compare with itself" lab compare "$out/lab.json" "$out/lab.json"
check "compare refuses what is no run" sh -c \
	"! $venv/bin/python $ROOT/bench/lab.py compare $out/index.html $out/lab.json"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
