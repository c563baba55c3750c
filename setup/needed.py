#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Finds tools that a script runs and that a fresh machine may be without.

A script of setup/, guest/, bench/ or kunit/ may run what setup/base-tools.txt has,
functions, and what a need_tools names: in the script itself or in a function that it
calls. That another script names it is not enough, since that one may run later. What
runs in a guest runs on the root filesystem of the machine, so its tools are to be
named by each script that starts it, as are those of the Python programs of bench/.

A line "# Not run here: TOOL... (WHY)" spares a script those that it starts nothing with.
Names that are put together from variables are not looked at.
"""

import ast
import itertools
import pathlib
import re
import sys

from shellwords import commands

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("setup", "guest", "bench", "kunit")
# Run what follows their options and so many more words.
WRAPPERS = {"chroot": 1, "env": 0, "exec": 0, "nice": 0, "setpriv": 0, "timeout": 1, "unshare": 0}
WITH_VALUE = {"timeout": ("-k", "-s"), "env": ("-u", "-C"), "nice": ("-n",)}
LIBRARIES = (
    "setup/lib.sh",
    "setup/toolchain.sh",
    "setup/result.sh",
    "setup/series.sh",
    "setup/patchset.sh",
    "setup/installed.sh",
    "setup/root.sh",
    "guest/guest.sh",
    "guest/lib.sh",
    *(
        f"guest/{name}.sh"
        for name in ("common", "flags", "policy", "device", "dropping", "paced", "tool")
    ),
    *(f"guest/{name}.sh" for name in ("filesystems", "errors", "nfs", "nfsd", "offline")),
)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")


class Script:
    """A file: what its functions run and name (None for what is outside of them)."""

    def __init__(self, path):
        self.path = path
        self.name = str(path.relative_to(ROOT))
        text = path.read_text()
        self.text = re.sub(r"^\s*#.*", "", text, flags=re.MULTILINE)
        # Runs on the machine, and not in a guest: it can ask for tools.
        self.host = path.suffix != ".py" and "BASH_SOURCE" in text
        # Python that is imported for something else may run more.
        said = re.search(r"^# Not run here: ([^(]*)", text, re.MULTILINE)
        self.spared = set(said.group(1).split()) if said else set()
        self.library = self.name in LIBRARIES
        self.runs = {None: set()}
        self.named = {None: set()}
        # How many words a function drops before it runs the rest of them.
        self.drops = {}
        self.shifted = 0

    def parse(self, libraries):
        """Reads it; LIBRARIES were read before."""
        if self.path.suffix == ".py":
            self.runs[None].update(python_commands(self.text))
            return
        for function, words in commands(self.text):
            if words:
                self.command(function, words, libraries)
            else:
                self.shifted = 0
                self.runs.setdefault(function, set())
                self.named.setdefault(function, set())

    def command(self, function, words, libraries):
        """Takes in one command."""
        words = list(itertools.dropwhile(ASSIGNMENT.match, words))
        if not words:
            return
        name, *rest = words
        if name == "\0@":
            self.drops[function] = self.shifted
        elif name == "shift":
            self.shifted += int(rest[0]) if rest and rest[0].isdigit() else 1
        elif name == "need_tools":
            tools = {word.partition("=")[0].rpartition("/")[2] for word in rest}
            self.named[function].update(tools)
        elif name in ("sh", "bash") and len(rest) > 1 and re.fullmatch(r"-[a-z]*c", rest[0]):
            self.string(function, rest[1], libraries)
        elif name == "trap" and rest[0] != "-":
            self.string(function, rest[0], libraries)
        elif name in WRAPPERS:
            self.command(function, unwrapped(name, rest), libraries)
        elif name == "tar" and re.match(r"-[a-z]*J", rest[0]):
            self.runs[function].add("xz")
        if "\0" not in name and "/" not in name:
            self.runs[function].add(name)
            for script in [self, *libraries]:
                if name in script.drops:
                    self.command(function, rest[script.drops[name] :], libraries)
                if name in script.runs:
                    break

    def string(self, function, text, libraries):
        """Takes in a script that is one word, whose arguments are not those of FUNCTION."""
        for _, words in commands(text):
            if words and words[0] not in ("shift", "\0@"):
                self.command(function, words, libraries)


def unwrapped(name, words):
    """The command that a wrapper runs."""
    keep = WRAPPERS[name]
    while words:
        if words[0] in WITH_VALUE.get(name, ()):
            words = words[2:]
        elif words[0].startswith("-") or ASSIGNMENT.match(words[0]):
            words = words[1:]
        elif keep:
            keep -= 1
            words = words[1:]
        else:
            break
    return words


def python_commands(text):
    """The first word of what subprocess is given, where that is written there."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            first = node.args[0] if node.args else None
            if getattr(node.func.value, "id", "") == "subprocess" and isinstance(first, ast.List):
                name = getattr(first.elts[0], "value", None)
                if isinstance(name, str):
                    yield name
            elif node.func.attr == "which" and isinstance(getattr(first, "value", None), str):
                yield first.value


def base_tools():
    """What is there, as base-tools.txt has it."""
    words = set()
    for line in (ROOT / "setup/base-tools.txt").read_text().splitlines():
        if not line.startswith("#"):
            words.update(word for word in line.split() if word == ":" or not word.endswith(":"))
    return words


def read_scripts():
    """All scripts by name."""
    files = [
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".sh", ".py") or (path.is_file() and path.read_bytes()[:3] == b"#!/")
    ]
    return {script.name: script for script in map(Script, files)}


def mentioned(script, scripts):
    """The scripts that SCRIPT names by path, or imports."""
    python = script.path.suffix == ".py"
    return {
        other.name
        for other in scripts.values()
        if other.name != script.name
        and (
            other.name in script.text
            or (
                python
                and script.path.parent == other.path.parent
                and re.search(rf"^\s*(import|from) {other.path.stem}\b", script.text, re.MULTILINE)
            )
        )
    }


def reached(script, scripts):
    """SCRIPT, and what it starts that cannot ask for tools itself."""
    done, left = set(), [script.name]
    while left:
        name = left.pop()
        if name not in done:
            done.add(name)
            left += [
                other
                for other in mentioned(scripts[name], scripts)
                if not scripts[other].host and not scripts[other].library
            ]
    return sorted(done)


def called(script, libraries):
    """What SCRIPT runs and names, itself and in the functions of LIBRARIES that it calls."""
    tools, left = set(), set().union(*script.runs.values())
    named = set().union(*script.named.values())
    while left:
        tool = left.pop()
        tools.add(tool)
        for library in libraries:
            left |= library.runs.get(tool, set()) - tools
            named |= library.named.get(tool, set())
    return tools, named


def main():
    """Says what is not named, and ends with status 1 if there is any."""
    scripts = read_scripts()
    libraries = [scripts[name] for name in LIBRARIES]
    for script in sorted(scripts.values(), key=lambda script: not script.library):
        script.parse(libraries)
    there = base_tools()
    bad = looked = 0
    for script in scripts.values():
        if not script.host or script.library:
            continue
        _, named = called(script, libraries)
        for name in reached(script, scripts):
            tools, _ = called(scripts[name], libraries)
            functions = set().union(scripts[name].runs, *(library.runs for library in libraries))
            looked += len(tools)
            for tool in sorted(tools - there - named - functions - script.spared):
                bad += 1
                where = "" if name == script.name else f" starts {name}, which"
                print(f"{script.name}{where} runs {tool}, and no need_tools of it names that")
    print(f"{looked} uses of tools, {bad} of them not named")
    return 1 if bad or not looked else 0


if __name__ == "__main__":
    sys.exit(main())
