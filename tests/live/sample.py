#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sample and history on real processes: the store after each way a run can end, and loops."""

import glob
import os
import signal
import subprocess
import time

from live import LONG, Running, check, done, parts, recorded, run, samples, scratch, shop, skip, wait_until

if run("help", "sample").code != 0:
    skip("this program was built without SQLite")


def traces(store):
    return sorted(os.listdir(os.path.join(store, "traces")))


def one_round(store):
    """What is found is said, one line each; numbers, findings and trace are in the store."""
    with shop("net10", "gc") as app:
        r = run("sample", "-p", app.pid, "--duration", "1s", "--store", store)
        check(r.code == 0, "a sample ends with 0", r)
        lines = r.out.splitlines()
        check(lines and all(x.startswith(("Shop[%d] " % app.pid, "shop[%d] " % app.pid))
                            for x in lines), "a line for each finding", r)
        got = samples(store)
        if not check(len(got) == 1 and got[0]["pid"] == app.pid and
                     got[0]["findings"] == len(lines),
                     "the store has the sample with its findings", got):
            return
        path = os.path.join(store, "traces", got[0]["trace_file"])
        check(run("report", path).code == 0, "the trace is whole")
        check(os.stat(path).st_mode & 0o77 == 0, "nobody else can read the trace")
        r = run("history", "show", got[0]["id"], "--json", "--store", store)
        metrics = r.json()["sample"]["metrics"]
        check(metrics.get("gc.count", 0) > 0, "the numbers of the report", metrics)
        r = run("history", "trend", "gc.pause_percent", "--store", store)
        check(r.code == 0 and "(1 samples)" in r.out, "a trend of one", r)
        r = run("sample", "-p", app.pid, "--duration", "1s", "--store", store, "--fail-on",
                "warning", "-q")
        check(r.code == 4 and not r.out, "a condition for monitoring, quietly", r)


def silent(store):
    """Nothing is said of a process that does nothing wrong."""
    with shop("net10", "idle") as app:
        r = run("sample", "-p", app.pid, "--duration", "1s", "--store", store)
        check(r.code == 0 and not r.out and not r.err, "silent when all is well", r)


def nobody(store):
    r = run("sample", "-n", "no-such-program", "--store", store)
    check(r.code == 5 and len(r.err.splitlines()) <= 2 and r.err, "nobody to sample: one line", r)
    r = run("sample", "-n", "no-such-program", "--every", "1s", "--count", "2", "--store", store)
    check(r.code == 5 and r.err.count("waiting for one") == 1, "nobody in any round: said once, 5", r)
    with shop("net10", "idle") as app:
        pid = app.pid
    r = run("sample", "-p", pid, "--every", "1s", "--count", "100", "--store", store)
    check(r.code == 5 and r.seconds < 20, "a pid that is gone does not come back", r)
    with subprocess.Popen(["sleep", "60"]) as alive:
        r = run("sample", "-p", alive.pid, "--every", "1s", "--count", "2", "--store", store)
        alive.kill()
    check(r.code == 5 and "2 rounds" in r.err, "one that lives is waited for", r)
    r = run("sample", "--all", "--profile", "gc,heap-tasks", "--store", store)
    check(r.code == 2 and "collect --heap" in r.err, "no walks of the heap", r)
    r = run("history", "regressions", "--at", "2099-01-01", "--store", store)
    check(r.code == 2 and "future" in r.err, "a split in the future", r)


def loop(store):
    """Rounds do not drift, and a process may come, go and be another of the same name."""
    begin = time.time()
    mark = str(100000 + os.getpid())  # not others of that name
    loop_run = Running("sample", "--match", "idle " + mark, "--duration", "500ms", "--every", "2s", "--count",
                       "4", "--store", store, "--no-traces")
    time.sleep(1.5)
    pids = []
    for _ in range(2):
        with shop("net10", "idle", mark) as app:
            pids.append(app.pid)
            wait_until("process %d was sampled" % app.pid,
                       lambda: any(s["pid"] == pids[-1] for s in samples(store)), 30)
    r = loop_run.finish()
    check(r.code == 0, "the loop ends with 0", r)
    check("4 rounds" in r.err or "rounds (" in r.err, "it sums up", r)
    check(r.seconds >= 6, "four rounds, two seconds apart", r.seconds)
    got = [s for s in samples(store) if s["pid"] in pids]
    for s in got:
        at = time.mktime(time.strptime(s["time"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
        check(abs((at - begin + 1) % 2 - 1) < 1.2, "a round begins when it is due",
              (at - begin, s))
    check(all(s["trace_file"] is None for s in got), "traces are not kept if not wanted")


def interrupted(store):
    """The row is there a moment before the round has ended: at any time from then on."""
    with shop("net10", "idle") as app:
        for i in range(40 if LONG else 4):
            before = len(samples(store))
            r = Running("sample", "-p", app.pid, "--duration", "500ms", "--every", "60s", "--store",
                        store)
            wait_until("the first round is nearly over", lambda: len(samples(store)) > before)
            time.sleep(i % 4 * 0.01)
            r.signal(signal.SIGTERM)
            r = r.finish(20)
            check(r.code == 0 and r.seconds < 20, "TERM behind a recording ends the loop", r)


def killed(store):
    """Killed while it records: the store opens, and what was left goes with the next run, unlike what
    another run is writing."""
    before = len(samples(store))
    with shop("net10", "cpu") as app:
        r = Running("sample", "-p", app.pid, "--duration", "20s", "--store", store)
        part = wait_until("the trace is being written",
                          lambda: glob.glob(os.path.join(store, "traces", "*.part")))
        r.signal(signal.SIGKILL)
        r.finish()
        check(len(samples(store)) == before, "nothing half-visible")
        with shop("net10", "idle") as second:
            other = Running("sample", "-p", second.pid, "--duration", "20s", "--store", store)
            lives = wait_until("another run writes", lambda: [
                x for x in glob.glob(os.path.join(store, "traces", "*.part"))
                if x not in (part or [])])
            r = run("sample", "-p", app.pid, "--duration", "500ms", "--store", store)
            check(r.code == 0, "the next run works", r)
            check([os.path.join(store, "traces", x) for x in traces(store)
                   if x.endswith(".part")] == lives, "and tidies up", traces(store), lives)
            other.signal(signal.SIGTERM)
            r = other.finish()
            check(r.code == 0 and not any(x.endswith(".part") for x in traces(store)),
                  "the other run is not disturbed", r)


def target_dies(store):
    """What there is is kept; which process it was is said."""
    with shop("net10", "gc") as app:  # it has events, whoever samples its CPU use
        r = Running("sample", "-p", app.pid, "--duration", "20s", "--store", store)
        wait_until("something is recorded", lambda: recorded(os.path.join(store, "traces")))
        app.process.kill()
        r = r.finish()
        check(r.code == 3 and "process %d (Shop) is incomplete" % app.pid in r.err,
              "the process is named", r)
        check([s["pid"] for s in samples(store)][-1] == app.pid, "the sample is kept")


def at_once(store):
    """One run at a time for a target."""
    with shop("net10", "idle") as app:
        first = Running("sample", "-p", app.pid, "--duration", "3s", "--store", store)
        wait_until("the first run records",
                   lambda: glob.glob(os.path.join(store, "traces", "*.part")))
        r = run("sample", "-p", app.pid, "--duration", "500ms", "--store", store)
        check(r.code == 0 and "another run" in r.err, "the second leaves it out and says so", r)
        r = first.finish()
        check(r.code == 0, "the first is not disturbed", r)


def full_disk():
    if os.geteuid() != 0:
        return
    with scratch() as folder, shop("net10", "gc") as app:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "none", folder],
                          stderr=subprocess.DEVNULL, check=False).returncode != 0:
            return
        try:
            store = os.path.join(folder, "store")
            filler = os.path.join(folder, "filler")
            run("sample", "-p", app.pid, "--duration", "300ms", "--store", store, "--no-traces")
            with open(filler, "wb") as f:
                try:
                    f.write(b"x" * (1 << 20))
                except OSError:
                    pass
            r = run("sample", "-p", app.pid, "--duration", "1s", "--store", store)
            check(r.code in (1, 3) and r.err, "a full disk is said", r)
            os.unlink(filler)
            r = run("sample", "-p", app.pid, "--duration", "300ms", "--store", store,
                    "--no-traces")
            check(r.code == 0, "with room again it works again", r)
        finally:
            subprocess.run(["umount", "-l", folder], check=False)


def main():
    with scratch() as folder:
        store = os.path.join(folder, "store")
        parts((one_round, silent, nobody, interrupted, killed, target_dies, at_once, loop), store)
    parts((full_disk,))
    done()


main()
