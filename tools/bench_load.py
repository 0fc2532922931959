#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Collecting from a program that writes events without end, against dotnet-trace collect.

Both get the same providers and buffer; ours analyses the events besides writing them.  At a steady
rate that both can take, processor time is compared; flat out, what is lost."""
import json
import os
import statistics
import subprocess
import sys

from bench_common import mib, peak, run, time_text

SECONDS = 8
STEADY = 50_000  # events a second of each of 4 threads
PROVIDERS = ",".join((
    "Flood:0xffffffff:4", "Microsoft-DotNETCore-SampleProfiler:0:4",
    "System.Threading.Tasks.TplEventSource:0x5f:4", "Microsoft-Windows-DotNETRuntime:0x1000038019:4"))


def flood_program():
    """Path of the workload, or None where it cannot be built."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/live"))
    import flood  # pylint: disable=import-outside-toplevel
    try:
        return flood.program()
    except SystemExit:
        return None


class Flood:
    """The workload, running; killed at the end of the with block."""

    def __init__(self, program, *args):
        self.process = subprocess.Popen([program, *map(str, args)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline().split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()


def collect(args, program, per_second, ours):
    """One recording of a new process: how it ran, its events, its lost events."""
    path = os.path.join(args.folder, "load.nettrace")
    if os.path.exists(path):
        os.remove(path)
    with Flood(program, "events", 4 * SECONDS, 4, per_second) as target:
        if ours:
            command = [args.program, "collect", "-p", target.pid, "--duration", f"{SECONDS}s",
                       "--force", "--no-early-symbols", "-q"]
        else:
            command = [args.dotnet_trace, "collect", "-p", target.pid, "--duration",
                       f"00:00:00:{SECONDS:02}"]
        command += ["--buffersize", 256, "--providers", PROVIDERS, "-o", path]
        done = run(args, [str(word) for word in command])
    counted = subprocess.run([args.program, "events", "--count", "--json", path],
                             stdout=subprocess.PIPE, check=True)
    trace = json.loads(counted.stdout)["trace"]
    os.remove(path)
    return done, trace["events"], trace["events_lost"]


def side(args, program, per_second, title, table):
    rows = {True: [], False: []}
    for _ in range(args.runs):
        for ours in (True, False):
            rows[ours].append(collect(args, program, per_second, ours))
    print(title)
    for ours in (True, False):
        cpu = statistics.median(done.cpu_seconds for done, _, _ in rows[ours])
        events = statistics.median(n for _, n, _ in rows[ours])
        share = statistics.median(lost / (n + lost) for _, n, lost in rows[ours])
        table.row("drdotnet-trace, all analyzers" if ours else "dotnet-trace, to a file",
                  f"{time_text(cpu)} of processor, {mib(peak([d for d, _, _ in rows[ours]]))}, "
                  f"{events / 1e6:.2f} M events, {100 * share:.1f} % lost")
    return rows


def median_of(rows, value):
    return statistics.median(value(*row) for row in rows)


def bench(args, table):
    program = flood_program()
    if not program or not args.have_dotnet_trace:
        print("left out: load (it needs the workload and dotnet-trace)")
        return
    print(f"collect from 4 threads that write events, {SECONDS} s, median of {args.runs} runs")
    rows = side(args, program, STEADY, f"{4 * STEADY} events a second", table)
    cpu = [median_of(rows[ours], lambda d, n, lost: d.cpu_seconds / n) for ours in (True, False)]
    table.row("ratio of processor time for an event", f"{cpu[0] / cpu[1]:.2f}", "<= 1",
              cpu[0] <= cpu[1])
    memory = [peak([d for d, _, _ in rows[ours]]) for ours in (True, False)]
    table.row("ratio of memory", f"{memory[0] / memory[1]:.2f}", "<= 0.33",
              memory[0] * 3 <= memory[1])
    lost = [max(lost for _, _, lost in rows[ours]) for ours in (True, False)]
    table.row("lost events", f"{lost[0]} and {lost[1]}", "no more than it", lost[0] <= lost[1])
    rows = side(args, program, 0, "as many events as they can", table)
    cpu = [median_of(rows[ours], lambda d, n, lost: d.cpu_seconds / n) for ours in (True, False)]
    table.row("ratio of processor time for an event", f"{cpu[0] / cpu[1]:.2f}", "<= 1",
              cpu[0] <= cpu[1])
    share = [median_of(rows[ours], lambda d, n, lost: lost / (n + lost)) for ours in (True, False)]
    table.row("lost share", f"{100 * share[0]:.1f} % and {100 * share[1]:.1f} %",
              "no more than it", share[0] <= share[1] + 0.01)
