#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What collect writes behind the end of a trace is nobody's business but ours: TraceEvent and
dotnet-trace read such files as before, of both formats."""

import os
import subprocess

from live import TOP, check, done, events, run, scratch, shop
from reference import reader, reference

FOOTER = b"\x9ddrde\r\n\x1a"
TOOL = os.path.expanduser("~/.cache/drdotnet-trace/dotnet-tools/dotnet-trace")


def split(path):
    """The trace, and the block behind it."""
    with open(path, "rb") as f:
        data = f.read()
    if not check(data[-8:] == FOOTER, path + " ends in a block", data[-24:]):
        return data, b""
    size = int.from_bytes(data[-24:-16], "little")
    return data[:-size], data[-size:]


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def top_methods(path):
    r = subprocess.run([TOOL, "report", path, "topN", "-n", "20"], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, check=False)
    # It leaves a file with its conversion beside the trace.
    return r.returncode, r.stdout.replace(os.path.basename(path), "")


def compare(name, folder, trace, block):
    alone = write(os.path.join(folder, "alone.nettrace"), trace)
    both = write(os.path.join(folder, "behind.nettrace"), trace + block)
    want, got = reference(program, alone), reference(program, both)
    check(want == got and want[1] > 0, name + ": TraceEvent reads the same", want[1:], got[1:])
    ours = events(both)[0]
    check(ours.get("events") == want[1], name + ": so do we", ours.get("events"), want[1])
    if os.path.exists(TOOL):
        want, got = top_methods(alone), top_methods(both)
        check(want == got and want[0] == 0, name + ": dotnet-trace report topN", want, got)
    else:
        print("dotnet-trace is not there: its report is not compared")


program = reader()
with scratch() as place:
    recorded = os.path.join(place, "v4.nettrace")
    with shop("net10", "cpu") as app:
        r = run("collect", "-p", app.pid, "--duration", "1s", "--profile", "cpu", "-o", recorded)
    check(r.code == 0, "recorded", r)
    v4, measured = split(recorded)
    if not measured:
        done()
    compare("version 4", place, v4, measured)
    with open(os.path.join(TOP, "fixtures", "synthetic-v6.nettrace"), "rb") as f6:
        compare("version 6", place, f6.read(), measured)
done()
