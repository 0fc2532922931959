#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sections alloc, exceptions, jit and counters of real traces against what the events say.

usage: check_alloc.py PROGRAM

The events are decoded by the same program (events --format ndjson) but summed up here, by other
means; where the program that was recorded says what must come out, that is compared as well.  The
traces are in fixtures/ of the source tree; without them the test is skipped (exit code 77).
"""
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(TOP, "fixtures")
RUNTIME = "Microsoft-Windows-DotNETRuntime"
RUNDOWN = RUNTIME + "Rundown"
METERS = "System.Diagnostics.Metrics"
MEAN_BYTES = 102400
TICKS = ("gc-net31", "gc-net8", "gc-net10", "gc-server-net10", "gc-aot10")
JIT = ("rich-net10", "exceptions-net8", "lost-net10", "cpu-net8", "cpu-net10", "cpu-net11")
TIERS = ("Unknown", "MinOptJitted", "Optimized", "QuickJitted", "OptimizedTier1",
         "OptimizedTier1OSR", "QuickJittedInstrumented", "OptimizedTier1Instrumented")

faults = []


def check(what, ours, expected):
    if ours != expected:
        faults.append(f"{what}: {ours!r}, expected {expected!r}")


def near(what, ours, expected, part):
    if ours is None or abs(ours - expected) > abs(expected) * part + 1e-9:
        faults.append(f"{what}: {ours!r}, expected about {expected!r}")


def run(program, *args):
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{program} {' '.join(args)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def path(name):
    return os.path.join(FIXTURES, name + ".nettrace.zst")


def report(program, name, *sections):
    return json.loads(run(program, "report", "--json", "--top", "0", path(name), *sections))


def events(program, name):
    return [json.loads(line) for line in
            run(program, "events", "--format", "ndjson", path(name)).splitlines()]


def sums_by(rows, key, value):
    out = {}
    for row in rows:
        out[key(row)] = out.get(key(row), 0) + value(row)
    return out


def check_ticks(program, name):
    alloc = report(program, name, "alloc")["alloc"]
    ticks = [e["payload"] for e in events(program, name)
             if e["provider"] == RUNTIME and e["id"] == 10]
    native = name.startswith("gc-aot")
    check(f"{name}: source", alloc["source"], "allocation-tick")
    check(f"{name}: samples", alloc["samples"], len(ticks))
    check(f"{name}: bytes", alloc["bytes"], sum(t["AllocationAmount64"] for t in ticks))
    check(f"{name}: large", alloc["large_objects"]["bytes"],
          sum(t["AllocationAmount64"] for t in ticks if t["AllocationKind"] == 1))
    key = "TypeID" if native else "TypeName"
    expected = sums_by(ticks, lambda t: t[key], lambda t: t["AllocationAmount64"])
    ours = {int(r["type_id"], 16) if native else r["type"]: r["bytes"] for r in alloc["types"]}
    check(f"{name}: types", ours, expected)
    if native:
        check(f"{name}: sites", alloc["sites"], None)
        check(f"{name}: hot path", alloc["hot_path"], None)
        check(f"{name}: names", [r["type"] for r in alloc["types"] if r["type"]], [])
        return
    check(f"{name}: top type", alloc["types"][0]["type"], "System.Byte[]")
    check(f"{name}: sum of sites", sum(r["bytes"] for r in alloc["sites"]), alloc["bytes"])
    # Make is compiled into Run where Run was replaced while it ran (on-stack replacement).
    site = "Shop.Gc.Make" if name == "gc-net31" else "Shop.Gc.Run"
    check(f"{name}: top site", alloc["sites"][0]["method"], site)
    check(f"{name}: its top type", alloc["sites"][0]["types"][0]["type"], "System.Byte[]")


def check_tree(program, name):
    """The whole tree: what is allocated in the methods themselves adds up, level by level."""
    whole = ("--depth", "512", "--min-percent", "0")
    alloc = report(program, name, "alloc", "--tree", *whole)["alloc"]
    tree = alloc["tree"]
    check(f"{name}: tree is whole", alloc["tree_complete"], True)
    check(f"{name}: outermost", sum(r["inclusive_bytes"] for r in tree if r["depth"] == 0),
          sum(r["exclusive_bytes"] for r in tree))
    for i, row in enumerate(tree):
        below = row["exclusive_bytes"]
        for other in tree[i + 1:]:
            if other["depth"] <= row["depth"]:
                break
            if other["depth"] == row["depth"] + 1:
                below += other["inclusive_bytes"]
        check(f"{name}: {row['method']} and its callees", below, row["inclusive_bytes"])
    callers = report(program, name, "alloc", "--inverted", *whole)["alloc"]["tree"]
    tops = sums_by([r for r in callers if r["depth"] == 0], lambda r: r["method"],
                   lambda r: r["inclusive_bytes"])
    own = sums_by(tree, lambda r: r["method"], lambda r: r["exclusive_bytes"])
    check(f"{name}: the same the other way round", tops, {m: n for m, n in own.items() if n})


def check_sampled(program, name):
    alloc = report(program, name, "alloc")["alloc"]
    rows = [e["payload"] for e in events(program, name)
            if e["provider"] == RUNTIME and e["id"] == 303]

    def chance(row):
        return 1 - (1 - 1 / MEAN_BYTES) ** row["ObjectSize"]

    check(f"{name}: source", alloc["source"], "allocation-sampled")
    check(f"{name}: samples", alloc["samples"], len(rows))
    near(f"{name}: bytes", alloc["bytes"], sum(r["ObjectSize"] / chance(r) for r in rows), 1e-6)
    near(f"{name}: objects", alloc["objects"], sum(1 / chance(r) for r in rows), 1e-6)
    expected = sums_by(rows, lambda r: r["TypeName"], lambda r: r["ObjectSize"] / chance(r))
    for row in alloc["types"]:
        near(f"{name}: {row['type']}", row["bytes"], expected[row["type"]], 1e-6)
    if not alloc["bytes_low"] < alloc["bytes"] < alloc["bytes_high"]:
        faults.append(f"{name}: {alloc['bytes_low']} < {alloc['bytes']} < {alloc['bytes_high']}")
    # About 19,000 samples of mostly small objects: the error of the sum is 1.4 %.
    near(f"{name}: error", alloc["bytes_high"] - alloc["bytes_low"], alloc["bytes"] * 0.028, 0.1)
    check(f"{name}: top type", alloc["types"][0]["type"], "System.Byte[]")
    check(f"{name}: top site", alloc["sites"][0]["method"], "Shop.Gc.Run")


def check_exceptions(program, name):
    ex = report(program, name, "exceptions")["exceptions"]
    thrown = [e for e in events(program, name) if e["provider"] == RUNTIME and e["id"] == 80]
    check(f"{name}: count", ex["count"], len(thrown))
    check(f"{name}: thrown", ex["thrown"], len(thrown))
    check(f"{name}: over time", sum(ex["over_time"]["sums"]), len(thrown))
    check(f"{name}: types", [t["type"] for t in ex["types"]], ["Shop.OutOfStockException"])
    row = ex["types"][0]
    check(f"{name}: count of it", row["count"], len(thrown))
    check(f"{name}: message", row["message"], thrown[0]["payload"]["ExceptionMessage"])
    check(f"{name}: messages", [m["count"] for m in row["messages"]], [len(thrown)])
    check(f"{name}: sites", [(s["method"], s["count"]) for s in row["sites"]],
          [("Shop.Exceptions.Reserve", len(thrown))])
    check(f"{name}: caught by", [(c["method"], c["count"]) for c in row["caught_by"]],
          [("Shop.Exceptions.Run", len(thrown))])


def jit_time(rows):
    """Time of compilations, each without those inside of it; by thread a stack of starts."""
    stacks, total = {}, 0
    for e in rows:
        stack = stacks.setdefault(e["thread_id"], [])
        method = e["payload"]["MethodID"]
        if e["id"] == 145:
            stack.append([method, e["time_ms"], 0])
        elif any(s[0] == method for s in stack):
            while stack[-1][0] != method:
                stack.pop()
            _, start, inside = stack.pop()
            total += max(e["time_ms"] - start - inside, 0)
            if stack:
                stack[-1][2] += e["time_ms"] - start
    return total


def check_jit(program, name):
    jit = report(program, name, "jit")["jit"]
    rows = [e for e in events(program, name) if e["provider"] == RUNTIME]
    # Without events of methods as they are loaded nothing was counted: null, never 0.
    counted = any(e["id"] in (141, 143) for e in rows)
    rows = [e for e in rows if e["id"] == 145 or (e["id"] == 143 and
                                                  e["payload"]["MethodFlags"] & 8)]
    loads = [e["payload"] for e in rows if e["id"] == 143]
    check(f"{name}: compiled", jit["count"], len(loads) if counted else None)
    tiers = sums_by(loads, lambda p: TIERS[p["MethodFlags"] >> 7 & 7], lambda p: 1)
    check(f"{name}: tiers", jit["by_tier"], tiers)
    if len(rows) > len(loads):
        near(f"{name}: time", jit["time_ms"], jit_time(rows), 1e-4)
    else:
        check(f"{name}: time", jit["time_ms"], None)
    dynamic = [p for p in loads if p["MethodFlags"] & 1 and
               not p["MethodName"].startswith("IL_STUB")]
    check(f"{name}: dynamic", jit["dynamic"]["count"],
          len(dynamic) if counted else None)
    check(f"{name}: by method", sum(m["count"] for m in jit["methods"]),
          sum(not p["MethodFlags"] & 1 for p in loads))


def split_tags(text):
    """The tags of the recorded program: one a series."""
    key, equals, value = text.partition("=")
    return {key: value} if equals else {}


def number(text):
    return None if text == "" else float(text)


def check_meters(program, name):
    series = report(program, name, "counters")["counters"]
    expected = {}
    for e in events(program, name):
        p = e["payload"]
        if e["provider"] == METERS and e["id"] in (4, 5, 6, 16):
            key = (p["meterName"], p["instrumentName"], p["tags"])
            point = {"time_ms": e["time_ms"]}
            if e["id"] == 6:
                point["count"], point["sum"] = p["count"], p["sum"]
                point["quantiles"] = dict(q.split("=") for q in p["quantiles"].split(";"))
            elif e["id"] == 5:
                point["value"] = number(p["lastValue"])
            else:
                point["value"], point["delta"] = number(p["value"]), number(p["rate"])
            expected.setdefault(key, []).append(point)
        elif e["name"] == "EventCounters":
            p = p[""]["Payload"]
            if p["IntervalSec"] < 0.001:
                continue
            point = {"time_ms": e["time_ms"], "value": p.get("Mean", p.get("Increment"))}
            expected.setdefault((e["provider"], p["Name"], ""), []).append(point)
    check(f"{name}: number of series", len(series), len(expected))
    for (provider, instrument, tags), points in expected.items():
        rows = [s for s in series if s["provider"] == provider and s["name"] == instrument and
                s["tags"] == split_tags(tags)]
        what = f"{name}: {instrument} {tags}"
        check(f"{what}: rows", len(rows), 1)
        if len(rows) != 1:
            continue
        check(f"{what}: points", len(rows[0]["points"]), len(points))
        for ours, theirs in zip(rows[0]["points"], points):
            near(f"{what}: time", ours["time_ms"], theirs["time_ms"], 1e-6)
            for member in ("value", "delta", "count", "sum"):
                if member in theirs:
                    check(f"{what}: {member}", ours[member], theirs[member])
            if "quantiles" in theirs:
                check(f"{what}: quantiles", ours["quantiles"],
                      {k: float(v) for k, v in theirs["quantiles"].items()})
    # What the program does: 2 orders of region eu each round; depth of zone b is twice a's.
    by_name = {(s["name"], s["tags"].get("zone")): s for s in series if s["source"] == "meter"}
    check(f"{name}: instruments", sorted({n for n, _ in by_name}),
          ["in.flight", "orders.placed", "pick.duration", "queue.depth"])
    orders = by_name[("orders.placed", None)]
    check(f"{name}: orders", (orders["kind"], orders["unit"], orders["tags"],
                              orders["instrument_type"], orders["description"]),
          ("counter", "{order}", {"region": "eu"}, "Counter`1", "Orders placed"))
    for a, b in zip(orders["points"], orders["points"][1:]):
        check(f"{name}: orders add up", b["value"], a["value"] + b["delta"])
        check(f"{name}: orders are even", b["value"] % 2, 0)
    for a, b in zip(by_name[("queue.depth", "a")]["points"],
                    by_name[("queue.depth", 'b"=,')]["points"]):
        check(f"{name}: depth", b["value"], 2 * a["value"])
    check(f"{name}: histogram", by_name[("pick.duration", "a")]["kind"], "histogram")
    check(f"{name}: up and down", by_name[("in.flight", None)]["kind"], "up-down-counter")


def check_nothing(program, name):
    """Nothing recorded is null, never 0."""
    root = report(program, name)
    for section, members in (("alloc", ("source", "bytes", "types", "sites")),
                             ("exceptions", ("count", "types"))):
        for member in members:
            check(f"{name}: {section}.{member}", root[section][member], None)
    check(f"{name}: counters", root["counters"], None)
    unwanted = [f["id"] for f in root["findings"]
                if f["id"].split(".")[0] in ("alloc", "exceptions", "jit")]
    check(f"{name}: findings", unwanted, [])


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    work = [(check_ticks, name) for name in TICKS]
    work += [(check_tree, name) for name in ("gc-net31", "gc-net10")]
    work += [(check_sampled, "alloc-sampled-net10"), (check_exceptions, "exceptions-net8")]
    work += [(check_jit, name) for name in JIT]
    work += [(check_meters, name) for name in ("meters-net8", "meters-net10")]
    work += [(check_nothing, name) for name in ("cpu-net8", "cpu-net10", "stuck-net10")]
    missing = sorted({name for _, name in work if not os.path.exists(path(name))})
    if missing:
        print("skipped: not in fixtures/: " + ", ".join(missing))
        return 77
    bad = 0
    for function, name in work:
        faults.clear()
        function(sys.argv[1], name)
        bad += bool(faults)
        print(f"{'not ok' if faults else 'ok'} {function.__name__} {name}")
        for fault in faults[:20]:
            print("    " + fault)
    print(f"{len(work)} checks, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
