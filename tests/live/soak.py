#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run after run on one process, some of them killed: nothing is left behind in it.

The short form has a few dozen runs; DRD_LONG=1 a thousand and 200 kills, and for the memory that
is left, the same recording by us and by dotnet-trace, on two processes."""

import glob
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import time

from live import (LONG, PROGRAM, Running, check, done, freeze, in_process_sessions, run, scratch, shop,
                  sockets, wait_until)

RUNS, KILLS = (1000, 200) if LONG else (24, 8)
WARM = max(RUNS // 10, 8)  # runs after which what a process needs but once is there
WISHES = [[], ["--early-symbols"], ["--profile", "gc"], ["--profile", "cpu,tasks,locks,http"],
          ["--profile", "counters"]]
# A runtime that is told to stop just as it reads its meters first, after a second, may lock itself
# up: these runs end around that, too, and rely on a stop that is put off.
METERS = WISHES[-1]
COMPARED = 60  # runs
LIMIT = 64  # sessions of one process


class Seen:
    """What a process has open; sockets of ours among it come and go."""

    def __init__(self, app):
        self.descriptors = len(os.listdir("/proc/%d/fd" % app.pid))
        self.threads = len(os.listdir("/proc/%d/task" % app.pid))
        self.rss = rss(app)

    def __str__(self):
        return "%d descriptors, %d threads, %.1f MB" % (self.descriptors, self.threads,
                                                        self.rss / 1e6)


def rss(app):
    with open("/proc/%d/statm" % app.pid, encoding="utf-8") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def settle(app):
    """When a session's end is through, in the process as well."""
    wait_until("the sessions are gone", lambda: in_process_sessions(app) == 0)
    last = None
    for _ in range(100):
        now = Seen(app)
        if last and (now.descriptors, now.threads) == (last.descriptors, last.threads):
            return now
        last = now
        time.sleep(0.1)
    return now


def one_run(app, folder, chance, wish):
    """A recording, ended after a random time in a random way."""
    args = ["-o", os.path.join(folder, "x.nettrace") if chance.random() < 0.5 else "none", *wish]
    seconds = chance.uniform(0.02, 1.7 if wish is METERS else 0.4)
    if chance.random() < 0.3:
        r = Running("collect", "-p", app.pid, "-q", "--force", *args, "--duration",
                    "%dms" % max(1, seconds * 1000))
    else:
        r = Running("collect", "-p", app.pid, "-q", "--force", *args, "--duration", "60s")
        time.sleep(seconds)
        r.signal(chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
    result = r.finish()
    # A signal may come before there is a handler, or before the session has begun.
    check(result.code in (0, 1, 5, -signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP),
          "a run ends well", result)
    return result.code


def one_kill(app, folder, chance):
    r = Running("collect", "-p", app.pid, "-q", "-o", os.path.join(folder, "k.nettrace"),
                "--duration", "60s")
    time.sleep(chance.uniform(0, 0.4))
    if chance.random() < 0.3:  # in the middle of its end
        r.signal(signal.SIGINT)
        time.sleep(chance.uniform(0, 0.1))
    r.signal(signal.SIGKILL)
    r.finish()
    for path in glob.glob(os.path.join(folder, "k.nettrace*")):
        os.unlink(path)


def ask(app, command, payload):
    """The connection, and what came back first."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(sockets(app.pid)[0])
    s.sendall(b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", 20 + len(payload), 2, command, 0) + payload)
    return s, s.recv(28)


def sessions_to_be_had(app):
    """How many sessions can be opened: those that are left over are missing.  Nothing is written in
    them, so they stay: the process is of no use afterwards."""
    name = "Microsoft-Windows-DotNETRuntime\0"
    nothing = struct.pack("<IIBI", 1, 1, 0, 1) + struct.pack("<QI", 0, 1)
    nothing += struct.pack("<I", len(name)) + name.encode("utf-16le") + struct.pack("<I", 0)
    opened = []
    for _ in range(LIMIT + 1):
        s, reply = ask(app, 3, nothing)
        if reply[17:18] != b"\0":
            s.close()
            break
        opened.append(s)
    for s in opened:
        s.close()
    return len(opened)


def soak(app, folder, chance):
    codes = {}
    begin = time.monotonic()
    r = run("collect", "-p", app.pid, "-q", "-o", "none", *METERS, "--duration", "2s")
    check(r.code == 0, "meters are read", r)  # by threads that stay from then on
    for i in range(RUNS):
        if i == WARM:
            before = settle(app)
        code = one_run(app, folder, chance, WISHES[i % len(WISHES)])
        codes[code] = codes.get(code, 0) + 1
        if LONG and i % 100 == 99:
            print("after %d runs: %s, exit codes %s" % (i + 1, Seen(app), codes), flush=True)
    after = settle(app)
    print("%d runs in %.0f s, exit codes %s" % (RUNS, time.monotonic() - begin, codes))
    print("before: %s\nafter:  %s" % (before, after))
    check(codes.get(0, 0) > RUNS * 0.7, "most runs recorded something", codes)
    check(after.descriptors <= before.descriptors, "runs: no descriptor is left", before, after)
    check(after.threads <= before.threads, "runs: no thread is left", before, after)
    for _ in range(KILLS):
        one_kill(app, folder, chance)
    killed = settle(app)
    print("after %d kills: %s" % (KILLS, killed), flush=True)
    check(killed.descriptors <= before.descriptors, "kills: no descriptor is left", before, killed)
    check(killed.threads <= before.threads, "kills: no thread is left", before, killed)
    check(sessions_to_be_had(app) == LIMIT, "no session is left over")
    return (after.rss - before.rss) / (RUNS - WARM)


def cancelled():
    """Ended before the runtime has answered: the session that it opens then has no reader, and
    nothing to write that would tell it."""
    with shop("net10", "idle", 300) as app:
        for _ in range(12 if LONG else 6):
            freeze(app.pid)
            r = Running("collect", "-p", app.pid, "-q", "-o", "none", "--profile", "gc",
                        "--duration", "60s")
            time.sleep(0.15)
            r.signal(signal.SIGINT)
            result = r.finish()
            os.kill(app.pid, signal.SIGCONT)
            check(result.code in (5, -signal.SIGINT), "cancelled: exit code", result)
        wait_until("cancelled: no session is left open", lambda: in_process_sessions(app) == 0)
        check(sessions_to_be_had(app) == LIMIT, "cancelled: no session is left over")


def growth(command):
    """What a recording of a second leaves in a process, in bytes, on average."""
    with shop("net10", "cpu", 36000) as app:
        for i in range(COMPARED + COMPARED // 10):
            if i == COMPARED // 10:
                before = settle(app)
            subprocess.run([*command, "-p", str(app.pid)], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                           timeout=120)
        after = settle(app)
    name = os.path.basename(command[0])
    print("%s, %d runs: before: %s, after: %s" % (name, COMPARED, before, after), flush=True)
    return (after.rss - before.rss) / COMPARED


def compare(folder):
    """The same recording by dotnet-trace, as often."""
    tool = os.path.expanduser("~/.cache/drdotnet-trace/dotnet-tools/dotnet-trace")
    if not shutil.which("dotnet") or not os.path.exists(tool):
        print("not measured: dotnet-trace is not there")
        return
    path = os.path.join(folder, "y.nettrace")
    theirs = growth([tool, "collect", "--duration", "00:00:00:01", "-o", path])
    ours = growth([PROGRAM, "collect", "--duration", "1s", "-o", path, "--force", "-q", "--profile",
                   "dotnet-common,dotnet-sampled-thread-time"])
    check(ours <= max(theirs, 0) + 4096, "no more growth than dotnet-trace leaves", ours, theirs)
    print("growth by a run: %.0f bytes, with dotnet-trace %.0f bytes" % (ours, theirs))


if __name__ == "__main__":
    seed = int(os.environ.get("DRD_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
    print("DRD_SEED=%d" % seed)
    with scratch() as folder:
        cancelled()
        with shop("net10", "cpu", 36000) as app:
            ours = soak(app, folder, random.Random(seed))
            check(app.process.poll() is None, "the process is alive")
        print("growth of the process by a run: %.0f bytes" % ours)
        if LONG:
            compare(folder)
    done()
