#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a runner would run of a CI file of Documentation/mm/dontcache-ci/, as a script of sh.

usage: ci_commands.py FILE [NAME=VALUE...]: with these values of the matrix

Knows of GitHub's and GitLab's language what those files use, and refuses the rest. Before the
commands come lines that say in which container they are to run, and where a tree is checked out.
"""

import itertools
import re
import sys
from pathlib import Path

import yaml


def expect(keys, known, where):
    """Refuse what a runner would not ignore."""
    unknown = set(keys) - set(known)
    if unknown:
        sys.exit(f"error: {where}: nothing is known here of {', '.join(map(str, sorted(unknown)))}")


def github(text, values):
    """A workflow with one job."""
    # YAML 1.1 takes the key "on" for a truth value.
    expect(text, ("name", True, "jobs"), "workflow")
    (job,) = text["jobs"].values()
    expect(job, ("runs-on", "container", "strategy", "steps"), "job")
    expect(job["strategy"], ("fail-fast", "matrix"), "strategy")
    matrix = {name: list(of) for name, of in job["strategy"]["matrix"].items()}
    expect(matrix, ("dir", "arch"), "matrix")
    yield f"# image {job['container']}"
    for step in job["steps"]:
        expect(step, ("run", "uses"), "step")
        if "uses" in step:
            expect([step["uses"]], ["actions/checkout@v4"], "uses")
            yield "# checkout"
            continue
        script = re.sub(
            r"\$\{\{ *matrix\.(\w+) *\}\}",
            lambda found: chosen(matrix, values, found[1]),
            step["run"],
        )
        yield f"({script.rstrip()}\n)"


def gitlab(text, values):
    """A pipeline with one job, whose tree is there from the start."""
    (job,) = text.values()
    expect(job, ("image", "parallel", "before_script", "script"), "job")
    (matrix,) = job["parallel"]["matrix"]
    expect(matrix, ("DIR", "ARCH"), "matrix")
    yield f"# image {job['image']}"
    yield "# checkout"
    for name in matrix:
        yield f"export {name}={quoted(chosen(matrix, values, name))}"
    yield from itertools.chain(job["before_script"], job["script"])


def chosen(matrix, values, name):
    """The value of the matrix that begins with what was asked for."""
    wanted = values.get(name.lower())
    for value in matrix[name]:
        if value.split()[0] == wanted:
            return value
    sys.exit(f"error: {name} cannot be {wanted}, but {', '.join(matrix[name])}")


def quoted(value):
    return "'" + value.replace("'", "'\\''") + "'"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    path = Path(sys.argv[1])
    values = dict(argument.split("=", 1) for argument in sys.argv[2:])
    text = yaml.safe_load(path.read_text(encoding="utf-8"))
    print("set -e")
    for line in {"github.yml": github, "gitlab.yml": gitlab}[path.name](text, values):
        print(line)


if __name__ == "__main__":
    main()
