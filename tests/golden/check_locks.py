#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what the program says of locks, the thread pool and threads with what the recorded
programs do: values that no other tool computes.

usage: check_locks.py PROGRAM [FOLDER]

FOLDER has the traces (default: fixtures/ of the source tree).  Without them the test is skipped
(exit code 77).  Traces of healthy programs must give no finding of this kind.
"""
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NEEDED = ["deadlock-net8", "deadlock-net10", "deadlock-net11", "contention-net10",
          "contention-net11", "starve-net8", "starve-net10", "zombie-net10"]
HEALTHY = ("cpu-", "gc-", "exceptions-", "meters-", "alloc-", "v6-cpu-")
KINDS = ("locks", "threadpool", "threads")


class Checker:
    def __init__(self, name):
        self.name = name
        self.faults = []

    def equal(self, what, got, want):
        if got != want:
            self.faults.append(f"{what}: {got!r}, should be {want!r}")

    def near(self, what, got, want, tolerance):
        if got is None or abs(got - want) > tolerance:
            self.faults.append(f"{what}: {got!r}, should be about {want!r}")

    def findings(self, report, want):
        ids = [(f["id"], f["severity"]) for f in report["findings"]
               if f["id"].split(".")[0] in KINDS]
        self.equal("findings", ids, want)


def report_of(program, path):
    done = subprocess.run([program, "report", "--json", "--top", "0", path, "tasks", *KINDS],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{path}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def deadlock(a, b, a_ms, b_ms):
    """a is in TransferA and waits for a lock of b, which is in TransferB and waits for one of a."""
    def check(c, r):
        c.findings(r, [("locks.deadlock", "critical")])
        found = r["locks"]["deadlocks"]
        c.equal("deadlocks", len(found), 1)
        c.equal("suspected", r["locks"]["suspected_deadlocks"], [])
        if not found:
            return
        threads = {t["thread_id"]: t for t in found[0]["threads"]}
        c.equal("threads", sorted(threads), sorted([a, b]))
        c.equal("queued", found[0]["queued"], [])
        for me, other, name, ms in ((a, b, "A", a_ms), (b, a, "B", b_ms)):
            t = threads.get(me, {})
            c.equal(f"method of {me}", t.get("method"), f"Shop.Deadlock.Transfer{name}")
            c.equal(f"owner of {me}", t.get("owner_thread_id"), other)
            c.near(f"start of {me}", t.get("since_ms"), ms, 0.001)
        c.equal("locks", len(set(found[0]["locks"])), 2)
        c.equal("ended", r["locks"]["ended"], 0)
    return check


def deadlock_net11(c, r):
    deadlock(5672, 5673, 784.141, 784.506)(c, r)
    managed = {t["thread_id"]: t["managed_id"] for d in r["locks"]["deadlocks"]
               for t in d["threads"]}
    c.equal("managed ids", managed, {5672: 4, 5673: 5})


def contention_net10(c, r):
    locks = r["locks"]
    c.findings(r, [("locks.contention", "warning")])
    c.equal("starts", locks["count"], 2152)
    c.equal("stops", locks["ended"], 2150)
    c.near("total", locks["total_ms"], 3933.798, 0.001)
    c.near("longest", locks["max_ms"], 20.802, 0.001)
    c.equal("locks", locks["locks"], 1)
    c.equal("rows", len(locks["contention"]), 1)
    c.equal("deadlocks", locks["deadlocks"] + locks["suspected_deadlocks"], [])
    row = locks["contention"][0]
    c.equal("site", row["site"], "Shop.Contention.Work")
    c.equal("threads", row["threads"], 4)
    c.equal("owners", len(row["owners"]), 4)
    c.equal("count by owner", sum(o["count"] for o in row["owners"]) + row["owners_unknown"],
            row["count"])
    c.equal("held in", [h["method"] for h in row["held_in"]], ["Shop.Contention.Work"])
    c.equal("still waiting", row["still_waiting"], 2)


def contention_net11(c, r):
    locks = r["locks"]
    c.findings(r, [])
    c.equal("starts", locks["count"], 107)
    c.equal("stops", locks["ended"], 107)
    row = locks["contention"][0]
    c.equal("site", row["site"], "Shop.Contention.Work")
    # Without a rundown of threads managed ids cannot be told which OS thread they are.
    c.equal("owners", sorted(o["managed_id"] for o in row["owners"]), [4, 5, 6, 7])
    c.equal("owners' threads", {o["thread_id"] for o in row["owners"]}, {None})
    c.equal("deadlocks", locks["deadlocks"], [])


def starve(adjustments, threads):
    def check(c, r):
        pool = r["threadpool"]
        c.findings(r, [("threadpool.starvation", "critical")])
        c.equal("starvation", pool["starvation"], True)
        c.equal("adjustments", pool["adjustments"]["count"], adjustments)
        c.equal("reasons", pool["adjustments"]["by_reason"], {"cooperative_blocking": adjustments})
        c.equal("last count", pool["adjustments"]["workers_last"], threads)
        c.equal("history", len(pool["adjustments"]["history"]), adjustments)
        c.equal("blockers", [(b["method"], b["threads"]) for b in pool["blockers"]],
                [("Shop.Starve.BlockingHandler", threads)])
        c.equal("call", pool["blockers"][0]["call"], "System.Threading.Tasks.Task.Wait")
        c.equal("tasks queued", pool["queue"]["queued"], 400)
        c.equal("of them started", pool["queue"]["started"], 0)
        c.equal("evidence", [pool["evidence"][k] for k in ("by_samples", "by_adjustments")],
                [True, True])
        c.near("blocked percent", pool["evidence"]["blocked_percent"], 100, 0.2)
        c.equal("leaked threads", r["threads"]["leaked"], [])
    return check


def zombie_net10(c, r):
    threads = r["threads"]
    c.findings(r, [("threads.leak", "warning")])
    c.equal("created", threads["created"], 33)
    c.equal("groups", len(threads["leaked"]), 1)
    row = threads["leaked"][0]
    c.equal("method", row["method"], "Shop.Zombie.Forgotten")
    c.equal("threads", row["threads"], 40)
    c.equal("created in the session", row["created_in_session"], 30)
    c.equal("started by", row["started_by"], "Shop.Zombie.Run")
    c.equal("locks", r["locks"]["contention"], None)
    c.equal("starvation", r["threadpool"]["starvation"], None)


CHECKS = {
    "deadlock-net8": deadlock(25180, 25182, 1096.290, 1097.596),
    "deadlock-net10": deadlock(25138, 25139, 1193.285, 1193.625),
    "deadlock-net11": deadlock_net11,
    "contention-net10": contention_net10,
    "contention-net11": contention_net11,
    "starve-net8": starve(36, 33),
    "starve-net10": starve(23, 32),
    "zombie-net10": zombie_net10,
}


def healthy(c, r):
    c.findings(r, [])
    # That nothing is known of tasks is not a finding of this kind.
    c.equal("tasks", [f["id"] for f in r["findings"] if f["id"].startswith("tasks.") and
                      f["id"] not in ("tasks.not-recorded", "tasks.older-invisible")], [])
    c.equal("leaked threads", r["threads"]["leaked"] or [], [])
    c.equal("deadlocks", r["locks"]["deadlocks"] or [], [])


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    program = sys.argv[1]
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(TOP, "fixtures")
    end = ".nettrace.zst"
    there = {n[:-len(end)] for n in os.listdir(folder) if n.endswith(end)} \
        if os.path.isdir(folder) else set()
    missing = [n for n in NEEDED if n not in there]
    if missing:
        print(f"skipped: no {', '.join(missing)} in {folder}")
        return 77
    failed = 0
    for name in sorted(there):
        check = CHECKS.get(name) or (healthy if name.startswith(HEALTHY) else None)
        if not check:
            continue
        c = Checker(name)
        check(c, report_of(program, os.path.join(folder, name + end)))
        failed += bool(c.faults)
        print(("not ok " if c.faults else "ok ") + name)
        for fault in c.faults:
            print("    " + fault)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
