#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several processes in one run: by their numbers, as a tree, and one that is waited for."""

import glob
import json
import os
import signal
import subprocess
import time

from live import (App, Running, check, done, events, in_process_sessions, parts, run, scratch,
                  shop, wait_until, workload)

SHOP = os.path.join(workload("net10"), "shop")
OWN_NAME = "drd%d" % os.getpid()  # nobody else's on this machine


def own(folder):
    """The workload as a program of that name."""
    path = os.path.join(folder, OWN_NAME)
    if not os.path.exists(path):
        os.symlink(os.path.join(workload("net10"), "bin", "Shop"), path)
    return path


def complete(path, what):
    trace, code = events(path)
    check(code == 0 and trace.get("complete") is True and trace.get("events", 0) > 0,
          what + ": complete", path, trace)


def numbers(folder):
    with shop("net10", "cpu") as a, shop("net8", "gc") as b, shop("net31", "idle") as c:
        pids = [x for app in (a, b, c) for x in ("-p", app.pid)]
        r = run("collect", *pids, "-p", a.pid, "--duration", "1s", "--json", "-o",
                os.path.join(folder, "n.nettrace"))
        check(r.code == 0, "numbers: exit code 0", r)
        # One report each, one behind the other, and files that are numbered.
        reports, rest = [], r.out
        while rest.strip():
            report, end = json.JSONDecoder().raw_decode(rest.lstrip())
            rest = rest.lstrip()[end:]
            reports.append(report)
        check(sorted(j["trace"]["process_id"] for j in reports) ==
              sorted(app.pid for app in (a, b, c)), "numbers: three reports",
              [j["trace"]["process_id"] for j in reports])
        for name in ("n.nettrace", "n-2.nettrace", "n-3.nettrace"):
            complete(os.path.join(folder, name), "numbers")
        check(len(glob.glob(os.path.join(folder, "n*"))) == 3, "numbers: the same one once",
              os.listdir(folder))
        # One signal ends all of them.
        r = Running("collect", *pids, "-o", os.path.join(folder, "s-%p.nettrace"), "--report",
                    os.path.join(folder, "s.json"), "--json")
        wait_until("signal: three are recorded",
                   lambda: len(glob.glob(os.path.join(folder, "s-*.part"))) == 3 and
                   all(os.path.getsize(p) for p in glob.glob(os.path.join(folder, "s-*.part"))))
        r.signal(signal.SIGINT)
        result = r.finish()
        check(result.code == 0, "signal: exit code 0", result)
        for app in (a, b, c):
            complete(os.path.join(folder, "s-%d.nettrace" % app.pid), "signal")
            check(in_process_sessions(app) == 0, "signal: no session is left")
        check(sorted(os.path.basename(p) for p in glob.glob(os.path.join(folder, "s*.json"))) ==
              ["s-2.json", "s-3.json", "s.json"], "signal: three reports", os.listdir(folder))
        # The worst of all is the exit code; the others are not harmed.
        r = Running("collect", "-p", a.pid, "-p", b.pid, "--duration", "3s", "-o",
                    os.path.join(folder, "w-%p.nettrace"))
        wait_until("worst: both are recorded",
                   lambda: len([p for p in glob.glob(os.path.join(folder, "w-*.part"))
                                if os.path.getsize(p)]) == 2)
        os.kill(b.pid, signal.SIGKILL)
        result = r.finish()
        check(result.code == 3 and "killed by signal 9" in result.err, "worst: 3", result)
        complete(os.path.join(folder, "w-%d.nettrace" % a.pid), "worst: the other")
        r = run("collect", "-p", a.pid, "-p", 2147483000, "--duration", "1s", "-o", "none")
        check(r.code == 5, "one of them does not exist: nothing begins", r)
        r = run("collect", "-p", a.pid, "-p", c.pid, "-o", "-")
        check(r.code == 2 and "one process" in r.err, "standard output holds one", r)


def names(folder):
    with shop("net10", "idle") as a, shop("net10", "idle") as b:
        r = run("collect", "-n", "Shop", "--duration", "1s", "-o", "none")
        check(r.code == 2, "names: two match", r)
        check(str(a.pid) in r.err and str(b.pid) in r.err, "names: they are listed", r)
    with App([own(folder), "idle", "60"]) as a:
        path = os.path.join(folder, "name.nettrace")
        r = run("collect", "-n", OWN_NAME, "--duration", "1s", "-o", path)
        check(r.code == 0, "names: one matches", r)
        complete(path, "names")


def tree(folder):
    """What a shell has started, and what it starts meanwhile."""
    script = "%s cpu 60 & sleep 1.5; %s gc 60 & wait" % (SHOP, SHOP)
    shell = subprocess.Popen(["sh", "-c", script], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, start_new_session=True)
    other = shop("net10", "idle")
    try:
        time.sleep(0.3)
        r = run("collect", "-p", shell.pid, "--children", "--duration", "3s", "-o",
                os.path.join(folder, "tree-%p.nettrace"), "--report",
                os.path.join(folder, "tree-%p.json"), "--json")
        check(r.code == 0, "tree: exit code 0", r)
        found = glob.glob(os.path.join(folder, "tree-*.nettrace"))
        check(len(found) == 2, "tree: both are recorded", found, r)
        check(os.path.join(folder, "tree-%d.nettrace" % other.pid) not in found,
              "tree: nobody else is")
        for path in found:
            complete(path, "tree")
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        other.__exit__()
    with subprocess.Popen(["sleep", "60"]) as sleep:
        r = run("collect", "-p", sleep.pid, "--children", "--timeout", "500ms", "-o", "none")
        check(r.code == 5 and "no .NET process" in r.err, "tree: none in it", r)
        sleep.kill()
    r = run("collect", "--children", "-o", "none")
    check(r.code == 2, "tree: needs a root", r)


def wait_for(folder):
    path = os.path.join(folder, "wait.nettrace")
    r = Running("collect", "--wait-for", OWN_NAME, "--duration", "2s", "-o", path, "--json")
    time.sleep(1)
    check(r.process.poll() is None, "wait: it waits")
    with App([own(folder), "cpu", "60"], wait=False) as app:
        result = r.finish(30)
        check(result.code == 0, "wait: exit code 0", result)
        check(result.json().get("trace", {}).get("process_id") == app.pid, "wait: it is the one",
              result)
    complete(path, "wait")
    r = run("collect", "--wait-for", "no-such-name", "--timeout", "500ms", "-o", "none")
    check(r.code == 5 and r.seconds < 5 and "in time" in r.err, "wait: --timeout", r)
    r = Running("collect", "--wait-for", "no-such-name", "-o", "none")
    time.sleep(0.5)
    r.signal(signal.SIGTERM)
    result = r.finish(10)
    check(result.code == 5, "wait: a signal ends it", result)


if __name__ == "__main__":
    with scratch() as folder:
        parts((numbers, names, tree, wait_for), folder)
    done()
