#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPU times measured through /proc: right methods, right times, nothing for those that wait; the
report of the file is the live one."""

import bisect
import datetime
import os
import threading
import time

from flood import program
from live import LONG, App, check, done, run, scratch, shop

SHARES = {"Shop.Cpu.Hot": 60, "Shop.Cpu.Warm": 30, "Shop.Cpu.Mild": 10}


class Times:
    """What /proc says of a thread's CPU, every 10 ms, in the background."""

    def __init__(self, pid, tid):
        self.path = "/proc/%d/task/%d/schedstat" % (pid, tid)
        self.at, self.ns = [], []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.follow)

    def follow(self):
        while not self.over.wait(0.01):
            with open(self.path, encoding="ascii") as f:
                self.ns.append(int(f.read().split()[0]))
            self.at.append(time.time())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.over.set()
        self.thread.join()

    def used_ms(self, begin, end):
        a, b = (min(bisect.bisect_left(self.at, t), len(self.at) - 1) for t in (begin, end))
        return (self.ns[b] - self.ns[a]) / 1e6


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def shares_are_right(target, cpu):
    """On a machine that is busy otherwise there are few samples, and the shares are rough."""
    tolerance = 4 if LONG or (cpu["samples_on_cpu"] or 0) >= 2000 else 10
    if LONG and not check((cpu["samples_on_cpu"] or 0) >= 2000, target + ": samples", cpu["samples_on_cpu"]):
        return
    if (cpu["samples_on_cpu"] or 0) < 300:
        print(target, "was hardly sampled: the machine is busy; shares are not compared")
        return
    rows = {m["method"]: m["exclusive_percent"] for m in cpu["methods"]}
    for name, want in SHARES.items():
        check(abs(rows.get(name, 0) - want) <= tolerance, "%s: %s has %d %%" % (target, name, want),
              cpu["methods"][:5])


def times_are_right(target, app, report, times):
    """Over the time in which the thread was sampled."""
    row = next((t for t in report["cpu"]["threads"] if t["thread_id"] == app.pid), None)
    if not check(row and row["cpu_time_measured"], target + ": its CPU time is measured", row):
        return
    start = seconds_of(report["trace"]["start_time"])
    length = min(report["trace"]["duration_ms"], report["trace"]["last_event_ms"]) / 1e3
    want = times.used_ms(start, start + length)
    check(abs(row["cpu_time_ms"] - want) <= 0.05 * want + (0 if LONG else 5),
          target + ": CPU time of the thread, within 5 %", row["cpu_time_ms"], want)


def file_says_the_same(target, path, live, err):
    r = run("report", "--json", path)
    check(r.code == 0 and not r.err, target + ": the file is read without a word", r)
    check(r.json() == live, target + ": the file's report is the live one", err, r)


def busy(target, folder, ending):
    path = os.path.join(folder, target + ending)
    with shop(target, "cpu") as app:
        time.sleep(0.3)
        with Times(app.pid, app.pid) as times:
            r = run("collect", "-p", app.pid, "--duration", "8s" if LONG else "3s", "--profile", "cpu",
                    "--json", "--cpu-source", "proc", "-o", path)
        report = r.json()
        if check(r.code == 0 and report, target + ": recorded", r):
            shares_are_right(target, report["cpu"])
            check(not estimated(report), target + ": states are known", report["findings"])
            times_are_right(target, app, report, times)
            file_says_the_same(target, path, report, r.err)


def estimated(report):
    return any(f["id"] == "cpu.state-estimated" for f in report.get("findings", []))


def by_samples(target):
    """The runtime's samples alone, where they tell who ran."""
    with shop(target, "cpu") as app:
        time.sleep(0.3)
        r = run("collect", "-p", app.pid, "--duration", "8s", "--profile", "cpu", "--json",
                "--cpu-source", "eventpipe", "-o", "none")
    report = r.json()
    if check(r.code == 0 and report, target + ": recorded", r):
        check(not estimated(report), target + ": states are known", report["findings"])
        shares_are_right(target, report["cpu"])


def unmeasured(target):
    """The samples of .NET 9 alone do not tell who ran; that is said, and nothing was measured."""
    with shop(target, "cpu") as app:
        time.sleep(0.3)
        r = run("collect", "-p", app.pid, "--duration", "1s", "--profile", "cpu", "--json",
                "--cpu-source", "eventpipe", "-o", "none")
    report = r.json()
    check(r.code == 0 and estimated(report), target + ": states are estimates without /proc", r)
    check(report and not any(t["cpu_time_measured"] for t in report["cpu"]["threads"]),
          target + ": no time is measured without /proc", r)


def idle(name, app, folder):
    """Nothing runs: no method is hot, and next to no CPU was used."""
    path = os.path.join(folder, name + ".nettrace")
    r = run("collect", "-p", app.pid, "--duration", "2s", "--profile", "cpu", "--json",
            "--cpu-source", "proc", "-o", path)
    report = r.json()
    if not check(r.code == 0 and report, name + ": recorded", r):
        return
    cpu = report["cpu"]
    on_cpu = cpu["samples_on_cpu"] or 0
    check(on_cpu <= 0.02 * (cpu["samples"] or 0), name + ": at most 2 % of samples run", on_cpu,
          cpu["samples"], cpu["methods"][:5])
    check(not any(f["id"] == "cpu.hot-method" for f in report["findings"]),
          name + ": no hot method", report["findings"])


with scratch() as place:
    for t in ["net8", "net9", "net10", "net11"] if LONG else ["net9", "net10"]:
        busy(t, place, ".nettrace.zst" if t == "net10" else ".nettrace")
    for t in ["net8", "net10", "net11"] if LONG else []:
        by_samples(t)
    unmeasured("net9")
    with shop("net9", "stuck") as stuck:
        time.sleep(1)
        idle("stuck-net9", stuck, place)
    with App([program("web", "Web")]) as web:
        time.sleep(2)
        idle("web", web, place)
done()
