#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rules for the sources that no compiler knows: length of files and functions, licence line,
words that do not belong here, absolute paths of somebody's machine, headers' guards, sources that
no meson.build lists."""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_FILE = 800
MAX_FUNCTION = 60
# A dispatcher is one switch or table walk and may reach 80.
MAX_DISPATCHER = 80

BANNED_WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(home/\w+/|root/|work/|Users/)")
REGISTRIES = re.compile(r"\b(nuget|npmjs|debian|pypi|pythonhosted)\.(org|com)\b")
C_COMMENT = re.compile(r"^\s*//")


def files():
    try:
        out = subprocess.run(["git", "-C", TOP, "-c", "safe.directory=*", "ls-files"], check=True,
                             capture_output=True, text=True).stdout
        names = out.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = []
    if not names:  # a tarball
        for root, dirs, found in os.walk(TOP):
            dirs[:] = [d for d in dirs if d != ".git" and not d.startswith("build")]
            names += [os.path.relpath(os.path.join(root, n), TOP) for n in found]
    return [n for n in sorted(names) if os.path.isfile(os.path.join(TOP, n))]


def functions(lines):
    """(line number, name, body lines) of each function: '{' and '}' alone in column 0."""
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 3):start])
            name = re.findall(r"(\w+)\(", head)
            yield start + 1, name[-1] if name else "?", lines[start + 1:i]
            start = None


def check_c(name, lines, bad):
    if len(lines) > MAX_FILE:
        bad(1, f"{len(lines)} lines, at most {MAX_FILE}")
    if not lines or not re.match(r"/\* SPDX-License-Identifier: MIT \*/$", lines[0]):
        bad(1, "the first line is not '/* SPDX-License-Identifier: MIT */'")
    for number, function, body in functions(lines):
        limit = MAX_FUNCTION
        if any(re.match(r"\tswitch \(", line) for line in body):
            limit = MAX_DISPATCHER
        if len(body) > limit:
            bad(number, f"function {function} has {len(body)} lines, at most {limit}")
    for number, line in enumerate(lines, 1):
        if C_COMMENT.match(line):
            bad(number, "// comment")
        if line.rstrip() != line:
            bad(number, "space at the end of the line")
    if name.endswith(".h"):
        guard = re.sub(r"[^A-Za-z0-9]", "_", name).upper()
        guard = guard.removeprefix("SRC_")
        wanted = {guard, "SRC_" + guard}
        found = next((line.split()[1] for line in lines if line.startswith("#ifndef ")), None)
        if found not in wanted:
            bad(1, f"include guard {found}, expected {guard}")


def check_listed(names, bad):
    """Every source belongs to a build, every unit test to the tests that are run."""
    for name in names:
        folder, base = os.path.split(name)
        if folder.startswith("tests/unit"):
            base = base.removeprefix("test_").removesuffix(".c")
        if not name.endswith(".c") or folder.startswith("tools"):
            continue
        text = ""
        for path in (folder, os.path.dirname(folder)):
            if os.path.exists(os.path.join(TOP, path, "meson.build")):
                with open(os.path.join(TOP, path, "meson.build"), encoding="utf-8") as f:
                    text += f.read()
        stem = re.escape(base.removesuffix(".c"))
        if not re.search(rf"['/](test_)?({stem}|{stem.removeprefix('fuzz_')})(\.c)?'", text):
            bad(name, 1, "no meson.build lists it")


def main():
    faults = []
    names = files()
    if not names:
        print("no files found")
        return 1
    for name in names:
        def bad(number, what, name=name):
            faults.append(f"{name}:{number}: {what}")
        try:
            with open(os.path.join(TOP, name), encoding="utf-8") as f:
                lines = f.read().split("\n")
        except UnicodeDecodeError:
            continue
        if lines and lines[-1] == "":
            lines.pop()
        if name.endswith((".c", ".h")):
            check_c(name, lines, bad)
        if name == "tools/check-style.py" or name.startswith("fixtures/expected/"):
            continue
        for number, line in enumerate(lines, 1):
            for pattern in (BANNED_WORDS, MACHINE_PATHS, REGISTRIES):
                match = pattern.search(line)
                if match:
                    bad(number, f"'{match.group(0)}' does not belong into the sources")
    check_listed(names, lambda name, number, what: faults.append(f"{name}:{number}: {what}"))
    print("\n".join(faults) if faults else f"{len(names)} files are fine")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
