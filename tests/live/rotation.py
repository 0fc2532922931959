#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--max-size with --keep: each piece is a trace of its own, and together they are the whole."""

import glob
import os
import signal
import time

from live import (LONG, TARGETS, Running, check, done, events, in_process_sessions, run, scratch,
                  shop, wait_until)
from reference import reader, reference

# Every event, so that pieces fill in a few seconds.
PROVIDERS = "Microsoft-Windows-DotNETRuntime:ffffffffff:5,Microsoft-DotNETCore-SampleProfiler:0:4"
program = reader()


def live_only(counts):
    """What the pieces add themselves: names at their ends."""
    return {k: n for k, n in counts.items()
            if "DotNETRuntimeRundown" not in k and "DotNETCore-EventPipe" not in k}


def add(sums, counts):
    for key, n in counts.items():
        sums[key] = sums.get(key, 0) + n


def pieces_of(folder, name):
    return sorted(glob.glob(os.path.join(folder, name + ".*.nettrace*")))


def report(path):
    r = run("report", path, "--json", "--top", "0")
    check(r.code == 0, path + ": gives a full report", r)
    return r.json()


def hot(rep):
    return [m["method"] for m in rep.get("cpu", {}).get("methods", [])]


def unnamed(rep):
    """The share of samples whose leaf has no name."""
    cpu = rep.get("cpu", {})
    return (cpu.get("samples_unresolved") or 0) / max(cpu.get("samples") or 0, 1)


def whole(folder, target):
    """All pieces are kept: they add up to what was analysed live."""
    name = target + "-whole"
    end = ".nettrace.zst" if target == "net9" else ".nettrace"
    with shop(target, "gc" if target == "aot10" else "mixed") as app:
        r = run("collect", "-p", app.pid, "--duration", "%ds" % (6 if LONG else 5), "--json", "--max-size", "2M",
                "--keep", "1000", "--providers", PROVIDERS, "-o", os.path.join(folder, name + end))
        check(in_process_sessions(app) == 0, name + ": no session is left open")
    check(r.code == 0, name + ": exit code 0", r)
    live = r.json()
    paths = pieces_of(folder, name)
    check(len(paths) >= 2, name + ": several pieces", paths, r)
    check(r.err.rstrip().split("\n")[-1] == paths[-1], name + ": the last one is named last", r)
    sums, theirs, lost = {}, {}, 0
    for path in paths:
        trace, code = events(path)
        check(code == 0 and trace.get("complete") is True, path + ": is whole", trace)
        check(trace.get("events_lost") == 0 or live["trace"]["events_lost"],
              path + ": no loss where there was none", trace)
        add(sums, live_only(trace.get("counts", {})))
        if end == ".nettrace":
            counts, total, n = reference(program, path)
            check(total == trace.get("events"), path + ": as many events in TraceEvent",
                  total, trace.get("events"))
            add(theirs, live_only(counts))
            lost += n
    want = live_only(live.get("trace", {}).get("counts", {}))
    check(sums == want and want, name + ": the counts add up",
          {k: (sums.get(k), want.get(k)) for k in set(sums) | set(want)
           if sums.get(k) != want.get(k)})
    if end == ".nettrace":
        check(theirs == want, name + ": TraceEvent counts the same",
              {k: (theirs.get(k), want.get(k)) for k in set(theirs) | set(want)
               if theirs.get(k) != want.get(k)})
        check(lost == live["trace"]["events_lost"], name + ": TraceEvent sees no other loss", lost)
    if target == "aot10":
        return
    check("names of code loaded before" in r.err, name + ": says what the names cost", r)
    for path in (paths[0], paths[len(paths) // 2]) if LONG else ():
        rep = report(path)
        check("Shop.Cpu.Hot" in hot(rep), path + ": names the hot method", hot(rep)[:10])
        check(unnamed(rep) <= unnamed(live) + 0.2, path + ": names as much as the whole does",
              unnamed(rep), unnamed(live))
        check(not [f for f in rep["findings"] if f["id"].startswith("trace.")],
              path + ": nothing is wrong with it", rep["findings"])


def bounded(folder):
    """Only the latest are kept, while it runs and at the end."""
    most = 0
    with shop("net10", "mixed") as app:
        r = Running("collect", "-p", app.pid, "--duration", "%ds" % (8 if LONG else 6), "--max-size", "2M", "--keep",
                    "2", "--providers", PROVIDERS, "-o", os.path.join(folder, "last.nettrace"))
        while r.process.poll() is None:
            most = max(most, len(pieces_of(folder, "last")) -
                       len(glob.glob(os.path.join(folder, "last.*.part"))))
            time.sleep(0.02)
        result = r.finish()
    check(result.code == 0, "bounded: exit code 0", result)
    paths = pieces_of(folder, "last")
    check(len(paths) == 2, "bounded: two are left", paths, result)
    check(most <= 3, "bounded: never more than one too many", most)
    check("of which the last 2 are kept" in result.err, "bounded: says so", result)
    check(not os.path.exists(os.path.join(folder, "last.0001.nettrace")), "bounded: removed")
    for path in paths:
        check("Shop.Cpu.Hot" in hot(report(path)), path + ": names", path)
    check(not glob.glob(os.path.join(folder, "last.*.part")), "bounded: no part is left")
    r = run("collect", "-p", os.getpid(), "--max-size", "1M", "--keep", "2", "-o",
            os.path.join(folder, "last.nettrace"))
    check(r.code in (1, 5), "bounded: old pieces are not mixed with new ones", r)


def ends(folder):
    """The target is killed; or we are stopped by a signal."""
    with shop("net10", "mixed") as app:
        r = Running("collect", "-p", app.pid, "--duration", "60s", "--max-size", "1M", "--keep",
                    "100", "--providers", PROVIDERS, "-o", os.path.join(folder, "kill.nettrace"))
        wait_until("killed: a few pieces", lambda: len(pieces_of(folder, "kill")) > 2)
        os.kill(app.pid, signal.SIGKILL)
        result = r.finish()
    check(result.code == 3, "killed: exit code 3", result)
    for path in pieces_of(folder, "kill"):
        trace, code = events(path)
        check(code == 0 and trace.get("complete"), path + ": is whole", trace)
    last = report(pieces_of(folder, "kill")[-1])
    check(unnamed(last) < 0.3, "killed: even the last piece has names", last.get("cpu"))
    with shop("net10", "mixed") as app:
        r = Running("collect", "-p", app.pid, "--max-size", "1M", "--keep", "100", "--providers",
                    PROVIDERS, "--no-early-symbols", "-o", os.path.join(folder, "int.nettrace"))
        wait_until("signal: a few pieces", lambda: len(pieces_of(folder, "int")) > 2)
        r.signal(signal.SIGINT)
        result = r.finish()
    check(result.code == 0, "signal: exit code 0", result)
    check("names of code" not in result.err, "signal: no early names", result)
    last = pieces_of(folder, "int")[-1]
    counts = events(last)[0].get("counts", {})
    names = sum(n for k, n in counts.items() if "Rundown/144/" in k)
    check(names > 500, "signal: the last piece has the rundown", counts)
    check(unnamed(report(last)) < 0.3, "signal: which names what ran")


with scratch() as folder:
    for target in TARGETS if LONG else ("net31", "net10"):
        whole(folder, target)
    bounded(folder)
    ends(folder)
done()
