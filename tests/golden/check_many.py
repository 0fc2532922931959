#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A report of very many collections is short, and has the longest pauses first.

usage: check_many.py PROGRAM MANY_COLLECTIONS

Prints what it cost; that is no test.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

COUNT = 10000

faults = []


def check(what, ours, expected):
    if ours != expected:
        faults.append(f"{what}: {ours!r}, expected {expected!r}")


def run(program, *args):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, "report", *args], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"report {' '.join(args[:-1])}: {after.ru_utime - before.ru_utime:.3f} s of CPU, "
          f"{len(done.stdout)} bytes, {after.ru_maxrss} KiB at most so far")
    return done.stdout


def check_text(text):
    lines = text.splitlines()
    if len(lines) > 110:
        faults.append(f"the text has {len(lines)} lines")
    # the longest of all is the last hundredth one
    at = next(i for i, line in enumerate(lines) if "the collections with the longest" in line)
    numbers = [int(line.split()[0]) for line in lines[at + 2:at + 22]]
    check("the longest first", numbers, list(range(COUNT - 100, COUNT - 100 - 2000, -100)))
    if not any(f"... {COUNT - 20} more with " in line for line in lines):
        faults.append("the text does not say how many more there are")


def check_json(report, top):
    gc = report["gc"]
    check("count", gc["count"], COUNT)
    check("pauses", gc["pauses"], COUNT)
    check("rows", len(gc["collections"]) + gc["collections_not_shown"], COUNT)
    pauses = [row["pause_ms"] for row in gc["collections"]]
    if top:
        check("rows shown", len(pauses), top)
        check("longest first", pauses, sorted(pauses, reverse=True))
    else:
        starts = [row["start_ms"] for row in gc["collections"]]
        check("by time", starts, sorted(starts))
        if len(starts) < 4096:
            faults.append(f"only {len(starts)} collections were kept")
    # 100 long ones: 3 ms and their number in ns; all others 0.4 ms and their number.
    total = sum((0.4 if i % 100 else 3) + i / 1e6 for i in range(COUNT))
    if abs(gc["pause_total_ms"] - total) > 0.01:
        faults.append(f"pauses of {gc['pause_total_ms']} ms, expected {total}")


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    program, maker = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "many.nettrace")
        with open(path, "wb") as f:
            subprocess.run([maker, str(COUNT)], stdout=f, check=True)
        print(f"{os.path.getsize(path)} bytes")
        check_text(run(program, path))
        for top in (20, 0):
            check_json(json.loads(run(program, "--json", "--top", str(top), path)), top)
    print("\n".join(faults) if faults else "all right")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
