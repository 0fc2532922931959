# SPDX-License-Identifier: MIT
"""collect --heap on a program that got stuck before we came: the heap alone shows every chain.

Short: .NET 10; DRD_LONG: all of them.  The second walk of .NET 8 has names for its types, and one
that ends early leaves nothing behind.
"""
import os
import re
import signal
import time

import heap_program
import live
from live import check

LATE_S = 5  # all 25 requests are stuck by then
CHAIN = ["Shop.Stuck.FetchPriceAsync", "Shop.Stuck.PriceOrderAsync",
         "Shop.Stuck.HandleRequestAsync"]
NEVER = "static field 'never', TaskCompletionSource<int>"


def rows(report):
    return {row["method"]: row for row in report.get("tasks", {}).get("pending") or []}


def same(row, **want):
    return all(row.get(k) == v for k, v in want.items())


def judge(target, report, walks):
    """25 + 1 chains, 3 that wait for a semaphore, and a loop that is well."""
    found = rows(report)
    names = ["Shop.Stuck." + n for n in ("HandleRequestAsync", "PriceOrderAsync", "WaitGateAsync",
                                         "HealthyAsync")]
    if not check(sorted(found) == sorted(names), target + ": nothing else is pending", found):
        return
    handle, price, gate, healthy = (found[n] for n in names)
    stuck = True if walks == 2 else None
    check(same(handle, count=25, chain=CHAIN, leaf="source", kept_by=NEVER, stuck=stuck,
               state="stuck" if stuck else "pending"), target + ": requests", handle)
    check(same(price, count=1, chain=CHAIN[:2], state="blocked", stuck=stuck),
          target + ": the blocked thread", price)
    check(same(gate, count=3, leaf="semaphore", stuck=stuck), target + ": semaphore", gate)
    check(same(healthy, count=1, leaf="delay", state="pending"), target + ": timer loop", healthy)
    ids = [f["id"] for f in report["findings"]]
    check(("tasks.stuck" in ids) == (walks == 2), target + ": finding", ids)
    check(("tasks.one-walk" in ids) == (walks == 1), target + ": one walk is no proof", ids)
    check(not any("HealthyAsync" in f["title"] for f in report["findings"]),
          target + ": the timer loop is not reported", report["findings"])
    seen = report["tasks"]["heap"]["walks"]
    check(len(seen) == walks, target + ": walks", seen)
    for walk in seen:
        check(walk["complete"] and not walk["lost_events"], target + ": walk is whole", walk)
        check(walk["objects_without_type_name"] * 100 < walk["objects"],
              target + ": types have names", walk)
    if walks == 2:
        check(handle["same_objects"] == 25, target + ": the same objects, wherever they moved",
              handle)


def collect(app, folder, *args):
    trace = os.path.join(folder, "heap.nettrace.zst")
    r = live.run("collect", "-p", app.pid, "-o", trace, "--force", "--json", *args, timeout=900)
    check(r.code == 0, "it ends by itself, well", r)
    check("stands still" in r.err, "the cost is said beforehand", r.err)
    check("stood still for" in r.err, "and what it was", r.err)
    report = r.json()
    said = [float(x) for x in re.findall(r"stood still for ([\d.]+) ms", r.err)]
    told = [w["pause_ms"] for w in report["tasks"]["heap"]["walks"]]
    check(len(said) == len(told) and all(t is not None and abs(s - t) < 0.1 and t > 0.1
                                         for s, t in zip(said, told)),
          "the pauses that are said are those of the report", (said, told))
    return report, trace


def one(target, folder):
    with live.shop(target, "stuck") as app:
        time.sleep(LATE_S)
        report, trace = collect(app, folder, "--heap")
        judge(target, report, 2)
        again = live.run("report", "--json", trace)
        judge(target + ", from the file", again.json(), 2)
        # D#5116: what was told once is told again.
        report, _ = collect(app, folder, "--heap", "--walks", "1")
        judge(target + ", again", report, 1)


def interrupted(target, folder):
    """Ctrl-C between the walks: what came is reported, and the next session works."""
    with live.shop(target, "stuck") as app:
        run = live.Running("collect", "-p", app.pid, "-o", os.path.join(folder, "cut.nettrace"),
                           "--json", "--heap")
        for line in run.process.stderr:
            if b"heap walk 1 of 2:" in line:
                break
        run.signal(signal.SIGINT)
        r = run.finish()
        check(r.code == 0 and r.seconds < 10, "it stops between the walks", r)
        walks = (r.json().get("tasks", {}).get("heap") or {}).get("walks", [])
        check(len(walks) == 1, "the first walk is reported", walks)
        collect(app, folder, "--heap", "--walks", "1")


def found(report):
    """(count, state, chain) of each row, names without their class."""
    return sorted((row["count"], row["state"], " <- ".join(
        name.replace("Waits.", "") for name in row["chain"])) for row in rows_list(report))


def rows_list(report):
    return report.get("tasks", {}).get("pending") or []


SHAPES = sorted([
    (12, "stuck", "LeafAsync <- CallerAsync <- Task.WhenAll <- AllAsync"),
    (12, "stuck", "LeafAsync <- CallerAsync <- Task.WhenAny <- AnyAsync"),
    (4, "stuck", "LeafAsync <- CallerAsync <- RunAsync.<lambda> <- Task.Run <- RunAsync"),
    (4, "stuck", "LeafAsync <- CallerAsync <- Task.ContinueWith <- ThenAsync"),
    (4, "stuck", "Task.WaitAsync <- System.Threading.SemaphoreSlim.WaitUntilCountOrTimeoutAsync"
                 " <- LimitAsync"),
    (4, "pending", "ReadAsync"),
    (4, "pending", "MoreAsync"),
    (4, "pending", "SleepAsync"),
    (4, "stuck", "ValueAsync <- OfValueAsync"),
    (4, "stuck", "LeafAsync <- CallerAsync <- Void"),
    (4, "stuck", "LeafAsync <- CallerAsync <- Items <- EachAsync"),
    (4, "stuck", "WithTokenAsync"),
    (4, "stuck", "HoldsAsync"),
    (4, "stuck", "LeafAsync <- CallerAsync"),  # the variable of HoldsAsync: nobody awaits it yet
])


def shapes(folder):
    """Everything that can stand between two methods, four times each, and a circle."""
    with heap_program.Heap("shapes", 4) as app:
        report, _ = collect(app, folder, "--heap")
        seen = found(report)
        circle = [row for row in seen if "FirstAsync" in row[2]]
        check([row for row in seen if row not in circle] == SHAPES, "shapes", seen)
        check([row[:2] for row in circle] == [(1, "stuck")], "the circle", circle)
        check(report["findings"][0]["id"] == "tasks.deadlock", "the circle comes first",
              report["findings"])


def busy(folder):
    """Twenty loops that are served in turns: the same shapes, other objects."""
    with heap_program.Heap("busy", 20) as app:
        report, _ = collect(app, folder, "--heap")
        check(not any(row["state"] == "stuck" for row in rows_list(report)),
              "busy is not stuck", rows_list(report))
        check("tasks.stuck" not in [f["id"] for f in report["findings"]], "nor a finding",
              report["findings"])


def many(folder):
    """100,000 pending tasks; a chain of 10,000."""
    with heap_program.Heap("tasks", 100000) as app:
        report, _ = collect(app, folder, "--heap")
        check([row[:2] for row in found(report)] == [(50000, "stuck")], "100,000 tasks",
              found(report))
        check(rows_list(report)[0]["same_objects"] == 50000, "all the same", rows_list(report))
    with heap_program.Heap("deep", 10000) as app:
        report, _ = collect(app, folder, "--heap", "--walks", "1")
        check([row["depth"] for row in rows_list(report)] == [10001], "a chain of 10,001",
              [row["depth"] for row in rows_list(report)])


def large(folder):
    """D#603: more than ten million objects, all counted, in bounded memory."""
    with heap_program.Heap("objects", 12_000_000) as app:
        report, _ = collect(app, folder, "--heap", "--walks", "1", "-o", "none")
        walk = report["tasks"]["heap"]["walks"][0]
        check(walk["objects"] >= 12_000_000 and walk["complete"], "all objects", walk)
        check(walk["objects_not_read"] == 0, "none left out", walk)
        check(walk["memory_bytes"] <= 48 * walk["objects"], "at most 48 bytes an object", walk)


def main():
    with live.scratch() as folder:
        for target in live.TARGETS[:-1] if live.LONG else ["net10"]:
            one(target, folder)
        if live.LONG:
            interrupted("net10", folder)
            shapes(folder)
            busy(folder)
            many(folder)
            large(folder)
    live.done()


main()
