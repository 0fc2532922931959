#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every runtime, reached in every way, ended in every way: the trace is complete, has the start
where it was there, and Microsoft's own library reads the same events from it.

Each pair of a runtime and a way is tried with one end; with DRD_LONG=1 with all of them."""

import os
import signal
import subprocess

from live import (LONG, TARGETS, App, Running, check, done, recorded, scratch, wait_until,
                  workload)
from reference import reader, reference

WAYS = ["attach", "command", "port"]
ENDS = ["duration", "int", "term", "exit"]
MARK = "drd-mark-%d" % os.getpid()  # in the command lines of what we start


def program(target, end):
    mode = "gc" if target == "aot10" else "mixed"
    return [os.path.join(workload(target), "shop"), mode, "4" if end == "exit" else "120",
            MARK]


def begin(target, way, end, folder, path):
    """Our run, and what has to be cleaned up behind it."""
    args = ["collect", "--json", "-o", path, "--duration", "1s" if end == "duration" else "120s"]
    command = program(target, end)
    if way == "command":
        return Running(*args, "--", *command), None
    if way == "attach":
        app = App(command)
        return Running(*args, "-p", app.pid), app
    port = os.path.join(folder, "port")
    ours = Running(*args, "--diagnostic-port", port)
    wait_until("the port is there", lambda: os.path.exists(port))
    return ours, App(command, env={"DOTNET_DiagnosticPorts": port}, wait=False)


def same_events(what, ours, path, reader_program):
    counts, total, lost = reference(reader_program, path)
    check(ours.get("events") == total and total > 0, what + ": events", ours.get("events"), total)
    check(ours.get("events_lost") == lost, what + ": lost", ours.get("events_lost"), lost)
    differ = {k: (ours.get("counts", {}).get(k), counts.get(k))
              for k in set(counts) | set(ours.get("counts", {}))
              if ours.get("counts", {}).get(k) != counts.get(k)}
    check(not differ, what + ": counts (ours, theirs)", differ)


def one(target, way, end, reader_program):
    what = "%s %s %s" % (target, way, end)
    with scratch() as folder:
        path = os.path.join(folder, "x.nettrace")
        ours, app = begin(target, way, end, folder, path)
        try:
            if end in ("int", "term"):
                wait_until(what + ": something is recorded", lambda: recorded(folder), 30)
                ours.signal(signal.SIGINT if end == "int" else signal.SIGTERM)
            r = ours.finish(90)
        finally:
            if app:
                app.__exit__()
        check(r.code == 0, what + ": exit code 0", r)
        j = r.json()
        trace = j.get("trace", {})
        check(trace.get("complete") is True, what + ": complete", r)
        check(not os.path.exists(os.path.join(folder, "port")), what + ": the socket is removed")
        child = j.get("child")
        check((child is not None) == (way == "command"), what + ": child", child)
        if way == "command" and end == "exit":
            check(child == {"exit_code": 0, "signal": None}, what + ": how the child ended", child)
        if way == "command":
            left = subprocess.run(["pgrep", "-f", MARK],
                                  stdout=subprocess.PIPE, text=True).stdout.split()
            check(not left, what + ": nothing of the command is left", left)
        if way != "attach" and target != "aot10":
            # Before this one no managed code can run.
            check(trace.get("first_event_ms", 1e9) < 3000, what + ": from the start on", trace)
        same_events(what, trace, path, reader_program)


if __name__ == "__main__":
    reader_program = reader()
    for i, target in enumerate(TARGETS):
        for k, way in enumerate(WAYS):
            if target == "net31" and way != "attach":
                continue
            for end in ENDS if LONG else [ENDS[(i + k) % len(ENDS)]]:
                one(target, way, end, reader_program)
    done()
