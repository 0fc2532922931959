#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a sample costs: us, and the process that is sampled.

Our own cost is the processor time of a whole run of 'sample' on 'shop mixed'.  Beside it, in turn,
'collect' records the same for as long into a file of the same form, with its report: that is what
reading, analysing and packing the session's data costs.  The rest is the price of choosing processes,
of the store and of cleaning up in it.

The process's cost is the work that a busy worker does not get done, compared with the undisturbed time
before and after, as in bench_cost."""
import os
import shutil
import statistics
import subprocess

from bench_common import alternately, time_text
from bench_cost import lost
from bench_load import flood_program

SAMPLES = 20
SECONDS = 5  # the default of sample
GOAL = 0.06  # seconds of processor time beyond the session's data
EVERY = 60  # what the loss is put in relation to
THREADS = (10, 200)


def shop():
    """Path of the workload, or None where it cannot be built."""
    here = os.path.dirname(os.path.abspath(__file__))
    r = subprocess.run([os.path.join(here, "workloads"), "--path", "net10"], stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL, text=True, check=False)
    return os.path.join(r.stdout.split("\n")[0], "shop") if r.returncode == 0 else None


def cpu(runs):
    return statistics.median(r.cpu_seconds for r in runs)


def own_cost(args, table, program, store):
    trace = os.path.join(args.folder, "sample.nettrace.zst")
    report = os.path.join(args.folder, "sample.json")
    args.runs = SAMPLES
    with subprocess.Popen([program, "mixed", str((SAMPLES + 1) * 4 * (SECONDS + 2))],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as target:
        try:
            ours, data = alternately(args, [
                [args.program, "sample", "-p", str(target.pid), "--duration", f"{SECONDS}s", "-q",
                 "--store", store],
                # What sample records: without the runtime's sampler where the kernel's is there.
                [args.program, "collect", "-p", str(target.pid), "--duration", f"{SECONDS}s", "-q",
                 "--cpu-source", "perf", "-o", trace, "--force", "--json", "--report", report]])
        finally:
            target.kill()
    print(f"{SAMPLES} samples of 'shop mixed', {SECONDS} s each, medians of processor time")
    table.row("a sample, the whole of it", time_text(cpu(ours)))
    table.row("the session's data alone (collect)", time_text(cpu(data)))
    rest = statistics.median(a.cpu_seconds - b.cpu_seconds for a, b in zip(ours, data))
    table.row("a sample beyond that", time_text(rest), f"<= {time_text(GOAL)}", rest <= GOAL)
    for path in (trace, report):
        os.remove(path)


def target_cost(args, store):
    program = flood_program()
    if not program:
        print("left out: the process's cost (it needs the workload)")
        return
    print(f"work a busy worker does not get done for a sample of {SECONDS} s, median of 5 runs")
    for threads in THREADS:
        runs = [lost(args, program, 10_000, threads, lambda pid: [
            args.program, "sample", "-p", str(pid), "--duration", f"{SECONDS}s", "-q", "--store",
            store]) for _ in range(5)]
        share = statistics.median(r.share for r in runs)
        drift = statistics.median(r.drift for r in runs)
        seconds = statistics.median(r.share * r.done.seconds for r in runs)
        print(f"  {threads:>5} threads: {100 * share:.1f} % ±{100 * drift:.1f} of the time of the"
              f" sample, {time_text(seconds)}; with --every {EVERY}s"
              f" {100 * seconds / EVERY:.2f} % of its throughput", flush=True)


def bench(args, table):
    if subprocess.run([args.program, "help", "sample"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("left out: sample (built without SQLite)")
        return
    program = shop()
    if not program:
        print("left out: sample (it needs the workload)")
        return
    store = os.path.join(args.folder, "sample-store")
    runs = args.runs
    try:
        own_cost(args, table, program, store)
        target_cost(args, store)
    finally:
        args.runs = runs
        shutil.rmtree(store, ignore_errors=True)
