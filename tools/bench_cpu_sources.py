#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What each source of CPU samples costs: the throughput of a busy program, and our own CPU time."""
import os
import statistics

from bench_cost import SECONDS, lost
from bench_load import flood_program

AWAITS = 1_000
THREADS = (10, 200, 1_000)
SOURCES = ("eventpipe", "proc", "perf", "auto")


def measure(args, program, threads, source):
    """Loss of throughput in percent, drift of the machine in percent, our CPU in percent of one."""
    path = os.path.join(args.folder, "cpu-sources.nettrace")
    loss = lost(args, program, AWAITS, threads, lambda pid: [
        args.program, "collect", "-p", str(pid), "--duration", f"{SECONDS}s", "-o", path, "--force",
        "--quiet", "--profile", "cpu", "--cpu-source", source])
    os.remove(path)
    if source == "perf" and "takes no CPU samples" in loss.done.output:
        return None
    return (100 * loss.share, 100 * loss.drift,
            100 * loss.done.cpu_seconds / loss.done.seconds)


def bench(args, _table):
    program = flood_program()
    if not program:
        print("left out: cpu-sources (it needs the workload)")
        return
    print(f"a busy worker that is recorded for {SECONDS} s with its rundown, --profile cpu: its loss of"
          f" throughput, and our CPU in percent of one processor; median of {args.runs} runs")
    print(f"  {'source':<10}" + "".join(f"{n:>18} threads" for n in THREADS))
    for source in SOURCES:
        cells = []
        for threads in THREADS:
            runs = [measure(args, program, threads, source) for _ in range(args.runs)]
            if None in runs:
                cells.append(f"{'not allowed here':>26}")
                continue
            loss, drift, cpu = (statistics.median(r[i] for r in runs) for i in range(3))
            cells.append(f"{loss:6.1f} % ±{drift:4.1f}, {cpu:5.1f} %")
        print(f"  {source:<10}  " + "  ".join(cells), flush=True)
    print("  ±: by how much the undisturbed rate before and after differed")
