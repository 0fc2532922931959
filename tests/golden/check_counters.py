#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the section counters with the decoded events, reading by reading, and with what the
recorded program does (tests/live/workloads/warehouse/Program.cs).

usage: check_counters.py PROGRAM
"""
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KINDS = {4: "counter", 5: "gauge", 6: "histogram", 16: "up-down-counter"}
# Instrument, kind, unit and tags: all that the program publishes.
PUBLISHED = {
    ("orders.placed", "counter", "{order}", "region=eu"),
    ("pick.duration", "histogram", "ms", "zone=a"),
    ("queue.depth", "gauge", "", "zone=a"),
    ("queue.depth", "gauge", "", 'zone=b"=,'),
    ("in.flight", "up-down-counter", "", ""),
}

faults = []


def check(what, ok, *seen):
    if not ok:
        faults.append(f"{what}: {seen!r}")


def run(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True, check=True).stdout


def number(v):
    return v if isinstance(v, (int, float)) else float(v)


def sum_of(p):
    """The increment, and the rate by its own scale ("00:01:00")."""
    hours, minutes, seconds = map(int, (p["DisplayRateTimeScale"] or "00:00:01").split(":"))
    scale = hours * 3600 + minutes * 60 + seconds
    return {"value": p["Increment"], "rate": p["Increment"] / p["IntervalSec"] * scale,
            "rate_scale_s": scale}


def from_events(program, path):
    """Series by (provider, name, tags), each reading as (time, numbers)."""
    meters, counters = {}, {}
    for line in run(program, "events", "--format", "ndjson", path).splitlines():
        e = json.loads(line)
        p = e["payload"]
        if e["provider"] == "System.Diagnostics.Metrics" and e["id"] in KINDS:
            key = (p["instrumentName"], KINDS[e["id"]], p["unit"], p["tags"])
            if e["id"] == 5:
                row = {"value": number(p["lastValue"])}
            elif e["id"] == 6:
                row = {"count": p["count"], "sum": p["sum"],
                       "quantiles": {k: float(v) for k, v in
                                     (q.split("=") for q in p["quantiles"].split(";") if q)}}
            else:
                row = {"value": number(p["value"]), "delta": number(p["rate"])}
            meters.setdefault(key, []).append((e["time_ms"], row))
        elif e["name"] == "EventCounters":
            p = p[""]["Payload"]
            if p["IntervalSec"] < 0.001:
                continue
            row = {"value": p["Mean"], "count": p["Count"], "min": p["Min"], "max": p["Max"]} \
                if "Mean" in p else sum_of(p)
            counters.setdefault((e["provider"], p["Name"]), []).append((e["time_ms"], row))
    return meters, counters


def same(what, points, expected):
    check(f"{what}: number of readings", len(points) == len(expected), len(points), len(expected))
    for point, (time_ms, row) in zip(points, expected):
        check(f"{what}: time", abs(point["time_ms"] - time_ms) < 0.0002, point, time_ms)
        for name, v in row.items():
            ok = abs(point[name] - v) < 1e-6 * v + 1e-9 if name == "rate" else point[name] == v
            check(f"{what}: {name}", ok, point, row)


def check_fixture(program, name):
    path = os.path.join(TOP, "fixtures", name + ".nettrace.zst")
    rows = json.loads(run(program, "report", "--json", path, "counters"))["counters"]
    meters, counters = from_events(program, path)
    check(f"{name}: what is published", set(meters) == PUBLISHED, meters.keys())
    mine = [r for r in rows if r["source"] == "meter"]
    check(f"{name}: a row a series", len(mine) == len(meters), len(mine))
    for (instrument, kind, unit, tags), expected in meters.items():
        zone = tags.partition("=")
        wanted = {zone[0]: zone[2]} if tags else {}
        found = [r for r in mine if r["name"] == instrument and r["tags"] == wanted]
        check(f"{name}: {instrument} {tags}", len(found) == 1, found)
        if len(found) == 1:
            r = found[0]
            check(f"{name}: {instrument}", (r["kind"], r["unit"] or "", r["provider"]) ==
                  (kind, unit, "Warehouse.Meter"), r)
            same(f"{name} {instrument} {tags}", r["points"], expected)
    others = [r for r in rows if r["source"] == "event-counter"]
    check(f"{name}: EventCounters", len(others) == len(counters) > 15, len(others), len(counters))
    for r in others:
        points = [{**p, "rate_scale_s": r.get("rate_scale_s")} for p in r["points"]]
        same(f"{name} {r['name']}", points, counters.get((r["provider"], r["name"]), []))
    check_program(name, {(r["name"], *r["tags"].values()): r["points"] for r in mine})


def check_program(name, series):
    orders = series[("orders.placed", "eu")]
    for a, b in zip(orders, orders[1:]):
        check(f"{name}: orders add up", b["value"] - a["value"] == b["delta"], a, b)
    check(f"{name}: two orders at a time", all(p["value"] % 2 == 0 for p in orders), orders)
    for p in series[("in.flight",)]:
        check(f"{name}: one less, one more", abs(p["value"]) <= 1, p)
    for a, b in zip(series[("queue.depth", "a")], series[("queue.depth", 'b"=,')]):
        check(f"{name}: twice the depth", b["value"] == 2 * a["value"], a, b)
    for p in series[("pick.duration", "a")]:
        q = p["quantiles"]
        check(f"{name}: durations are below 100", 0 <= q["0.5"] <= q["0.95"] <= q["0.99"] <= 99 and
              0 <= p["sum"] <= 99 * p["count"], p)


for fixture in ("meters-net8", "meters-net10"):
    check_fixture(sys.argv[1], fixture)
for line in faults:
    print(line)
sys.exit(1 if faults else 0)
