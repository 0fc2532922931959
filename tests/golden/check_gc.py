#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Collections of real traces against the events themselves and against Microsoft's reader.

usage: check_gc.py PROGRAM

The events are decoded by the same program (events --format ndjson) and paired here by other means.
The traces and the reference values are in fixtures/ of the source tree; without them the test is
skipped (exit code 77).
"""
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(TOP, "fixtures")
RUNTIME = "Microsoft-Windows-DotNETRuntime"
TRACES = ("gc-net31", "gc-net8", "gc-net10", "gc-server-net10", "gc-aot10", "alloc-sampled-net10")
PAUSE_MS = 0.01
SIZES = ("gen0", "gen1", "gen2", "loh", "poh")
# What the reference loses where a background and an ephemeral collection begin in one pause.
SHARED_PERCENT = 1.2
# Allocation from the growth of generation 0 leaves out what comes before the first and after the
# last collection: the fewer collections, the less exact.
GROWTH = {"gc-net31": 0.1, "gc-net8": 0.05, "gc-net10": 0.05, "gc-server-net10": 0.1,
          "gc-aot10": 0.05}

faults = []


def check(what, ours, expected):
    if ours != expected:
        faults.append(f"{what}: {ours!r}, expected {expected!r}")


def near(what, ours, expected, tolerance):
    if ours is None or abs(ours - expected) > tolerance:
        faults.append(f"{what}: {ours!r}, expected {expected!r} +- {tolerance!r}")


def run(program, *args):
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{program} {' '.join(args)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def path(name):
    return os.path.join(FIXTURES, name + ".nettrace.zst")


def report(program, name, *args):
    return json.loads(run(program, "report", "--json", *args, path(name)))


def events(program, name):
    return [e for e in map(json.loads, run(program, "events", "--format", "ndjson",
                                           path(name)).splitlines())
            if e["provider"] == RUNTIME]


def suspensions(found):
    """(begin, end, numbers of the collections that began in it) of those for the collector."""
    open_at, started = {}, {}
    done = []
    for e in found:
        thread = e["thread_id"]
        if e["id"] == 9:
            open_at[thread] = (e["time_ms"], e["payload"]["Reason"])
            started[thread] = []
        elif e["id"] == 1:
            for numbers in started.values():
                numbers.append((e["payload"]["Count"], e["payload"]["Type"]))
        elif e["id"] == 3 and thread in open_at:
            begin, reason = open_at.pop(thread)
            numbers = started.pop(thread)
            if reason in (1, 6):
                done.append((begin, e["time_ms"], numbers))
    return done


def check_pauses(program, name, found, gc, ref):
    """The sum over suspensions is the truth; the reference's sum over collections is lower."""
    pauses = suspensions(found)
    first = next(e["time_ms"] for e in found if e["id"] == 1)
    total = sum(end - begin for begin, end, numbers in pauses if end > first)
    near(f"{name}: pauses in all", gc["pause_total_ms"], total, PAUSE_MS)
    near(f"{name}: longest", gc["pause_max_ms"], max(e - b for b, e, _ in pauses if e > first), PAUSE_MS)
    shared = [p for p in pauses if len(p[2]) > 1]
    lower = ref["total_pause_ms"]
    if shared:
        if not total * (1 - SHARED_PERCENT / 100) <= lower < total - PAUSE_MS:
            faults.append(f"{name}: the reference's sum {lower}, ours {total}, {len(shared)} "
                          "shared pauses")
    else:
        near(f"{name}: the reference's sum", lower, total, PAUSE_MS * len(pauses) / 10)
    by_number = {row["number"]: row for row in gc["collections"]}
    for begin, end, numbers in pauses:
        if len(numbers) == 1 and numbers[0][1] != 1:
            near(f"{name}: pause of {numbers[0][0]}", by_number[numbers[0][0]]["pause_ms"],
                 end - begin, PAUSE_MS)
        elif len(numbers) > 1:
            last = numbers[-1][0]
            near(f"{name}: shared pause, charged to {last}", by_number[last]["pause_ms"],
                 end - begin, PAUSE_MS)


def check_counts(name, gc, ref):
    for key in ("count", "gen0", "gen1", "gen2", "background", "induced"):
        check(f"{name}: {key}", gc[key], ref[key])
    # The reference counts -1 MB for a collection without HeapStats.
    missing = sum(row["promoted_bytes"] is None for row in gc["collections"])
    near(f"{name}: promoted", gc["promoted_bytes"] / 1e6, ref["promoted_mb"] + missing, 0.001)


def check_sizes(name, found, gc):
    """Sizes of the last collection, which one event for each heap has."""
    check(f"{name}: heaps", gc["heap_count"], 2 if "server" in name else 1)
    after = [0] * 5
    count = gc["heap_count"]
    for e in [e for e in found if e["id"] == 204][-count:]:
        for i, v in enumerate(e["payload"]["Values"]):
            after[i] += v["SizeAfter"]
    for row in gc["heap"]:
        i = SIZES.index(row["generation"])
        check(f"{name}: size of {row['generation']}", row["bytes"], after[i])
    for row in gc["collections"]:
        # 3.1 measures both at different times.
        if (row["heap_after_bytes"] is not None and row["sizes"] and row["type"] == "blocking" and
                name != "gc-net31"):
            check(f"{name}: size after {row['number']}",
                  sum(s["after_bytes"] for s in row["sizes"]), row["heap_after_bytes"])
        if row["phases"] and row["type"] == "blocking":
            phases = sum(ms or 0 for ms in row["phases"].values())
            if phases > row["duration_ms"] + 0.05:
                faults.append(f"{name}: phases of {row['number']} take {phases} ms of "
                              f"{row['duration_ms']} ms")


def check_mode(name, gc):
    check(f"{name}: mode", gc["mode"], None if "aot" in name else
          "server" if "server" in name else "workstation")
    check(f"{name}: memory", gc["memory"], "segments" if "net31" in name else "regions")


def check_growth(program, name, gc):
    """What generation 0 has grown by against what ticks say."""
    rate = gc["allocation_rate_bytes_per_s"]
    check(f"{name}: source", gc["allocation_source"],
          "heap-sizes" if name == "alloc-sampled-net10" else "ticks")
    if name == "alloc-sampled-net10":
        alloc = report(program, name, "--top", "1")["alloc"]
        seconds = alloc["bytes"] / alloc["rate_bytes_per_s"]
        if not alloc["bytes_low"] * 0.97 <= rate * seconds <= alloc["bytes_high"] * 1.03:
            faults.append(f"{name}: {rate} bytes/s by growth, sampled {alloc['bytes_low']} to "
                          f"{alloc['bytes_high']} in {seconds} s")
        return
    grown = sum(max(0, row["sizes"][k]["before_bytes"] - before["sizes"][k]["after_bytes"])
                for before, row in pairs(gc["collections"]) for k in (0, 3))
    near(f"{name}: growth", grown, gc["allocated_bytes"], gc["allocated_bytes"] * GROWTH[name])


def pairs(collections):
    rows = [row for row in collections if row["type"] != "background" and row["sizes"]]
    return zip(rows, rows[1:])


def check_sentence(program, name):
    """What a person hears first about a program that collects all the time, in whole reports."""
    finding = report(program, name, "--top", "1")["findings"][0]
    check(f"{name}: first finding", finding["id"], "gc.time")
    for words in ("of generation 0 because ", " allocates ", "B/s of System.Byte[]",
                  "induced by GC.Collect from Shop.Gc.Run"):
        if words not in finding["evidence"]:
            faults.append(f"{name}: {words!r} is not in {finding['evidence']!r}")


def check_exceptions(program):
    found = [e for e in events(program, "exceptions-net8") if e["id"] == 80]
    ex = report(program, "exceptions-net8")["exceptions"]
    check("exceptions-net8: events", ex["count"], len(found))
    check("exceptions-net8: types", [t["type"] for t in ex["types"]], ["Shop.OutOfStockException"])
    check("exceptions-net8: site", [s["method"] for s in ex["types"][0]["sites"]],
          ["Shop.Exceptions.Reserve"])


def nothing_but_null(what, value):
    for key, member in value.items():
        if member is not None:
            faults.append(f"{what}: {key} is {member!r}, expected null")


def check_nothing(program):
    """Sections whose events a trace does not have are null throughout, and say so in text."""
    missing = {"zombie-net10": ("gc", "alloc", "exceptions"), "meters-net10": ("gc", "alloc"),
               "gc-net10": ("exceptions", "jit"), "gc-aot10": ("exceptions", "jit"),
               "stuck-net10": ("alloc",), "v6-cpu-net10": ("gc", "alloc", "exceptions", "jit")}
    titles = {"gc": "GARBAGE COLLECTION", "alloc": "ALLOCATIONS", "exceptions": "EXCEPTIONS",
              "jit": "JIT AND LOADER"}
    for name, sections in missing.items():
        r = report(program, name)
        text = run(program, "report", path(name), *sections)
        for section in sections:
            nothing_but_null(f"{name}: {section}", r[section])
            if titles[section] + "\n  not recorded\n" not in text:
                faults.append(f"{name}: the text of {section} does not say 'not recorded'")
        if "nan" in text.lower().replace("finance", ""):
            faults.append(f"{name}: the text has NaN")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    program = sys.argv[1]
    if not os.path.exists(path(TRACES[0])):
        print("skipped: the fixtures are not here")
        return 77
    for name in TRACES:
        with open(os.path.join(FIXTURES, "expected", name + ".json"), encoding="utf-8") as f:
            ref = json.load(f)["gc"]
        found = events(program, name)
        gc = report(program, name, "--top", "0")["gc"]
        check_counts(name, gc, ref)
        check_pauses(program, name, found, gc, ref)
        check_sizes(name, found, gc)
        check_mode(name, gc)
        check_growth(program, name, gc)
    for name in ("gc-net31", "gc-net8", "gc-net10", "gc-server-net10"):
        check_sentence(program, name)
    check_exceptions(program)
    check_nothing(program)
    for fault in faults[:40]:
        print("wrong: " + fault)
    print("all right" if not faults else f"{len(faults)} wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
