#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Collections and allocations of live programs against what these programs count themselves."""

import datetime
import json
import os

from flood import program
from live import App, LONG, Running, check, done, parts, run, scratch, shop

RUNTIME = "Microsoft-Windows-DotNETRuntime"
SAMPLER = "Microsoft-DotNETCore-SampleProfiler"
TARGETS = ("net31", "net8", "net9", "net10", "net11") if LONG else ("net8", "net10")
PAUSE_MS = 0.05


def counted(path, begin_us, end_us):
    """Bytes in a second between two times, as the program itself counted them."""
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f.read().split("\n")[:-1]:
            time_us, total = map(int, line.split(","))
            if begin_us <= time_us <= end_us:
                rows.append((time_us, total))
    if len(rows) < 10:
        return 0
    return (rows[-1][1] - rows[0][1]) * 1e6 / (rows[-1][0] - rows[0][0])


def times_us(trace):
    start = datetime.datetime.fromisoformat(trace["start_time"].rstrip("Z")[:26] + "+00:00")
    begin = start.timestamp() * 1e6
    return begin, begin + trace["duration_ms"] * 1000


def rates(folder):
    """By ticks, by samples (.NET 10), and by what generation 0 has grown."""
    figures = os.path.join(folder, "figures")
    keyword = 0x80000000000  # AllocationSampling
    for name, providers in (("ticks", RUNTIME + ":1:5"),
                            ("sampled", "%s:0x%x:4" % (RUNTIME, keyword | 1)),
                            ("growth", RUNTIME + ":1:4")):
        with App([program("allocate", "Allocate"), figures, "60", "2"]) as app:
            r = run("collect", "-p", app.pid, "--duration", "2s", "--json", "-o", "none",
                    "--providers", providers)
            report = r.json()
            trace = report.get("trace", {})
            rate = counted(figures, *times_us(trace)) if trace.get("start_time") else 0
        check(rate > 0, name + ": the program counts", r)
        sections = []
        if name != "growth":
            sections.append(("alloc", report["alloc"]["rate_bytes_per_s"]))
            check(report["alloc"]["types"][0]["type"] == "System.Byte[]", name + ": type",
                  report["alloc"]["types"][:2])
            check(report["alloc"]["sites"][0]["method"] == "Program.Make", name + ": site",
                  report["alloc"]["sites"][:2])
        if name != "sampled":
            sections.append(("gc", report["gc"]["allocation_rate_bytes_per_s"]))
        for section, ours in sections:
            check(ours and abs(ours - rate) < rate / 10, "%s: %s: rate" % (name, section), ours,
                  rate)


def causes(_folder):
    for target in TARGETS:
        with shop(target, "gc") as app:
            r = run("collect", "-p", app.pid, "--duration", "2s", "--json", "-o", "none",
                    "--providers", RUNTIME + ":1:5")
        report = r.json()
        check(report["alloc"]["types"][0]["type"] == "System.Byte[]", target + ": type", r)
        # From .NET 8 on the compiler puts Make into Run.
        check(report["alloc"]["sites"][0]["method"] in
              (("Shop.Gc.Make",) if target == "net31" else ("Shop.Gc.Make", "Shop.Gc.Run")),
              target + ": site", report["alloc"]["sites"][:2])
        check(report["gc"]["induced"] > 0, target + ": induced", r)
        check([c["method"] for c in report["gc"]["induced_by"]] == ["Shop.Gc.Run"],
              target + ": who induces", report["gc"]["induced_by"])
        first = report["findings"][0]
        check(first["id"] == "gc.time" and "GC.Collect from Shop.Gc.Run" in first["evidence"],
              target + ": what is said first", first)


def row_of(row):
    return {k: row[k] for k in ("number", "generation", "reason", "type", "pauses",
                                "promoted_bytes", "heap_after_bytes")}


def sampler(folder):
    """One process, two sessions at a time: its collections are the same with the sampler on."""
    with shop("net10", "gc") as app:
        both = [Running("collect", "-p", app.pid, "--duration", "3s", "--json", "--top", "0",
                        "-o", os.path.join(folder, name), "--providers", providers)
                for name, providers in (("plain.nettrace", RUNTIME + ":1:4"),
                                        ("sampled.nettrace", RUNTIME + ":1:4," + SAMPLER))]
        results = [b.finish() for b in both]
    reports = [json.loads(r.out) for r in results]
    plain, sampled = ({row["number"]: row for row in r["gc"]["collections"]} for r in reports)
    # Not those that one of them saw a part of.
    numbers = sorted(set(plain) & set(sampled))[2:-2]
    check(len(numbers) > 50, "collections that both have", len(numbers), *results)
    check(numbers == list(range(numbers[0], numbers[-1] + 1)), "no collection is missing", numbers)
    check(any(plain[n]["type"] == "background" for n in numbers), "background collections")
    check((reports[1]["gc"]["other_suspensions"] or 0) > 100, "the sampler's stops are told apart",
          reports[1]["gc"]["other_suspensions"])
    for n in numbers:
        check(row_of(plain[n]) == row_of(sampled[n]), "collection %d" % n, row_of(plain[n]),
              row_of(sampled[n]))
    # The runtime takes a time for each session: threads may be interrupted in between.
    differences = sorted(abs(plain[n]["pause_ms"] - sampled[n]["pause_ms"]) for n in numbers)
    check(differences[len(differences) // 2] < PAUSE_MS, "pauses are the same", differences[-3:])


if __name__ == "__main__":
    with scratch() as place:
        parts([rates, causes, sampler], place)
    done()
