#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reading traces, and listing processes, against Microsoft's reader and tool."""
import os
import re
import statistics
import subprocess
import sys

from bench_common import alternately, median, mib, peak, run, time_text


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


def bench(args, table):
    big = os.path.join(args.folder, f"big-{args.megabytes}.nettrace")
    if not os.path.exists(big):
        make_big(args, big)
    print(f"trace: {os.path.getsize(big) / 1e6:.0f} MB; median of {args.runs} runs, alternately")
    bench_decode(args, table, big)
    short_peak = bench_report(args, table, "full report", big, 10, 64 << 20)
    if args.ten_times:
        bench_ten_times(args, table, short_peak)
    bench_report(args, table, "report on a trace of 350 KB",
                 os.path.join(args.fixtures, "cpu-net10.nettrace.zst"), 20, 64 << 20, 0.020)
    bench_ps(args, table)
