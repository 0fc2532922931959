#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_cli.py [--update] PROGRAM [NAME...]

Runs each cli/NAME.cmd with /bin/sh and compares what it prints and returns with NAME.stdout,
NAME.stderr and NAME.exit (absent: nothing, nothing, 0).  The script runs in an empty folder, with
the program in its PATH as drdotnet-trace and the fixtures in ./fixtures.  --update writes the
files instead: a person reads the difference."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cli")
FIXTURES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "fixtures")
SECONDS = 60


def run(program, script):
    with tempfile.TemporaryDirectory() as folder:
        bin_folder = os.path.join(folder, "bin")
        work = os.path.join(folder, "work")
        os.mkdir(bin_folder)
        os.mkdir(work)
        os.symlink(program, os.path.join(bin_folder, "drdotnet-trace"))
        os.symlink(FIXTURES, os.path.join(work, "fixtures"))
        env = {**os.environ, "PATH": bin_folder + ":" + os.environ["PATH"], "TERM": "dumb",
               "LC_ALL": "C", "TZ": "UTC", "PROGRAM": program}
        done = subprocess.run(["/bin/sh", script], cwd=work, env=env, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=SECONDS)
    return {"stdout": done.stdout, "stderr": done.stderr,
            "exit": b"%d\n" % done.returncode if done.returncode else b""}


def expected(base):
    found = {}
    for kind in ("stdout", "stderr", "exit"):
        try:
            with open(base + "." + kind, "rb") as f:
                found[kind] = f.read()
        except FileNotFoundError:
            found[kind] = b""
    return found


def update(base, result):
    for kind, text in result.items():
        if text:
            with open(base + "." + kind, "wb") as f:
                f.write(text)
        elif os.path.exists(base + "." + kind):
            os.remove(base + "." + kind)


def compare(number, name, want, got):
    wrong = [kind for kind in want if want[kind] != got[kind]]
    print(("not ok" if wrong else "ok") + f" {number} - {name}")
    for kind in wrong:
        for word, text in (("want", want[kind]), ("got", got[kind])):
            for line in text.decode("utf-8", "replace").splitlines() or [""]:
                print(f"# {kind} {word}: {line}")
    return not wrong


def main():
    args = sys.argv[1:]
    rewrite = "--update" in args
    args = [a for a in args if a != "--update"]
    program = os.path.abspath(args[0])
    names = args[1:] or sorted(n[:-4] for n in os.listdir(HERE) if n.endswith(".cmd"))
    good = True
    print(f"1..{len(names)}")
    for number, name in enumerate(names, 1):
        base = os.path.join(HERE, name)
        try:
            got = run(program, base + ".cmd")
        except subprocess.TimeoutExpired:
            print(f"not ok {number} - {name}\n# still running after {SECONDS} s")
            good = False
            continue
        if rewrite:
            update(base, got)
        good &= compare(number, name, expected(base), got)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
