#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What recording costs the program that is recorded.

One worker computes and awaits without pause, other threads wait.  Its progress is compared before,
during and after a recording, so that the machine's own changes show as the difference of before and
after."""
import os
import re
import statistics
import threading
import time

from bench_common import run
from bench_load import Flood, flood_program

SECONDS = 6
AWAITS = (1_000, 10_000, 100_000)
THREADS = (10, 200, 1_000)


class Watch(threading.Thread):
    """Reads the workload's lines: (our clock, what it has done)."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.points = process, []
        self.start()

    def run(self):
        for line in self.process.stdout:
            words = line.split()
            if words and words[0] == "count":
                self.points.append((float(words[2]), int(words[1])))

    def rate(self, begin, end):
        """Awaits a second between two numbers of points."""
        (t0, n0), (t1, n1) = self.points[begin], self.points[end]
        return (n1 - n0) / (t1 - t0)


class Loss:
    """What a recording took from the worker: a share of its throughput, and by how much the
    undisturbed rate before and after differed; and the run of the recording."""

    def __init__(self, share, drift, done):
        self.share, self.drift, self.done = share, drift, done


def lost(args, program, awaits, threads, command):
    """Of a new worker, to a recording of some seconds; command: what records it, of its pid."""
    with Flood(program, "work", 10 * SECONDS, awaits, threads) as target:
        watch = Watch(target.process)
        while len(watch.points) < 5:
            time.sleep(0.05)
        first = len(watch.points) - 1
        time.sleep(SECONDS / 2)
        begin = len(watch.points) - 1
        done = run(args, command(target.pid))
        end = len(watch.points) - 1
        # The end of the session includes the rundown: a pause of its own, seen in the rate as well.
        time.sleep(SECONDS / 2)
        last = len(watch.points) - 1
        before, during, after = (watch.rate(first, begin), watch.rate(begin, end),
                                 watch.rate(end + 1, last))
    quiet = (before + after) / 2
    return Loss(1 - during / quiet, abs(before - after) / quiet, done)


def measure(args, program, awaits, threads, options):
    """Loss of throughput in percent, drift of the machine in percent, TPL given up."""
    path = os.path.join(args.folder, "cost.nettrace")
    loss = lost(args, program, awaits, threads, lambda pid: [
        args.program, "collect", "-p", str(pid), "--duration", f"{SECONDS}s", "-o", path, "--force",
        *options])
    os.remove(path)
    return (100 * loss.share, 100 * loss.drift,
            bool(re.search(r"task events|TPL|TplEventSource", loss.done.output)))


def bench(args, _table):
    program = flood_program()
    if not program:
        print("left out: cost (it needs the workload)")
        return
    print(f"loss of throughput of a busy worker while it is recorded for {SECONDS} s with its rundown,"
          f" median of {args.runs} runs")
    for title, options in (("default profile", []), ("--profile tasks", ["--profile", "tasks"]),
                           ("--profile gc", ["--profile", "gc"])):
        print(f"{title}\n  {'awaits a second':>16}" + "".join(f"{n:>8} threads" for n in THREADS))
        for awaits in AWAITS:
            cells = []
            for threads in THREADS:
                runs = [measure(args, program, awaits, threads, options) for _ in range(args.runs)]
                loss = statistics.median(r[0] for r in runs)
                drift = statistics.median(r[1] for r in runs)
                mark = "*" if any(r[2] for r in runs) else " "
                cells.append(f"{loss:6.1f} % ±{drift:4.1f}{mark}")
            print(f"  {awaits:>16}  " + "  ".join(cells), flush=True)
    print("  ±: by how much the undisturbed rate before and after differed; *: restarted without task"
          " events")
