#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares reports on the bundled traces with values that are right by construction of the programs
that made them, or that were worked out by hand from the events (fixtures/README.md).

usage: check_values.py PROGRAM

Traces that are not bundled are looked for in $DRD_SHARED/fixtures, or ../shared/fixtures beside the
source tree, and left out when they are not there.
"""
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("DRD_SHARED", os.path.join(os.path.dirname(TOP), "shared"))
FOLDERS = [os.path.join(TOP, "fixtures"), os.path.join(SHARED, "fixtures")]

CHAIN = ["Shop.Stuck.FetchPriceAsync", "Shop.Stuck.PriceOrderAsync",
         "Shop.Stuck.HandleRequestAsync"]

# What must not be hot: the runtime's waits.
WAITS = ("Thread.Sleep", "Monitor.Wait", "Enter_Slowpath", "WaitHandle.", "WaitSubsystem",
         "LowLevelLifoSemaphore", "WaitForSocketEvents", "ManualResetEventSlim.Wait")

faults = []


def check(what, ok, seen):
    if not ok:
        faults.append(f"{what}: {seen!r}")


def find(name):
    for folder in FOLDERS:
        for end in (".nettrace.zst", ".netperf.zst"):
            path = os.path.join(folder, name + end)
            if os.path.exists(path):
                return path
    return None


def report(program, name, *args):
    path = find(name)
    if not path:
        print(f"left out: {name} is not here")
        return None
    done = subprocess.run([program, "report", "--json", *args, path], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def finding_ids(r):
    return {f["id"] for f in r["findings"]}


def rows(r, method):
    return [row for row in r["tasks"]["pending"] if row["method"] == method]


def check_stuck(program):
    """17 requests got stuck while recording, one thread blocks in .Result, one loop is well."""
    for name, thread, operations in (("stuck-net9", 25017, True), ("stuck-net10", 25055, True),
                                     ("stuck-net31", 24980, False)):
        r = report(program, name)
        if not r:
            continue
        pending = rows(r, "Shop.Stuck.HandleRequestAsync")
        check(f"{name}: rows of requests", len(pending) == 1, r["tasks"]["pending"])
        check(f"{name}: requests", pending[0]["count"] == 17, pending[0])
        check(f"{name}: chain", pending[0]["chain"] == CHAIN, pending[0]["chain"])
        check(f"{name}: stuck", (pending[0]["stuck"], pending[0]["rule"]) == (True, "none-ended"),
              pending[0])
        check(f"{name}: ages", 1000 < pending[0]["youngest_ms"] < 2000 < pending[0]["age_ms"] <
              r["trace"]["duration_ms"], pending[0])
        check(f"{name}: healthy", r["tasks"]["healthy"] == 1, r["tasks"]["healthy"])
        blocked = [row for row in r["tasks"]["pending"] if row["state"] == "blocked"]
        check(f"{name}: blocked", [(row["method"], row["thread_id"]) for row in blocked] ==
              [("Shop.Stuck.Blocker", thread)], blocked)
        counts = r["tasks"]["operations_begun"], r["tasks"]["operations_ended"]
        check(f"{name}: operations", counts == ((109, 57) if operations else (None, None)), counts)
        check(f"{name}: findings", {"tasks.stuck", "tasks.sync-over-async",
                                    "tasks.older-invisible"} <= finding_ids(r), finding_ids(r))
        share = r["cpu"]["samples_on_cpu"] / r["cpu"]["samples"]
        check(f"{name}: an idle process is not busy", share < 0.01, share)


def check_heap(program):
    """Attached after everything was stuck: the heap alone shows each chain and what it waits on."""
    r = report(program, "heap-stuck-net10")
    if not r:
        return
    pending = [(row["method"].rpartition(".")[2], row["count"], row["state"], row["leaf"],
                row["kept_by"], row["source"]) for row in r["tasks"]["pending"]]
    never = "static field 'never', TaskCompletionSource<int>"
    check("heap-stuck-net10: pending", sorted(pending[:3]) == [
        ("HandleRequestAsync", 25, "pending", "source", never, "heap"),
        ("PriceOrderAsync", 1, "blocked", "source", never, "heap"),
        ("WaitGateAsync", 3, "pending", "semaphore", "static field 'gate', SemaphoreSlim", "heap"),
    ], pending)
    check("heap-stuck-net10: healthy", pending[3:] and pending[3][:4] ==
          ("HealthyAsync", 1, "pending", "delay") and len(pending) == 4, pending)
    chains = {row["method"]: row["chain"] for row in r["tasks"]["pending"]}
    check("heap-stuck-net10: chain", chains["Shop.Stuck.HandleRequestAsync"] == CHAIN, chains)
    check("heap-stuck-net10: blocked chain", chains["Shop.Stuck.PriceOrderAsync"] == CHAIN[:2],
          chains)
    walk = r["tasks"]["heap"]["walks"][0]
    seen = [walk[k] for k in ("objects", "edges", "types", "roots", "statics", "lost_events",
                              "objects_without_type_name", "complete")]
    check("heap-stuck-net10: walk", seen == [646, 913, 175, 146, 95, 0, 0, True], seen)
    ids = finding_ids(r)
    check("heap-stuck-net10: the walk's collection is not the program's doing",
          "gc.induced" not in ids, ids)
    check("heap-stuck-net10: one walk is no proof", "tasks.one-walk" in ids and
          not ids & {"tasks.stuck", "tasks.sync-over-async", "tasks.deadlock"}, ids)


def check_starve(program):
    """400 tasks scheduled and none of them started; pool threads block in Task.Wait."""
    for name, threads in (("starve-net8", 33), ("starve-net10", 32)):
        r = report(program, name)
        if not r:
            continue
        blocked = rows(r, "Shop.Starve.BlockingHandler")
        check(f"{name}: blocked", [row["count"] for row in blocked] == [threads], blocked)
        queued = [row for row in r["tasks"]["pending"] if row["state"] == "queued"]
        check(f"{name}: queued", [(row["method"], row["count"]) for row in queued] ==
              [("Shop.Starve.Run.<lambda>", 400)], queued)
        check(f"{name}: scheduled", r["tasks"]["scheduled"] == 400, r["tasks"]["scheduled"])


def check_cpu(program):
    """Hot, Warm and Mild do 60, 30 and 10 % of the work by construction."""
    want = {"Shop.Cpu.Hot": 60, "Shop.Cpu.Warm": 30, "Shop.Cpu.Mild": 10}
    for name in ("cpu-net31", "cpu-net8", "cpu-net10", "cpu-net11", "v6-cpu-net10"):
        r = report(program, name)
        if not r:
            continue
        share = {row["method"]: row["exclusive_percent"] for row in r["cpu"]["methods"]}
        for method, percent in want.items():
            check(f"{name}: {method}", abs(share.get(method, 0) - percent) < 1.5,
                  share.get(method))
        check(f"{name}: hottest", r["cpu"]["methods"][0]["method"] == "Shop.Cpu.Hot",
              r["cpu"]["methods"][0])
        check(f"{name}: hot path", r["cpu"]["hot_path"][-1]["method"] == "Shop.Cpu.Hot",
              r["cpu"]["hot_path"])
        check(f"{name}: finding", "cpu.hot-method" in finding_ids(r), finding_ids(r))
        top = [row["raw"] for row in r["cpu"]["methods"][:5]]
        check(f"{name}: nothing that waits is near the top",
              not any(word in raw for raw in top for word in WAITS), top)
        check(f"{name}: no pseudo frames", not any("_TIME" in raw for raw in top), top)
        split = [r["cpu"]["samples_" + c] for c in ("on_cpu", "waiting", "unknown")]
        check(f"{name}: classes", sum(n or 0 for n in split) == r["cpu"]["samples"], split)
        # Samples of running threads tell nothing of those that wait.
        knows = not name.startswith("v6")
        check(f"{name}: waits", [split[1] is not None, r["cpu"]["waits_recorded"]] == [knows] * 2,
              split)
    whole = report(program, "cpu-net10")
    if whole:
        # One thread that computes all the time keeps one core busy in any part of it.
        cpu = report(program, "cpu-net10", "--from", "1s", "--to", "2s")["cpu"]
        check("cpu-net10: a second of it", cpu["samples"] + cpu["samples_left_out"] ==
              whole["cpu"]["samples"] and abs(cpu["cpu_time_ms"] - 1000) < 20, cpu["cpu_time_ms"])
        r = report(program, "cpu-net10", "--from", "1s", "--to", "2s", "--limit",
                   "cpu.hot-method.warning=0.9cores")
        found = [f for f in r["findings"] if f["id"] == "cpu.hot-method"]
        check("cpu-net10: hot in that second", found and found[0]["severity"] == "warning", found)
        cpu = report(program, "cpu-net10", "--from", "10s")["cpu"]
        check("cpu-net10: behind its end", cpu["samples"] == 0 and
              cpu["samples_left_out"] == whole["cpu"]["samples"], cpu)
    r = report(program, "v6-cpu-net10", "--top", "0")
    if r:
        counts = {row["method"]: row["exclusive_samples"] for row in r["cpu"]["methods"]}
        seen = [counts.get(m) for m in want], r["cpu"]["samples"]
        check("v6-cpu-net10: samples", seen == ([1787, 896, 298], 2989), seen)


def check_waits(program):
    """Threads that wait for each other, or for ever, use no CPU."""
    for name in ("deadlock-net8", "deadlock-net10", "deadlock-net11", "zombie-net10"):
        r = report(program, name)
        if not r:
            continue
        share = r["cpu"]["samples_waiting"] / r["cpu"]["samples"]
        check(f"{name}: waiting", share > 0.99, share)
        check(f"{name}: no hot method", "cpu.hot-method" not in finding_ids(r), finding_ids(r))


def check_idle(program):
    """What waits or idles uses at most 2 % and is not hot (D#3554)."""
    for name in ("stuck-net10", "stuck-net9", "stuck-net31", "zombie-net10", "deadlock-net8",
                 "deadlock-net10", "deadlock-net11"):
        r = report(program, name)
        if not r:
            continue
        share = r["cpu"]["samples_on_cpu"] / r["cpu"]["samples"]
        check(f"{name}: on CPU", share <= 0.02, share)
        hot = {"cpu.hot-method", "cpu.one-thread", "cpu.spinning", "cpu.hot-tier0"}
        check(f"{name}: nothing is hot", not hot & finding_ids(r), finding_ids(r))
        wall = report(program, name, "--view", "wall")
        check(f"{name}: the wall view has all samples",
              wall["cpu"]["samples"] == r["cpu"]["samples"] and wall["cpu"]["view"] == "wall",
              wall["cpu"]["samples"])


def check_gc(program):
    for name in ("gc-net10", "gc-net8", "gc-net31", "gc-server-net10"):
        r = report(program, name)
        if not r:
            continue
        callers = r["gc"]["induced_by"]
        check(f"{name}: who calls GC.Collect", [c["method"] for c in callers] ==
              ["Shop.Gc.Run"], callers)
        check(f"{name}: calls", abs(callers[0]["count"] - r["gc"]["induced"]) <= 1, callers)
        check(f"{name}: samples are not recorded", r["cpu"]["samples"] is None, r["cpu"]["samples"])
        check(f"{name}: tasks are not recorded", r["tasks"]["pending"] is None,
              r["tasks"]["pending"])
    r = report(program, "gc-aot10")
    if r:
        check("gc-aot10: processors", r["trace"]["processors"] is None, r["trace"]["processors"])
        check("gc-aot10: runtime", r["trace"]["runtime"] is None, r["trace"]["runtime"])
        check("gc-aot10: CPU", "cpu.not-recorded" in finding_ids(r), finding_ids(r))
    r = report(program, "alloc-sampled-net10")
    if r:
        check("alloc-sampled-net10: allocated", r["gc"]["allocated_bytes"] is None,
              r["gc"]["allocated_bytes"])


def check_count(program):
    """A filter chooses what is counted; what the trace is does not depend on it."""
    counted = {"events", "counts", "events_by_thread", "first_event_ms", "last_event_ms"}
    for name in ("gc-net10", "stuck-net31", "gc-aot10"):
        path = find(name)
        if not path:
            continue
        all_, some = (json.loads(subprocess.run(
            [program, "events", "--count", "--json", path, *args], capture_output=True, text=True,
            check=True).stdout)["trace"] for args in ((), ("--provider", "*EventPipe")))
        for key in all_.keys() - counted:
            check(f"{name}, filtered: {key}", some[key] == all_[key], (some[key], all_[key]))
        kept = {k: n for k, n in all_["counts"].items() if "EventPipe/" in k}
        check(f"{name}, filtered: counts", some["counts"] == kept and kept, some["counts"])
        check(f"{name}, filtered: events", some["events"] == sum(kept.values()), some["events"])


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    program = sys.argv[1]
    check_stuck(program)
    check_heap(program)
    check_starve(program)
    check_cpu(program)
    check_waits(program)
    check_idle(program)
    check_gc(program)
    check_count(program)
    for fault in faults:
        print("wrong: " + fault)
    print("all right" if not faults else f"{len(faults)} wrong")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
