#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check-compile.py BUILD COMPILER [headers]

Compiles every source of the build again with COMPILER and -Werror (only the syntax pass, nothing is
written), or, with "headers", every header of the project alone.  Exit code 77, with the reason,
where COMPILER is not installed."""
import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("nettrace", "analyzers", "src", "tests")  # and those in them
WRAPPERS = ("ccache", "sccache", "distcc")  # meson puts one before the compiler where it is installed
# Of the build's own compiler, for its output, or for linking.
DROP_WITH_VALUE = ("-o", "-MQ", "-MF", "-c")
DROP = ("-MD", "-Werror")
HEADER_ONLY = ["-Wno-unused-function", "-Wno-pragma-once-outside-header"]


def clean(command):
    """The arguments of a compiler call that say how to compile, without what to and where to."""
    words, out = shlex.split(command), []
    if os.path.basename(words[0]) in WRAPPERS:
        del words[0]
    skip = True  # the compiler itself
    for word in words:
        if skip:
            skip = False
        elif word in DROP_WITH_VALUE:
            skip = True
        elif word not in DROP and not word.startswith("-fsanitize"):
            out.append(word)
    return out


def run(job):
    command, folder = job
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def headers(commands, compiler):
    # What each folder's sources are compiled with, the strictest for those that have any.
    by_folder = {}
    for entry in commands:
        name = os.path.relpath(os.path.join(entry["directory"], entry["file"]), TOP)
        by_folder.setdefault(os.path.dirname(name), entry)
    for folder, entry in sorted(by_folder.items()):
        path = os.path.join(TOP, folder)
        if folder.split("/")[0] not in FOLDERS or not os.path.isdir(path):
            continue
        flags = [w for w in clean(entry["command"]) if not w.endswith("banned.h")]
        flags = [w for w in flags if w != "-include"]
        for name in sorted(os.listdir(path)):
            if name.endswith(".h"):
                yield ([compiler, *flags, *HEADER_ONLY, "-Werror", "-fsyntax-only",
                        "-fdiagnostics-color=never", "-x", "c",
                        os.path.join(path, name)], entry["directory"])


def sources(commands, compiler):
    for entry in commands:
        yield ([compiler, *clean(entry["command"]), "-Werror", "-fsyntax-only",
                "-fdiagnostics-color=never", entry["file"]],
               entry["directory"])


def main():
    build, compiler = sys.argv[1:3]
    if not shutil.which(compiler):
        print(f"skipped: {compiler} is not installed")
        return 77
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = [c for c in json.load(f) if c["file"].endswith(".c")]
    make = headers if sys.argv[3:] == ["headers"] else sources
    jobs = list(make(commands, compiler))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(run, jobs))
    faults = [output for code, output in results if code != 0]
    print("\n".join(faults) if faults else f"{len(jobs)} files compile without a warning")
    return 1 if faults or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
