#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""collect on a live program of one runtime: hot methods, collections, stuck tasks."""

import os
import sys
import time

from live import check, done, events, in_process_sessions, run, scratch, shop

target = sys.argv[2]
native = target == "aot10"


def collect(app, folder, name, *args, seconds=3):
    path = os.path.join(folder, name)
    r = run("collect", "-p", app.pid, "--duration", "%ds" % seconds, "--json", "-o", path, *args)
    check(r.code == 0, name + ": exit code 0", r)
    check(r.err.rstrip().split("\n")[-1] == path, name + ": the file's name is the last line", r)
    check(seconds <= r.seconds < 10, name + ": ends after %d s" % seconds, r)
    report = r.json()
    trace = report.get("trace", {})
    check(trace.get("complete") is True, name + ": complete", trace)
    check(trace.get("file") == path, name + ": the report names the file", trace)
    check(trace.get("process_id") == app.pid or native, name + ": the report names the pid", trace)
    again, code = events(path)
    check(code == 0, name + ": the file can be read")
    check(again.get("counts") == trace.get("counts") and trace.get("counts"),
          name + ": live counts are those of the file", trace.get("counts"), again.get("counts"))
    check(in_process_sessions(app) == 0, name + ": no session is left open")
    return report


def finding(report, start):
    return [f for f in report.get("findings", []) if f["id"].startswith(start)]


def cpu(folder):
    with shop(target, "cpu") as app:
        report = collect(app, folder, "cpu.nettrace")
    section = report.get("cpu", {})
    if native and section.get("source") == "perf":  # the kernel knows its functions
        check(any("Hot" in m["method"] for m in section.get("methods", [])), "cpu: Hot", section)
        return
    if native:
        # Its samples tell neither state nor method: nothing may be claimed about its CPU time.
        check(section.get("samples") == section.get("samples_unknown"), "cpu: all unknown", section)
        check(not section.get("methods"), "cpu: no methods", section)
        check(not finding(report, "cpu.mostly-waiting") and not finding(report, "cpu.hot"),
              "cpu: claims nothing", report.get("findings"))
        check(finding(report, "cpu."), "cpu: says what it cannot know", report.get("findings"))
        return
    methods = [m["method"] for m in section.get("methods", [])]
    check(methods[:1] == ["Shop.Cpu.Hot"], "cpu: Shop.Cpu.Hot is the hottest", methods[:5])
    if methods[:1] == ["Shop.Cpu.Hot"]:
        hot = section["methods"][0]["exclusive_percent"]
        check(40 <= hot <= 75, "cpu: it has about 60 %", section["methods"][:3])


def gc(folder):
    with shop(target, "gc") as app:
        report = collect(app, folder, "gc.nettrace")
    section = report.get("gc", {})
    check(section.get("count", 0) >= 3, "gc: collections", section)
    check(section.get("pause_total_ms", 0) > 0, "gc: they paused the program", section)
    check(section.get("pause_max_ms", 0) <= section.get("pause_total_ms", 0), "gc: sums", section)


def pending_chains(report):
    return [" < ".join(p.get("chain", [])) + " " + (p.get("method") or "")
            for p in report.get("tasks", {}).get("pending", [])]


def stuck(folder):
    begin = time.monotonic()
    with shop(target, "stuck") as app:
        check(time.monotonic() - begin < 2, "stuck: the socket is there at once")
        early = collect(app, folder, "stuck.nettrace", seconds=3)
        late = collect(app, folder, "late.nettrace")
    chains = pending_chains(early)
    check(any("HandleRequestAsync" in c for c in chains),
          "stuck: HandleRequestAsync is pending", early.get("tasks"))
    check(finding(late, "tasks.") and not any("HandleRequestAsync" in c and "FetchPrice" in c
                                               for c in pending_chains(late)),
          "late: says that older tasks are invisible", late.get("tasks"), late.get("findings"))


def deadlock(folder):
    """Threads from before the recording: on .NET 11 only the rundown tells who they are."""
    with shop(target, "deadlock") as app:
        report = collect(app, folder, "deadlock.nettrace", "--profile", "locks", seconds=4)
    check([f["id"] for f in finding(report, "locks.")] == ["locks.deadlock"],
          "deadlock: is found", report.get("findings"))
    ids = sorted(t.get("thread_id") or 0 for d in report.get("locks", {}).get("deadlocks", [])
                 for t in d.get("threads", []))
    check(len(ids) == 2 and all(ids), "deadlock: of two known threads", report.get("locks"))


with scratch() as folder:
    cpu(folder)
    gc(folder)
    if not native:
        stuck(folder)
    if target in ("net8", "net11"):
        deadlock(folder)
done()
