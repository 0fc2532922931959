#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""stack on live processes: what it shows of a process that got stuck before anybody watched, and
that it ends whatever state the process is in.

The short form takes two runtimes and a few rounds; DRD_LONG=1 all of them and fifty."""

import contextlib
import os
import signal
import subprocess
import time

from live import PROGRAM, Running, check, done, freeze, run, scratch, shop, wait_until

LONG = bool(os.environ.get("DRD_LONG"))
TARGETS = ["net8", "net9", "net10", "net11"] if LONG else ["net8", "net11"]
ROUNDS = 50 if LONG else 5
LATE_S = 5 if LONG else 2.5  # a deadlock takes 1.5 s to come about


def finding(report, name):
    return [f for f in report.get("findings", []) if f["id"] == name]


def rows_with(report, method):
    return [s for s in report.get("stacks", []) if method in s["frames"]]


def deadlock(target, r):
    j = r.json()
    check(r.code == 0, target + " deadlock: exit code 0", r)
    check(not finding(j, "locks.deadlock"), target + " deadlock: nothing is proven", r)
    found = finding(j, "locks.suspected-deadlock")
    if check(len(found) == 1, target + " deadlock: suspected", j.get("findings")):
        check(found[0]["severity"] == "warning", target + " deadlock: a warning", found)
        check("Shop.Deadlock.TransferA" in found[0]["evidence"] and
              "Shop.Deadlock.TransferB" in found[0]["evidence"],
              target + " deadlock: both methods", found)
        check("cannot be known after the fact" in found[0]["advice"],
              target + " deadlock: why it is not proven", found)
    for method in ("TransferA", "TransferB"):
        rows = rows_with(j, "Shop.Deadlock." + method)
        if check(len(rows) == 1, target + " deadlock: one thread in " + method, j.get("stacks")):
            check(rows[0]["state"] == "waiting" and "lock" in (rows[0]["waiting_on"] or "") and
                  rows[0]["cpu_ms"] == 0, target + " deadlock: it waits for a lock", rows)
    native = [s for s in j.get("stacks", []) if not s["managed"]]
    check(any(s["name"] == ".NET SigHandler" for s in native),
          target + " deadlock: threads without managed code", native)


def stuck(target, r):
    j = r.json()
    check(r.code == 0, target + " stuck: exit code 0", r)
    rows = rows_with(j, "Shop.Stuck.Blocker")
    if check(len(rows) == 1, target + " stuck: the blocked thread", j.get("stacks")):
        check(rows[0]["waiting_on"] == "a task", target + " stuck: it waits for a task", rows)
    check(finding(j, "tasks.sync-over-async"), target + " stuck: sync over async",
          j.get("findings"))
    check("the heap is walked" in r.err, target + " stuck: what it costs is said", r.err)
    pending = [p for p in j.get("tasks", {}).get("pending") or [] if p["source"] == "heap"]
    seen = {p["method"]: (p["count"], p["state"], p["chain"]) for p in pending
            if p["state"] != "pending"}
    chain = ["Shop.Stuck.FetchPriceAsync", "Shop.Stuck.PriceOrderAsync",
             "Shop.Stuck.HandleRequestAsync"]
    check(seen.get("Shop.Stuck.HandleRequestAsync") == (25, "stuck", chain),
          target + " stuck: 25 chains", pending)
    check(seen.get("Shop.Stuck.PriceOrderAsync") == (1, "blocked", chain[:2]),
          target + " stuck: the chain of the blocked thread", pending)
    check(seen.get("Shop.Stuck.WaitGateAsync", (0,))[:2] == (3, "stuck"),
          target + " stuck: three wait for the semaphore", pending)
    check(len(seen) == 3, target + " stuck: not the loop of the timer", seen)


def late(targets):
    """All at once: most of the time is spent with waiting."""
    with contextlib.ExitStack() as stack:
        apps = [(target, mode, stack.enter_context(shop(target, mode)))
                for target in targets for mode in ("deadlock", "stuck")]
        time.sleep(LATE_S)
        runs = [(target, mode, Running("stack", "-p", app.pid, "--json"))
                for target, mode, app in apps]
        for target, mode, r in runs:
            {"deadlock": deadlock, "stuck": stuck}[mode](target, r.finish())


def from_the_start(targets):
    """Who watches from before it happens gets proof, and hears of it at once (not on 11: there
    which thread an owner is comes with the rundown)."""
    with contextlib.ExitStack() as stack:
        apps = [(target, stack.enter_context(shop(target, "deadlock"))) for target in targets]
        runs = [(target, Running("collect", "-p", app.pid, "--profile", "locks", "-o", "none",
                                 "--json", "--duration", "5s")) for target, app in apps]
        for target, r in runs:
            result = r.finish()
            found = finding(result.json(), "locks.deadlock")
            check(len(found) == 1 and found[0]["severity"] == "critical",
                  target + " watched: a deadlock", result)
            if target != "net11":
                check(result.err.count("wait for each other's locks") == 1,
                      target + " watched: said while it goes on", result.err)


def busy():
    """Every processor is taken many times over: an answer, or a failure that says so."""
    spin = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
            for _ in range(4 * (os.cpu_count() or 1))]
    try:
        with shop("net10", "cpu", seconds=600) as app:
            # Its socket is there before its first method is.
            wait_until("the program has begun", lambda: "Shop.Program.Main" in run(
                "stack", "-p", app.pid, "--duration", "100ms", "--json", "--no-heap",
                timeout=90).out, 60)
            for n in range(ROUNDS):
                r = run("stack", "-p", app.pid, "--duration", "100ms", "--json",
                        "--no-heap", timeout=90)
                what = "busy, round %d: " % n
                if r.code == 0:
                    check(rows_with(r.json(), "Shop.Program.Main"), what + "stacks", r)
                else:
                    check(r.err and r.code in (1, 3, 5), what + "a failure says why", r)
    finally:
        for p in spin:
            p.kill()
            p.wait()


def suspended():
    """A session in a suspended runtime that is closed again makes .NET 9 and 10 crash later."""
    for target in ["net10"] + (["net8", "net9", "net11"] if LONG else []):
        env = {"DOTNET_DefaultDiagnosticPortSuspend": "1"}
        with scratch() as folder, shop(target, "idle", env=env) as app:
            for command in (["stack"], ["sample", "--store", os.path.join(folder, "store")]):
                r = run(*command, "-p", app.pid)
                check(r.code in (1, 5) and r.out == "", target + ": suspended: refused", r)
            r = run("stack", "-p", app.pid)
            check(r.code == 5 and "process resume" in r.err, target + ": suspended: says so", r)
            r = run("collect", "-p", app.pid, "--duration", "500ms", "-o", "none", "-q")
            check(r.code == 0, target + ": suspended: recorded and let go", r)
            time.sleep(0.5)
            check(app.process.poll() is None, target + ": suspended: lives on",
                  app.process.poll())


def stopped():
    with shop("net10", "idle") as app:
        freeze(app.pid)
        r = run("stack", "-p", app.pid)
        check(r.code == 5 and "is stopped" in r.err and r.out == "" and r.seconds < 12,
              "stopped: said at once", r)
        os.kill(app.pid, signal.SIGCONT)
        # In the middle of it.
        r = Running("stack", "-p", app.pid, "--duration", "30s", "--no-heap")
        wait_until("stopped: the session has begun", lambda: has_sampler(app.pid))
        freeze(app.pid)
        result = r.finish()
        check(result.code == 5 and "is stopped" in result.err and result.seconds < 15,
              "stopped: said in the middle", result)
        os.kill(app.pid, signal.SIGCONT)
        r = run("stack", "-p", app.pid, "--duration", "50ms", "--no-heap")
        check(r.code == 0, "stopped: no harm was done", r)


def has_sampler(pid):
    """A session makes threads: those for its stream and for its samples."""
    names = []
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, tid), encoding="utf-8") as f:
                names.append(f.read().strip())
        except OSError:
            pass
    return names.count(".NET EventPipe") >= 2


def ends():
    with shop("net10", "idle") as app:
        r = Running("stack", "-p", app.pid, "--duration", "30s", "--no-heap")
        wait_until("ends: the session has begun", lambda: has_sampler(app.pid))
        os.kill(app.pid, signal.SIGKILL)
        result = r.finish()
        check(result.code in (1, 3, 5) and result.err and result.seconds < 15,
              "ends: the target is killed", result)
    with shop("net10", "idle") as app:
        r = Running("stack", "-p", app.pid, "--duration", "30s", "--json", "--no-heap")
        wait_until("ends: the session has begun", lambda: has_sampler(app.pid))
        time.sleep(0.3)
        r.signal(signal.SIGINT)
        result = r.finish()
        check(result.code in (0, 1) and result.seconds < 15, "ends: a signal", result)


def main():
    check(os.path.exists(PROGRAM), "there is a program")
    late(TARGETS)
    from_the_start(["net8", "net9", "net10", "net11"] if LONG else ["net10"])
    stopped()
    suspended()
    ends()
    busy()
    done()


main()
