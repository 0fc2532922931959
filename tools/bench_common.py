#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the parts of tools/bench share: runs that are measured, and the lines that are printed."""
import argparse
import os
import platform
import statistics
import subprocess
import sys


class Run:
    """What one run of a program took."""

    def __init__(self, seconds, peak_bytes, cpu_seconds, output):
        self.seconds, self.peak_bytes, self.output = seconds, peak_bytes, output
        self.cpu_seconds = cpu_seconds


def run(args, command, stdin=subprocess.DEVNULL):
    """The command, to its end; anything but exit code 0 ends the benchmark."""
    result = os.path.join(args.folder, "result")
    done = subprocess.run([args.measure, result, *command], stdin=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=True)
    with open(result, encoding="utf-8") as f:
        seconds, peak_bytes, code, cpu_seconds = f.read().split()[:4]
    if code != "0":
        sys.exit(f"bench: '{' '.join(command)}' exited with {code}: {done.stdout[-500:]}")
    return Run(float(seconds), int(peak_bytes), float(cpu_seconds), done.stdout)


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
