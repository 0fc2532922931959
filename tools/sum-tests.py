#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up meson's testlog files: failures and skips with their reasons, then the one last line.

A program that speaks TAP counts as many tests as it has; any other counts as one.  A program that
fails as a whole (crash, time-out, wrong plan) counts as a failure even if each of its tests passed.
"""
import json
import re
import sys

RESULT = re.compile(r"^(not )?ok\b(.*)$")


def last_line(record):
    for stream in ("stdout", "stderr"):
        lines = [line.strip() for line in record.get(stream, "").splitlines() if line.strip()]
        if lines:
            return lines[-1]
    return "no reason given"


def count(record):
    """(passed, failed, skipped) of one program."""
    result = record["result"]
    if result == "SKIP":
        return 0, 0, 1
    passed = failed = 0
    for line in record.get("stdout", "").splitlines():
        match = RESULT.match(line)
        if match and match.group(1):
            failed += 1
        elif match:
            passed += 1
    if result in ("OK", "EXPECTEDFAIL"):
        return max(passed, 1), failed, 0
    return passed, max(failed, 1), 0


def main(paths):
    total = [0, 0, 0]
    for path in paths:
        try:
            with open(path, encoding="utf-8") as f:
                records = [json.loads(line) for line in f if line.strip()]
        except (OSError, ValueError) as err:
            print(f"no result of a suite: {err}")
            total[1] += 1
            continue
        for record in records:
            numbers = count(record)
            total = [a + b for a, b in zip(total, numbers)]
            if numbers[1]:
                print(f"failed: {record['name']} ({record['result']}, see {path})")
            if numbers[2]:
                print(f"skipped: {record['name']}: {last_line(record)}")
    if total[0] + total[1] == 0:
        print("no test was run")
        total[1] += 1
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
