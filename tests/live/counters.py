#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""counters.py PROGRAM: readings of counters and meters of real runtimes as they come."""

import contextlib
import csv
import json
import os
import signal
import time

from live import (LONG, App, Running, check, document, done, freeze, in_process_sessions, lines,
                  run, scratch, shop, wait_until, workload)

METER = "Warehouse.Meter"
KINDS = {"orders.placed": "counter", "pick.duration": "histogram", "queue.depth": "gauge",
         "in.flight": "up-down-counter"}


def warehouse(target):
    if target == "net31":
        return shop(target, "mixed")  # there are no meters
    return App([os.path.join(workload(target), "warehouse"), "60"])


def by_series(rows):
    series = {}
    for r in rows:
        key = (r["provider"], r["name"], json.dumps(r["tags"]), r.get("instrument_id"),
               r.get("twin"))
        series.setdefault(key, []).append(r)
    return series


def check_times(what, rows):
    for key, list_ in by_series(rows).items():
        times = [r["time_ms"] for r in list_]
        check(all(a < b for a, b in zip(times, times[1:])), what + ": a time comes twice", key, times)
        for a, b in zip(list_, list_[1:]):
            late = b["time_ms"] - a["time_ms"] > 1500
            check(late == ("gap_ms" in b) or b["provider"] == METER, what + ": gaps", a, b)


def check_meters(target, rows):
    """What the program does, tests/live/workloads/warehouse/Program.cs."""
    mine = [r for r in rows if r["provider"] == METER]
    kinds = {r["name"]: r["kind"] for r in mine}
    if target == "net31":
        return
    check(kinds == KINDS, target + ": every instrument with its kind", kinds)
    for r in mine:
        check((r.get("instrument_id") is not None) == (target not in ("net8",)),
              target + ": instrument id", r)
        if r["name"] == "queue.depth":
            check(r["tags"].get("zone") in ("a", 'b"=,'), target + ": tags", r)
            check(r["tags"]["zone"] == "a" or r["value"] % 2 == 0, target + ": twice zone a", r)
        if r["name"] == "pick.duration":
            q = r["quantiles"]
            check(r["tags"] == {"zone": "a"} and r["unit"] == "ms", target + ": histogram", r)
            check(r["count"] == 0 or 0 <= q["0.5"] <= q["0.95"] <= q["0.99"] <= 99,
                  target + ": quantiles", r)
            check(0 <= r["sum"] <= 99 * r["count"], target + ": sum", r)
        if r["name"] == "in.flight":
            check(abs(r["value"]) <= 1, target + ": it goes down and up", r)
    orders = [r for r in mine if r["name"] == "orders.placed"]
    for a, b in zip(orders, orders[1:]):
        check(b["value"] - a["value"] == b["delta"], target + ": value and delta", a, b)
    check(all(r["value"] % 2 == 0 and r["unit"] == "{order}" and r["tags"] == {"region": "eu"}
              for r in orders) and len(orders) >= 2, target + ": two at a time", orders)


def check_rates(target, rows):
    """Collections are shown by the minute, allocated bytes by the second; and per second, all."""
    scales = {r["name"]: r["rate_scale_s"] for r in rows}
    check(scales.get("gen-0-gc-count") == 60 and scales.get("alloc-rate") == 1,
          target + ": what rates are per", scales)
    for r in rows:
        per_s = r["value"] / r["interval_s"]
        check(abs(r["rate_per_s"] - per_s) <= 1e-6 * per_s, target + ": rate per second", r)
        check(abs(r["rate"] - per_s * r["rate_scale_s"]) <= 1e-6 * abs(r["rate"]),
              target + ": rate", r)


def readings(target):
    with warehouse(target) as app:
        r = run("counters", "collect", "-p", app.pid, "--counters", METER + ",System.Runtime",
                "--duration", "4s", "--format", "ndjson")
    rows = lines(r.out, "reading")
    runtime = {r["kind"] for r in rows if r["provider"] == "System.Runtime"}
    check(r.code == 0 and rows, target + ": readings", r)
    old = target in ("net31", "net8")
    check(bool(runtime & {"mean", "sum"}) == old, target + ": EventCounters or meters", runtime)
    if old:
        cpu = [r for r in rows if r["name"] == "cpu-usage"]
        check(cpu and all(r["unit"] == "%" and 0 <= r["value"] <= 100 for r in cpu),
              target + ": cpu-usage", cpu)
        check_rates(target, [r for r in rows if r["kind"] == "sum"])
    check_meters(target, rows)
    check_times(target, rows)


def text_of(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as f:
        return f.read()
    return ""


def killed(target):
    """Whenever we are killed, what is written is whole."""
    with scratch() as folder, warehouse(target) as app:
        for number in range(10 if LONG else 3):
            path = os.path.join(folder, "k%d.json" % number)
            p = Running("counters", "collect", "-p", app.pid, "--counters", METER,
                        "--refresh-interval", "100ms", "--format", "json", "-o", path,
                        "--duration", "20s")
            wait_until("killed: readings", lambda: "provider" in text_of(path))
            time.sleep(0.037 * number)
            p.signal(signal.SIGKILL)
            p.finish()
            # One reader of the meters at a time: the next one, too early, would hear nothing.
            wait_until("killed: the session ends", lambda: not in_process_sessions(app))
            check(document(text_of(path)).get("readings"), "killed: readings", text_of(path))


def stopped(target):
    """A process that stands still: a gap, and no time twice."""
    with scratch() as folder, warehouse(target) as app:
        path = os.path.join(folder, "x.csv")
        p = Running("counters", "collect", "-p", app.pid, "--counters",
                    "EventCounters\\System.Runtime[working-set]," + METER, "-o", path,
                    "--duration", "7s")
        time.sleep(2.5)
        freeze(app.pid)
        time.sleep(2.5)
        os.kill(app.pid, signal.SIGCONT)
        r = p.finish()
        check(r.code == 0 and "gap" in r.err, "stopped: it is said", r)
        with open(path, newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
    for name, statistic in (("working-set", "value"), ("orders.placed", "value")):
        mine = [r for r in rows if r["name"] == name and r["statistic"] == statistic]
        gaps = [float(r["gap_ms"]) for r in mine if r["gap_ms"]]
        check(len(gaps) >= 1 and 500 < max(gaps) < 6000, "stopped: the gap of " + name, mine)
        check(len({r["time"] for r in mine}) == len(mine), "stopped: times of " + name, mine)


SILENT = {"CPU (view: cpu)": "cpu", "GARBAGE COLLECTION": "gc", "ALLOCATIONS": "alloc",
          "TASKS": "tasks", "THREAD POOL": "threadpool", "THREADS": "threads",
          "EXCEPTIONS": "exceptions", "JIT AND LOADER": "jit"}


def nothing_else(target):
    """Of a trace with only counters, or only a program's own events, nothing is said that it cannot
    know: no 0, no idle process."""
    asked = {"counters": "System.Runtime:0:4:EventCounterIntervalSec=1",
             "own events": "Warehouse-Rich:0xffffffffffffffff:5"}
    with scratch() as folder, warehouse(target) as app:
        runs = {what: Running("collect", "-p", app.pid, "--providers", providers, "--duration",
                              "2s", "-o", os.path.join(folder, what)) for what, providers in
                asked.items()}
        texts = {what: r.finish().out for what, r in runs.items()}
        reports = {what: run("report", os.path.join(folder, what), "--json").json()
                   for what in asked}
    for what, text in texts.items():
        for title, section in SILENT.items():
            check("\n%s\n  not recorded\n" % title in text, "only %s: %s" % (what, title), text)
            numbers = {k: v for k, v in (reports[what].get(section) or {}).items()
                       if v is not None and v is not False and
                       not isinstance(v, (str, list, dict))}
            check(not numbers, "only %s: %s in JSON" % (what, section), numbers)
        said = {f["severity"] for f in reports[what]["findings"]}
        check(said == {"info"}, "only %s: findings" % what, reports[what]["findings"])
    check(reports["counters"]["counters"] and not reports["own events"]["counters"],
          "only counters: they are there")


def nothing(target):
    with shop(target, "cpu") as app:
        r = run("counters", "collect", "-p", app.pid, "--counters", "No.Such.Meter", "--duration",
                "1500ms")
        check(r.code == 1 and "no reading came" in r.err, "nothing: a failure", r)
    r = run("counters", "collect", "-p", 999999, "--duration", "1s")
    check(r.code == 5, "nobody: cannot be reached", r)


for name in ("net31", "net8", "net9", "net10", "net11") if LONG else ("net31", "net8", "net10"):
    readings(name)
killed("net10")
stopped("net10")
nothing_else("net10")
nothing("net10")
done()
