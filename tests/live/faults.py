#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What goes wrong around a collection: slow readers, stopped and dying processes, no session left,
a clock that is set, limits of our own process.  Bounded time, the right exit code, a valid file, and
a target that is as it was."""

import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time

from live import (LONG, PROGRAM, Running, check, cpu_ticks, done, events, freeze,
                  in_process_sessions, parts, recorded, run, scratch, shop, sockets, wait_until)

# Every event there is.
STORM = "Microsoft-Windows-DotNETRuntime:ffffffffff:5,Microsoft-DotNETCore-SampleProfiler:0:4"


def slow_reader(folder):
    """More than can be written: reading pauses, the runtime drops, and at the end the rest is taken
    off it all the same."""
    if not shutil.which("ss"):
        print("not tried: a slow reader (there is no command 'ss')")
        return
    path, report = os.path.join(folder, "slow.nettrace"), os.path.join(folder, "slow.json")
    with shop("net10", "mixed") as app:
        r = subprocess.Popen([PROGRAM, "collect", "-p", str(app.pid), "--duration", "60s", "-o",
                              "-", "--providers", STORM, "--report", report, "--json"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        begin = time.monotonic()
        with open(path, "wb") as f:
            f.write(r.stdout.read(100000))
            # Nobody reads: 8 MB gather, then we stop reading, too.
            wait_until("slow: reading pauses", lambda: stands_still(app), 40)
            before = cpu_ticks(app.pid)
            time.sleep(1)
            check(cpu_ticks(app.pid) - before > 10, "slow: the target works on")
            r.send_signal(signal.SIGTERM)
            # The end of the stream is taken while nobody reads what we have.
            wait_until("slow: the target's session is gone", lambda: in_process_sessions(app) == 0)
            shutil.copyfileobj(r.stdout, f)
        err = r.stderr.read().decode()
        code = r.wait(60)
    trace, read_code = events(path)
    check(code == 3 and "too slow" in err, "slow: exit code 3, and why", code, err)
    check(read_code in (0, 3) and trace.get("events", 0) > 1000, "slow: what there is reads", trace)
    check(time.monotonic() - begin < 70, "slow: in bounded time")


def unread(app):
    """Bytes of the stream that the kernel holds for us."""
    out = subprocess.run(["ss", "-xn"], stdout=subprocess.PIPE, text=True, check=False).stdout
    return max([int(line.split()[3]) for line in out.split("\n")
                if "dotnet-diagnostic-%d-" % app.pid in line] + [0])


def stands_still(app):
    """For half a second the kernel holds as much as it takes."""
    first = unread(app)
    for _ in range(5):
        if first < 50000 or unread(app) != first:
            return False
        time.sleep(0.1)
    return True


def held(folder):
    """A process that is stopped answers nobody: whatever is asked of it, that is the reason given,
    and how it goes on."""
    store = os.path.join(folder, "store")
    with shop("net10", "idle", 300) as app:
        port = sockets(app.pid)[0]
        freeze(app.pid)
        for command in (["collect", "-p", app.pid, "-o", "none"],
                        ["collect", "--diagnostic-port", port + ",connect", "-o", "none"],
                        ["collect", "-p", app.pid, "-o", "none", "--heap"],
                        ["counters", "collect", "-p", app.pid, "-o", os.path.join(folder, "c.csv")],
                        ["process", "info", "-p", app.pid], ["process", "env", "-p", app.pid],
                        ["process", "resume", "-p", app.pid], ["stack", "-p", app.pid],
                        ["sample", "-p", app.pid, "--store", store]):
            r = run(*command, "--timeout", "500ms")
            check(r.code in (1, 5) and r.out == "" and r.seconds < 10, "held: refused", command, r)
            check("it is stopped by a signal" in r.err and
                  "let it go on: kill -CONT %d" % app.pid in r.err, "held: says why", command, r)
            check("overloaded" not in r.err, "held: and nothing else", command, r)
        r = run("doctor", "-p", app.pid, "--timeout", "500ms")
        check(r.code == 5 and "it is stopped by a signal" in r.out and "overloaded" not in r.out,
              "held: doctor", r)
        os.kill(app.pid, signal.SIGCONT)
        wait_until("held: no session is left", lambda: in_process_sessions(app) == 0)
        r = Running("collect", "-p", app.pid, "-o", os.path.join(folder, "held.nettrace"),
                    "--stop-timeout", "500ms", "--duration", "60s")
        wait_until("held: is recorded", lambda: recorded(folder, "held"))
        freeze(app.pid)
        r.signal(signal.SIGINT)
        r = r.finish()
        check(r.code == 3 and "it is stopped by a signal" in r.err and
              "kill -CONT %d" % app.pid in r.err, "held: at the end", r)


def stopped_target(folder, app):
    """SIGSTOP for a while in the middle: the recording goes on with it, and ends as it should."""
    path = os.path.join(folder, "paused.nettrace")
    r = Running("collect", "-p", app.pid, "--duration", "3s", "-o", path)
    wait_until("paused: something is recorded", lambda: recorded(folder, "paused"))
    freeze(app.pid)
    time.sleep(1)
    os.kill(app.pid, signal.SIGCONT)
    result = r.finish()
    check(result.code == 0, "paused: exit code 0", result)
    check(events(path)[0].get("complete") is True, "paused: complete")


def killed_at_any_time(folder):
    """The target dies at a random moment: over at once, and it is said.  By signal 9 alone: the
    runtime survives SIGABRT from outside, and may take its time over SIGTERM."""
    chance = random.Random(int(os.environ.get("DRD_SEED", "0")) or None)
    for i in range(40 if LONG else 5):
        path = os.path.join(folder, "dies-%d.nettrace" % i)
        with shop("net10", "mixed") as app:
            r = Running("collect", "-p", app.pid, "--duration", "60s", "-o", path)
            time.sleep(chance.uniform(0, 0.6))
            if chance.random() < 0.3:
                r.signal(signal.SIGTERM)
                time.sleep(chance.uniform(0, 0.1))
            begin = time.monotonic()
            os.kill(app.pid, signal.SIGKILL)
            result = r.finish(30)
        check(time.monotonic() - begin < 15, "dies: at once", result)
        check(result.code in (0, 3, 5, -signal.SIGTERM), "dies: exit code", result)
        check(result.code != 0 or events(path)[0].get("complete") is True, "dies: 0 is complete",
              result)
        check(result.code != 3 or not os.path.exists(path) or events(path)[1] in (0, 3),
              "dies: the file reads", result)
        check(result.code not in (3, 5) or result.err.strip(), "dies: says so", result)


def no_session_left(folder, app):
    """64 are open: collect says it, and leaves none behind."""
    name = "Microsoft-Windows-DotNETRuntime\0"
    payload = struct.pack("<IIBI", 1, 1, 0, 1) + struct.pack("<QI", 0, 1)
    payload += struct.pack("<I", len(name)) + name.encode("utf-16le") + struct.pack("<I", 0)
    message = b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", 20 + len(payload), 2, 3, 0) + payload
    opened = []
    for _ in range(64):
        s = socket.socket(socket.AF_UNIX)
        s.connect(sockets(app.pid)[0])
        s.sendall(message)
        check(s.recv(28)[17:18] == b"\0", "a session more")
        opened.append(s)
    path = os.path.join(folder, "none.nettrace")
    r = run("collect", "-p", app.pid, "--duration", "1s", "-o", path)
    check(r.code in (1, 5) and "64 sessions" in r.err, "64 sessions: says so", r)
    check(not os.listdir(folder), "64 sessions: no file", os.listdir(folder))
    check(in_process_sessions(app) == 64, "64 sessions: none more")
    for s in opened:
        s.close()


STEP = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
/* The wall clock is set back by an hour one second after the start. */
static long shift(void)
{
	static long begin;
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	if (!begin)
		begin = t.tv_sec;
	return t.tv_sec > begin ? -3600 : 0;
}
int clock_gettime(clockid_t id, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, id, t);
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		t->tv_sec += shift();
	return r;
}
int gettimeofday(struct timeval *tv, void *tz)
{
	struct timespec t;
	(void)tz;
	clock_gettime(CLOCK_REALTIME, &t);
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return 0;
}
time_t time(time_t *p)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (p)
		*p = t.tv_sec;
	return t.tv_sec;
}
"""


def clock_step(folder, app):
    """The wall clock is set while we record: durations are those of the other clock."""
    source, library = os.path.join(folder, "step.c"), os.path.join(folder, "step.so")
    with open(source, "w", encoding="utf-8") as f:
        f.write(STEP)
    if not shutil.which("gcc") or subprocess.call(["gcc", "-shared", "-fPIC", "-o", library,
                                                   source]) != 0:
        print("not tried: a clock that is set (no compiler)")
        return
    env = dict(os.environ, LD_PRELOAD=library)
    now = int(subprocess.run(["sh", "-c", "date +%s; sleep 2.1; date +%s"], env=env, text=True,
                             stdout=subprocess.PIPE, check=True).stdout.split()[0])
    check(abs(now - time.time()) < 10, "clock: the library does nothing at first", now)
    r = run("collect", "-p", app.pid, "--duration", "2500ms", "-o", "none", "--json", env=env)
    check(r.code == 0 and 2.4 < r.seconds < 12, "clock: the duration holds", r)
    told = re.search(r"recorded ([0-9.]+) s(?: \(([0-9.]+) s from its answer to our stop\))?,", r.err)
    check(told and 2.4 < float(told[1]) < 4 and (told[2] or told[1]) in ("2.5", "2.6"),
          "clock: and is told", r)
    check(not told or abs(float(told[1]) - r.json()["trace"]["duration_ms"] / 1000) <= 0.15,
          "clock: as the report has it", r)
    last = r.json().get("trace", {}).get("last_event_ms") or 0
    check(2000 < last < 12000, "clock: events have their times", last)


def limits(folder, app):
    """Few descriptors, a read-only directory, no room for memory: an error in one line, no harm."""
    r = run("collect", "-p", app.pid, "--duration", "1s", "-o", "/proc/x.nettrace")
    check(r.code == 1 and one_line(r), "limits: a place where nothing can be written", r)
    r = run("collect", "-p", app.pid, "--duration", "1s", "-o", os.path.join(folder, "no/x.nettrace"))
    check(r.code == 1 and one_line(r), "limits: no such directory", r)
    for files in (5, 8, 12, 16, 20, 22, 24, 32, 40):
        r = run("collect", "-p", app.pid, "--duration", "300ms", "-o",
                os.path.join(folder, "few%d.nettrace" % files),
                preexec_fn=lambda n=files: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        check(r.code in (0, 1), "limits: %d descriptors" % files, r)
        check(r.code == 0 or "oo many open files" in r.err,
              "limits: %d descriptors: says why" % files, r)
    r = run("collect", "-p", app.pid, "--duration", "300ms", "-o", os.path.join(folder, "m.nettrace"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20)))
    check(r.code == 0, "limits: 64 MB of addresses are enough", r)
    wait_until("limits: no session is left", lambda: in_process_sessions(app) == 0)


def one_line(result):
    """An error and at most one line of advice, or a warning before it."""
    lines = result.err.strip().split("\n")
    return lines[0].startswith("drdotnet-trace: ") and len(lines) <= 4


if __name__ == "__main__":
    with scratch() as folder:
        with shop("net10", "idle", 300) as app:
            parts((no_session_left,), folder, app)
        with shop("net10", "mixed", 300) as app:
            parts((stopped_target, clock_step, limits), folder, app)
        parts((held, slow_reader, killed_at_any_time), folder)
    done()
