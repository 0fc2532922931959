#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The measuring half of tools/bench; see there."""
import argparse
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys


class Run:
    """What one run of a program took."""

    def __init__(self, seconds, peak_bytes, output):
        self.seconds, self.peak_bytes, self.output = seconds, peak_bytes, output


def run(args, command, stdin=subprocess.DEVNULL):
    result = os.path.join(args.folder, "result")
    done = subprocess.run([args.measure, result, *command], stdin=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=True)
    with open(result, encoding="utf-8") as f:
        seconds, peak_bytes, code = f.read().split()[:3]
    if code != "0":
        sys.exit(f"bench: '{' '.join(command)}' exited with {code}: {done.stdout[-500:]}")
    return Run(float(seconds), int(peak_bytes), done.stdout)


def alternately(args, commands, before=lambda: None):
    """The runs of each command; each round runs every command once, after one round to warm up."""
    results = [[] for _ in commands]
    for round_number in range(args.runs + 1):
        for result, command in zip(results, commands):
            before()
            done = run(args, command)
            if round_number > 0:
                result.append(done)
    return results


def median(runs):
    return statistics.median(r.seconds for r in runs)


def peak(runs):
    return max(r.peak_bytes for r in runs)


def mib(size):
    return f"{size / (1 << 20):.1f} MiB"


def time_text(seconds):
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


class Table:
    def __init__(self):
        self.missed = 0

    def row(self, what, value, goal=None, met=True):
        verdict = "" if goal is None else f"   goal {goal}: {'met' if met else 'MISSED'}"
        self.missed += not met
        print(f"  {what:<46} {value}{verdict}", flush=True)

    def ratio(self, what, ours, theirs, at_least):
        self.row(what, f"{theirs / ours:.1f} times as fast", f">= {at_least}",
                 theirs / ours >= at_least)


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{model}, {os.cpu_count()} processors, Linux {platform.release()}"


def make_big(args, path):
    small = os.path.join(args.fixtures, "lost-net10.nettrace.zst")
    with open(path + ".part", "wb") as out:
        unzip = subprocess.Popen(["zstd", "-dcq", small], stdout=subprocess.PIPE)
        subprocess.run([args.big_trace, str(args.megabytes)], stdin=unzip.stdout, stdout=out,
                       check=True)
        unzip.wait()
    os.rename(path + ".part", path)


def bench_decode(args, table, big):
    ours = [args.program, "events", "--count", big]
    commands = [ours]
    if args.have_refdump:
        commands.append([args.refdump, "raw", big])
    results = alternately(args, commands)
    print("decode every event (events --count)")
    table.row("drdotnet-trace", f"{time_text(median(results[0]))}, {mib(peak(results[0]))}",
              "<= 16 MiB", peak(results[0]) <= 16 << 20)
    if not args.have_refdump:
        return
    # Its own clock, which leaves out the start of its runtime.
    inner = statistics.median(float(re.search(r"sec ([\d.]+)", r.output).group(1))
                              for r in results[1])
    table.row("TraceEvent (EventPipeEventSource)",
              f"{time_text(inner)} decoding, {time_text(median(results[1]))} in all, "
              f"{mib(peak(results[1]))}")
    table.ratio("ratio, its decoding against our whole run", median(results[0]), inner, 6)


def bench_report(args, table, title, path, at_least, limit_bytes, limit_seconds=None):
    copy = os.path.join(args.folder, "report.nettrace")

    def clean():
        if os.path.exists(copy + ".etlx"):
            os.remove(copy + ".etlx")

    if os.path.exists(copy):
        os.remove(copy)
    if path.endswith(".zst"):
        subprocess.run(["zstd", "-dqf", path, "-o", copy], check=True)
    else:
        os.link(path, copy)
    commands = [[args.program, "report", copy]]
    if args.have_dotnet_trace:
        commands.append([args.dotnet_trace, "report", copy, "topN"])
    results = alternately(args, commands, clean)
    clean()
    os.remove(copy)
    print(title)
    good = peak(results[0]) <= limit_bytes and (
        limit_seconds is None or median(results[0]) <= limit_seconds)
    goal = f"<= {mib(limit_bytes)}" + (f", {time_text(limit_seconds)}" if limit_seconds else "")
    table.row("drdotnet-trace", f"{time_text(median(results[0]))}, {mib(peak(results[0]))}", goal,
              good)
    if args.have_dotnet_trace:
        table.row("dotnet-trace report topN",
                  f"{time_text(median(results[1]))}, {mib(peak(results[1]))}")
        table.ratio("ratio", median(results[0]), median(results[1]), at_least)
    return peak(results[0])


def bench_ten_times(args, table, short_peak):
    small = os.path.join(args.fixtures, "lost-net10.nettrace.zst")
    unzip = subprocess.Popen(["zstd", "-dcq", small], stdout=subprocess.PIPE)
    make = subprocess.Popen([args.big_trace, str(args.megabytes * 10)], stdin=unzip.stdout,
                            stdout=subprocess.PIPE)
    done = run(args, [args.program, "report", "-"], stdin=make.stdout)
    make.stdout.close()
    if make.wait() != 0 or unzip.wait() != 0:
        sys.exit("bench: cannot make the trace")
    print(f"report on {args.megabytes * 10} MB, from a pipe")
    table.row("drdotnet-trace", f"{time_text(done.seconds)}, {mib(done.peak_bytes)}",
              "flat: <= 4 MiB more", done.peak_bytes <= short_peak + (4 << 20))


def bench_ps(args, table):
    commands = [[args.program, "ps"]]
    if args.have_dotnet_trace:
        commands.append([args.dotnet_trace, "ps"])
    results = alternately(args, commands)
    print("ps")
    table.row("drdotnet-trace", f"{time_text(median(results[0]))}, {mib(peak(results[0]))}")
    if args.have_dotnet_trace:
        table.row("dotnet-trace ps",
                  f"{time_text(median(results[1]))}, {mib(peak(results[1]))}")
        table.ratio("ratio", median(results[0]), median(results[1]), 10)


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "measure", "big-trace", "fixtures", "folder", "refdump",
                 "dotnet-trace"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=350)
    parser.add_argument("--ten-times", action="store_true")
    args = parser.parse_args()
    have_dotnet = shutil.which("dotnet") is not None
    args.have_refdump = have_dotnet and os.access(args.refdump, os.X_OK)
    args.have_dotnet_trace = have_dotnet and os.access(args.dotnet_trace, os.X_OK)

    big = os.path.join(args.folder, f"big-{args.megabytes}.nettrace")
    if not os.path.exists(big):
        make_big(args, big)
    print(f"machine: {machine()}")
    print(f"trace: {os.path.getsize(big) / 1e6:.0f} MB; median of {args.runs} runs, alternately")
    if not args.have_refdump:
        print("left out: TraceEvent (no .NET SDK, or its packages cannot be had here)")
    if not args.have_dotnet_trace:
        print("left out: dotnet-trace (no .NET SDK, or its packages cannot be had here)")
    table = Table()
    bench_decode(args, table, big)
    short_peak = bench_report(args, table, "full report", big, 10, 64 << 20)
    if args.ten_times:
        bench_ten_times(args, table, short_peak)
    bench_report(args, table, "report on a trace of 350 KB",
                 os.path.join(args.fixtures, "cpu-net10.nettrace.zst"), 20, 64 << 20, 0.020)
    bench_ps(args, table)
    print("all goals met" if table.missed == 0 else f"{table.missed} goals missed")


if __name__ == "__main__":
    main()
