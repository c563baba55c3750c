# SPDX-License-Identifier: GPL-2.0
"""Sums up what cargo-mutants found, against the list of equivalent mutants.

usage: mutants.py LIST TREE DIRECTORY...

LIST holds paragraphs: the mutant without line and column, the source line that it changes, and why
no test can tell it from the original. Each DIRECTORY is a mutants.out; what a later one says of a
mutant replaces what an earlier one does.
"""

import json
import posixpath
import sys
from collections import Counter
from pathlib import Path

COLUMNS = ("killed", "endless", "survived", "equivalent", "unviable")
KINDS = {
    "CaughtMutant": "killed",
    # By the clock on the wall, which is no verdict.
    "Timeout": "survived",
    "MissedMutant": "survived",
    "Unviable": "unviable",
}


def mutants(tree, directory):
    """Yields file, place, key and kind of each mutant of a run."""
    for outcome in json.loads((directory / "outcomes.json").read_text())["outcomes"]:
        log = directory / outcome["log_path"]
        if outcome["scenario"] == "Baseline":
            if outcome["summary"] != "Success":
                sys.exit(f"error: the tests fail without a mutant; next: read {log}")
            continue
        mutant = outcome["scenario"]["Mutant"]
        file = posixpath.normpath(mutant["file"])
        start = mutant["span"]["start"]
        place = (start["line"], start["column"])
        # The name begins with file:line:column, which every edit above it changes.
        name = mutant["name"].removeprefix(f"{mutant['file']}:{start['line']}:{start['column']}: ")
        text = (tree / file).read_text().splitlines()[start["line"] - 1].strip()
        kind = KINDS[outcome["summary"]]
        # SIGXCPU, for which cargo has no name.
        if kind == "killed" and "(signal: 24" in log.read_text():
            kind = "endless"
        yield file, place, (f"{file}: {name}", text), kind


def equivalents(path):
    """The keys of the list, each with its reason."""
    found = {}
    text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("#"))
    for paragraph in filter(str.strip, text.split("\n\n")):
        name, line, *reason = (part.strip() for part in paragraph.strip().splitlines())
        if not reason:
            sys.exit(f"error: {path}: no reason for {name}; next: say why nothing can see it")
        found[name, line] = " ".join(reason)
    return found


def main():
    listed = equivalents(Path(sys.argv[1]))
    tree = Path(sys.argv[2])
    found = {}
    for directory in filter(Path.is_dir, map(Path, sys.argv[3:])):
        for file, place, key, kind in mutants(tree, directory):
            found.setdefault(file, {})[place, key] = kind
    if not found:
        sys.exit("error: no mutants; next: read what host/src/lib.rs includes")

    unused = dict(listed)
    survivors = []
    table = {}
    for file, of_file in sorted(found.items()):
        for (place, key), kind in sorted(of_file.items()):
            if kind == "survived" and key in listed:
                kind = "equivalent"
                unused.pop(key, None)
            if kind == "survived":
                survivors.append((file, place[0], key))
            table.setdefault(file, Counter())[kind] += 1

    width = max(map(len, table))
    total = sum(table.values(), Counter())
    print(f"{'':{width}}" + "".join(f"{column:>12}" for column in COLUMNS))
    for file, row in [*table.items(), ("", total)]:
        print(f"{file:{width}}" + "".join(f"{row[column]:12}" for column in COLUMNS))
    for file, line, (name, text) in survivors:
        print(f"not ok {file}:{line}:{name.removeprefix(file + ':')}\n       {text}")
    # Left in, it would excuse the same change if a test loses sight of it later.
    for name, text in unused:
        print(f"not ok listed as equivalent, but did not survive: {name}\n       {text}")

    failed = len(survivors) + len(unused)
    passed = total["killed"] + total["endless"]
    print(f"{passed} passed, {failed} failed, {total['unviable']} skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
