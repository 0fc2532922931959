#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Damaged traces through the program itself: exit codes, messages, JSON, memory and time.

robust.c tries many more in one process; this sees what only the program shows.  Every case must end
with exit code 0, 1 or 3 within five seconds of processor time; 1 and 3 must name a byte; 0 and 3
must print valid JSON; and a release build must stay within 64 MiB."""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

MAX_SECONDS = 5
HANG_SECONDS = 60  # by the clock, on however busy a machine
MAX_BYTES = 64 << 20
COMMANDS = (
    ("report", "--json"),
    ("events", "--count", "--json"),
    ("events", "--format", "ndjson", "--stacks"),
)
BASES = (
    "synthetic-v4.nettrace", "synthetic-v6.nettrace", "v6-cpu-net10.nettrace.zst",
    "exceptions-net8.nettrace.zst", "stuck-net31.nettrace.zst", "v3-mixed-net8.netperf.zst",
)


def unpacked(path):
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout
    with open(path, "rb") as f:
        return f.read()


def damage(data, rng):
    """A short name of what was done, and the damaged bytes."""
    kind = rng.choice(("cut", "cut", "bytes", "bytes", "hole", "swap", "number"))
    at = rng.randrange(len(data))
    if kind == "cut":
        return f"cut at {at}", data[:at]
    if kind == "hole":
        n = rng.randrange(1, 64)
        return f"{n} bytes out at {at}", data[:at] + data[at + n:]
    if kind == "swap":
        return f"halves swapped at {at}", data[:40] + data[at:] + data[40:at]
    out = bytearray(data)
    if kind == "number":
        value = rng.choice((b"\xff" * 4, b"\x00\x00\x00\x80", b"\xff\xff\xff\x7f", b"\x00" * 4))
        out[at:at + 4] = value
        return f"{value.hex()} at {at}", bytes(out)
    count = rng.randrange(1, 20)
    for _ in range(count):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return f"{count} bytes changed", bytes(out)


class Checker:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.cases = 0
        self.faults = []

    def fault(self, what):
        self.faults.append(what)
        print(what, flush=True)
        if len(self.faults) == 20:
            sys.exit(1)

    def run(self, command, data, name):
        path, result = os.path.join(self.folder, "case"), os.path.join(self.folder, "result")
        with open(path, "wb") as f:
            f.write(data)
        words = [self.args.measure, result, self.args.program, command[0], path, *command[1:]]
        self.cases += 1
        try:
            done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL,
                                  timeout=HANG_SECONDS, check=True)
        except subprocess.TimeoutExpired:
            self.fault(f"{name}: {' '.join(command)}: hangs")
            return
        with open(result, encoding="utf-8") as f:
            _, peak, code, seconds = f.read().split()
        err = done.stderr.decode("utf-8", "replace")
        if float(seconds) > MAX_SECONDS:
            self.fault(f"{name}: {' '.join(command)}: takes {seconds} s")
        for why in self.check(command, int(code), done.stdout, err, int(peak)):
            self.fault(f"{name}: {' '.join(command)}: {why}; standard error: {err[:300]!r}")

    def check(self, command, code, out, err, peak):
        if code not in (0, 1, 3):
            yield f"exit code {code}"
            return
        if code != 0 and not re.search(r"\bbyte (0x[0-9a-f]+|\d+)", err):
            yield f"exit code {code} without a byte"
        if not self.args.sanitized and peak > MAX_BYTES:
            yield f"{peak} bytes resident"
        if code == 1:
            return
        try:
            text = out.decode("utf-8")
            documents = text.splitlines() if "ndjson" in command else [text]
            for document in documents:
                json.loads(document, parse_constant=lambda c: 1 / 0)
        except (ValueError, ZeroDivisionError) as bad:
            yield f"exit code {code} with bad JSON ({bad})"


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "measure", "fixtures"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--sanitized", action="store_true")
    args = parser.parse_args()
    count = 1000 if os.environ.get("DRD_LONG") == "1" else 20 if args.sanitized else 40
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(args, folder)
        for base in BASES:
            data = unpacked(os.path.join(args.fixtures, base))
            for seed in range(count):
                rng = random.Random(f"{base} {seed}")
                what, bad = damage(data, rng)
                if seed % 10 == 9:  # damaged inside, or the packing itself cut
                    packed = subprocess.run(["zstd", "-qc1"], input=bad, check=True,
                                            capture_output=True).stdout
                    bad = packed if seed % 20 == 19 else packed[:rng.randrange(len(packed))]
                    what += ", packed"
                checker.run(COMMANDS[seed % len(COMMANDS)], bad, f"{base}, seed {seed}: {what}")
    print(f"{checker.cases} cases, {len(checker.faults)} faults")
    return 1 if checker.faults or checker.cases == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
