#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A walk of a heap of ten million objects, against dotnet-gcdump collect.

Ours finds the pending async chains, dotnet-gcdump writes a .gcdump: both read the same events.  What
the runtime needs for its walk is the time in which the program stands still."""
import json
import os
import statistics
import subprocess
import sys

from bench_common import mib, peak, run, time_text

OBJECTS = 10_000_000
MAX_BYTES = 450 << 20
MAX_AN_OBJECT = 48


def workload():
    """The class that runs it, or None where it cannot be built."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/live"))
    import heap_program  # pylint: disable=import-outside-toplevel
    try:
        heap_program.program()
    except SystemExit:
        return None
    return heap_program.Heap


def ours(args, pid, more):
    report = os.path.join(args.folder, "heap.json")
    done = run(args, [args.program, "collect", "-p", str(pid), "--heap", "--walks", "1", "-q",
                      "--json", "--report", report, "--force", *more])
    with open(report, encoding="utf-8") as f:
        heap = json.load(f)["tasks"]["heap"]["walks"][0]
    return done, heap


def theirs(args, tool, pid):
    path = os.path.join(args.folder, "heap.gcdump")
    if os.path.exists(path):
        os.remove(path)
    done = run(args, [tool, "collect", "-p", str(pid), "-o", path, "-t", "600"])
    os.remove(path)
    return done


def gcdump_tool():
    """dotnet-gcdump, installed once; None where it cannot be had."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    folder = os.path.join(cache, "drdotnet-trace", "dotnet-gcdump")
    path = os.path.join(folder, "dotnet-gcdump")
    if not os.path.exists(path):
        subprocess.run(["dotnet", "tool", "install", "--tool-path", folder, "dotnet-gcdump"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return path if os.path.exists(path) else None


def bench(args, table):
    heap = workload()
    if not heap:
        print("left out: heap (the workload cannot be built here)")
        return
    tool = gcdump_tool()
    path = os.path.join(args.folder, "heap.nettrace")
    kept, rows, other = [], [], []
    for _ in range(args.runs):
        with heap("objects", OBJECTS) as target:
            rows.append(ours(args, target.pid, ["-o", "none"]))
            if tool:
                other.append(theirs(args, tool, target.pid))
            kept.append(ours(args, target.pid, ["-o", path]))
            os.remove(path)
    print(f"one walk of {rows[0][1]['objects']:,} objects, {rows[0][1]['edges']:,} references, "
          f"median of {args.runs} runs")
    pause = statistics.median(walk["pause_ms"] for _, walk in rows) / 1000
    for title, runs in (("drdotnet-trace collect --heap", rows),
                        ("the same, with the trace in a file", kept)):
        table.row(title, f"{time_text(statistics.median(d.seconds for d, _ in runs))}, "
                  f"{time_text(statistics.median(d.cpu_seconds for d, _ in runs))} of processor, "
                  f"{mib(peak([d for d, _ in runs]))}")
    table.row("of these the program stands still", time_text(pause))
    an_object = max(walk["memory_bytes"] / walk["objects"] for _, walk in rows)
    table.row("graph, bytes an object, references included", f"{an_object:.1f}",
              f"<= {MAX_AN_OBJECT}", an_object <= MAX_AN_OBJECT)
    memory = peak([d for d, _ in rows + kept])
    table.row("memory", mib(memory), f"<= {mib(MAX_BYTES)}", memory <= MAX_BYTES)
    cpu = statistics.median(d.cpu_seconds for d, _ in rows)
    table.row("our processor time against the walk", f"{time_text(cpu)} and {time_text(pause)}",
              "no more than it", cpu <= pause)
    if not tool:
        print("left out: dotnet-gcdump (it cannot be had here)")
        return
    seconds = statistics.median(d.seconds for d in other)
    table.row("dotnet-gcdump collect", f"{time_text(seconds)}, "
              f"{time_text(statistics.median(d.cpu_seconds for d in other))} of processor, "
              f"{mib(peak(other))}")
    table.row("its memory against ours", f"{peak(other) / memory:.1f} times")
    table.row("its time against ours",
              f"{seconds / statistics.median(d.seconds for d, _ in rows):.1f} times")
