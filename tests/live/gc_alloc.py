#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Collections and allocations of live programs against what these programs count themselves."""

import datetime
import os

from flood import program
from live import App, LONG, Running, check, done, parts, run, scratch, shop, wait_until

RUNTIME = "Microsoft-Windows-DotNETRuntime"
SAMPLER = "Microsoft-DotNETCore-SampleProfiler"
TARGETS = ("net31", "net8", "net9", "net10", "net11") if LONG else ("net8", "net10")
PAUSE_MS = 0.05


def read_figures(path):
    """(time in microseconds since 1970, bytes allocated), as the program itself counted them."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [tuple(map(int, line.split(","))) for line in f.read().split("\n")[:-1]]


def total_at(rows, time_us):
    """Bytes allocated up to a time between two readings."""
    for (before, low), (after, high) in zip(rows, rows[1:]):
        if before <= time_us <= after:
            return low + (high - low) * (time_us - before) / (after - before)
    return None


def watched(name, report):
    """From when to when, in ms, what was allocated is known; and how much it was."""
    if name != "growth":
        trace = report["trace"]
        return trace["first_event_ms"], trace["duration_ms"], report["alloc"]["bytes"]
    starts = [row["start_ms"] for row in report["gc"]["collections"] if row["type"] != "background"]
    rate = report["gc"]["allocation_rate_bytes_per_s"]
    return starts[0], starts[-1], rate * (starts[-1] - starts[0]) / 1000


def rates(folder):
    """By ticks, by samples (.NET 10), and by what generation 0 has grown."""
    sampling = 0x80000000000
    for name, providers in (("ticks", RUNTIME + ":1:5"),
                            ("sampled", "%s:0x%x:4" % (RUNTIME, sampling | 1)),
                            ("growth", RUNTIME + ":1:4")):
        figures = os.path.join(folder, name)
        with App([program("allocate", "Allocate"), figures, "60", "2"]) as app:
            wait_until("the program counts", lambda: len(read_figures(figures)) > 10)
            r = run("collect", "-p", app.pid, "--duration", "2s", "--json", "-o", "none", "--top",
                    "0", "--providers", providers)
            report = r.json()
            start = datetime.datetime.fromisoformat(report["trace"]["start_time"].rstrip("Z")[:26] +
                                                    "+00:00").timestamp() * 1e6
            begin, end, ours = watched(name, report)
            wait_until("it counts on", lambda: read_figures(figures)[-1][0] > start + end * 1000)
        rows = read_figures(figures)
        theirs = total_at(rows, start + end * 1000) - total_at(rows, start + begin * 1000)
        check(abs(ours - theirs) < theirs / 10, name + ": bytes", ours, theirs)
        if name == "growth":
            continue
        check(report["alloc"]["types"][0]["type"] == "System.Byte[]", name + ": type",
              report["alloc"]["types"][:2])
        check(report["alloc"]["sites"][0]["method"] == "Program.Make", name + ": site",
              report["alloc"]["sites"][:2])


def with_induced(target):
    """Every 400,000 orders it calls GC.Collect: soon, on a machine that does nothing else."""
    with shop(target, "gc") as app:
        for seconds in (2, 8, 20):
            r = run("collect", "-p", app.pid, "--duration", "%ds" % seconds, "--json", "-o",
                    "none", "--providers", RUNTIME + ":1:5")
            if r.json()["gc"]["induced"]:
                break
    return r


def causes(_folder):
    for target in TARGETS:
        r = with_induced(target)
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
    reports = [r.json() for r in results]
    plain, sampled = ({row["number"]: row for row in r["gc"]["collections"]} for r in reports)
    # Not those that one of them saw a part of.
    numbers = sorted(set(plain) & set(sampled))[2:-2]
    check(len(numbers) >= 10, "collections that both have", len(numbers), *results)
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
