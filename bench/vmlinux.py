# SPDX-License-Identifier: GPL-2.0
"""A vmlinux: its symbols, its code, and how large the engines are in it."""

import bisect
import collections
import re
import struct
import subprocess

ENGINE = re.compile(
    r"(__)?bio_complete_(in_task|batch|work_fn|wq)|bio_task_(?!test|context|hotunplug|suite|cases)"
    r"|(filemap_)?dontcache_|rust_helper_dontcache_|.*\bkernel::dontcache\b(?!.*\btests\b)"
)


class Failure(Exception):
    """What cannot be counted, and what to do about it."""


class Image:
    """The symbols and the code of a vmlinux."""

    def __init__(self, vmlinux):
        self.at, self.names, self.address = [], [], {}
        self.data = []
        listing = subprocess.run(
            ["nm", "-CnS", vmlinux], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        for line in listing.splitlines():
            match = re.match(r"([0-9a-f]+) (?:([0-9a-f]{16}) )?(\w) (.*)", line)
            if not match:
                continue
            at, size, kind, name = match.groups()
            at = int(at, 16)
            if size:
                self.data.append((name, at, int(size, 16)))
            if kind not in "tTwW" or name.startswith("__pi_"):
                continue
            self.address.setdefault(name, at)
            if self.at and self.at[-1] == at:
                # Of aliases, the one that the sources use.
                if len(name) < len(self.names[-1]):
                    self.names[-1] = name
                continue
            self.at.append(at)
            self.names.append(name)
        self.segments = list(self.load(vmlinux.read_bytes()))

    @staticmethod
    def load(elf):
        """Yields the segments of a 64-bit ELF file as (address, bytes)."""
        (offset,) = struct.unpack_from("<Q", elf, 32)
        size, nr = struct.unpack_from("<HH", elf, 54)
        for i in range(nr):
            kind, _, start, at, _, length = struct.unpack_from("<IIQQQQ", elf, offset + i * size)
            if kind == 1:
                yield at, elf[start : start + length]

    def function(self, at):
        """The name of the function at an address, and the offset in it."""
        i = bisect.bisect_right(self.at, at) - 1
        return (self.names[i], at - self.at[i]) if i >= 0 else ("?", 0)

    def code(self, at, length):
        for start, data in self.segments:
            if start <= at < start + len(data):
                return data[at - start : at - start + length]
        return b""

    def target(self, at):
        """Where a direct call or a jump out of line goes, or None."""
        code = self.code(at, 5)
        if len(code) < 5 or code[0] not in (0xE8, 0xE9):
            return None
        return at + 5 + struct.unpack("<i", code[1:])[0]

    def branch(self, at):
        """Where a conditional jump goes if it is taken, or None."""
        code = self.code(at, 6)
        if len(code) < 6 or code[0] != 0x0F or code[1] >> 4 != 8:
            return None
        return at + 6 + struct.unpack("<i", code[2:])[0]

    def calls_pointer(self, at):
        """Whether there is a CALL through a register or through memory."""
        code = self.code(at, 3)
        if code and 0x40 <= code[0] <= 0x4F:
            code = code[1:]
        return len(code) > 1 and code[0] == 0xFF and code[1] >> 3 & 7 == 2


def output_of(command):
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise Failure(f"{command[0]} failed")
    return done.stdout


def sizes(image, vmlinux):
    """Bytes of a kernel's sections, and of the symbols of the engines in them."""
    sections = []
    for line in output_of(["size", "-A", "-d", vmlinux]).splitlines():
        field = line.split()
        if len(field) == 3 and field[1].isdigit() and int(field[2]):
            sections.append((int(field[2]), int(field[1]), field[0]))
    engine, symbols = collections.Counter(), {}
    for name, at, size in image.data:
        if not ENGINE.match(name) or "::tests::" in name:
            continue
        section = next((n for start, length, n in sections if start <= at < start + length), "?")
        engine[section] += size
        symbols[name] = {"section": section, "size": size}
    return {
        "sections": {name: size for _, size, name in sections},
        "engine": dict(engine),
        "symbols": symbols,
    }
