#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How a collection can end: signals, the target's death, a full disk, a closed pipe.  Whatever
happens, what was recorded is a valid trace, and the exit code says what it is worth."""

import os
import re
import signal
import subprocess
import time

from live import (PROGRAM, Running, check, done, events, freeze, in_process_sessions, is_frozen,
                  parts, recorded, run, scratch, shop, wait_until)

TARGET = "net10"


def recording(folder, app, name, *args, **more):
    """A collection that is known to have written something."""
    r = Running("collect", "-p", app.pid, "-o", os.path.join(folder, name), *args, **more)
    wait_until(name + ": something is recorded", lambda: recorded(folder, name))
    return r


def complete(folder, name, want=True):
    path = os.path.join(folder, name)
    if not check(os.path.exists(path), name + ": the file is there", os.listdir(folder)):
        return {}
    trace, code = events(path)
    check(code == (0 if want else 3), name + ": reads with exit code", code)
    check(trace.get("complete") is want, name + ": complete is %s" % want, trace)
    check(trace.get("events", 0) > 0, name + ": holds events", trace)
    left = [n for n in os.listdir(folder) if n.endswith(".part")]
    check(not left, name + ": no half-written file is left", left)
    return trace


def cut(result, what, title, advice):
    """What the report says of the missing end: why, and nothing that would not help."""
    found = [f for f in result.json().get("findings", []) if f["id"] == "trace.truncated"]
    check([f["title"] for f in found] == [title], what + ": the report says why", found)
    check(advice in "".join(f["advice"] for f in found), what + ": and what that means", found)


def closed_stdin():
    os.close(0)


def signals(folder, app):
    """INT, TERM and HUP, each with stdin open and closed: rundown and end tag are there."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for closed in (False, True):
            name = "%s%d.nettrace" % (number.name, closed)
            more = {"stdin": None, "preexec_fn": closed_stdin} if closed else {}
            r = recording(folder, app, name, "--duration", "60s", **more)
            r.signal(number)
            result = r.finish()
            check(result.code == 0, name + ": exit code 0", result)
            trace = complete(folder, name)
            check(any("Rundown/144/" in k for k in trace.get("counts", {})),
                  name + ": has the names of methods", sorted(trace.get("counts", {}))[:20])
            check("\033" not in result.err and "\r" not in result.err,
                  name + ": no cursor codes without a terminal", result)
    check(in_process_sessions(app) == 0, "signals: no session is left open")


def nohup(folder, app):
    """HUP ignored by whoever started us stays ignored."""
    r = recording(folder, app, "nohup.nettrace", "--duration", "2s",
                  preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    r.signal(signal.SIGHUP)
    result = r.finish()
    check(result.code == 0 and result.seconds >= 2, "nohup: goes on to its end", result)


def twice(folder, app):
    """The second Ctrl-C does not wait for a runtime that does not answer."""
    r = recording(folder, app, "twice.nettrace", "--duration", "60s", "--json")
    freeze(app.pid)
    r.signal(signal.SIGINT)
    time.sleep(0.6)
    begin = time.monotonic()
    r.signal(signal.SIGINT)
    result = r.finish()
    os.kill(app.pid, signal.SIGCONT)
    check(time.monotonic() - begin < 2, "twice: at once", result)
    check(result.code == 3, "twice: exit code 3", result)
    check("without the rundown" in result.err and "until the end" not in result.err,
          "twice: says what is missing", result)
    cut(result, "twice", "The recording is cut: stopped at once, without the rundown",
        "stop but once")
    complete(folder, "twice.nettrace", False)


def stop_timeout(folder, app):
    """A target that never ends its stream does not keep us."""
    for _ in range(3):
        r = recording(folder, app, "bound.nettrace", "--duration", "60s", "--stop-timeout", "1s",
                      "--force", "--json")
        freeze(app.pid)
        begin = time.monotonic()
        r.signal(signal.SIGTERM)
        result = r.finish()
        if is_frozen(app.pid):
            break # else somebody else has woken it: that proves nothing
    os.kill(app.pid, signal.SIGCONT)
    check(0.8 < time.monotonic() - begin < 4, "bound: ends with --stop-timeout", result)
    check(result.code == 3, "bound: exit code 3", result)
    cut(result, "bound", "The recording is cut: it is stopped by a signal, so its runtime cannot "
        "answer", "it may need longer (--stop-timeout)")
    complete(folder, "bound.nettrace", False)


def killed(folder):
    """kill -9 of the target: over at once, and it says how the target ended."""
    with shop(TARGET, "cpu") as app:
        r = recording(folder, app, "killed.nettrace", "--duration", "60s", "--json")
        begin = time.monotonic()
        os.kill(app.pid, signal.SIGKILL)
        result = r.finish()
    check(time.monotonic() - begin < 2, "killed: at once", result)
    check(result.code == 3, "killed: exit code 3", result)
    check("killed by signal 9" in result.err, "killed: says how", result)
    check("recorded " in result.err and "end of the rundown" not in result.err,
          "killed: and speaks of no rundown", result)
    cut(result, "killed", "The recording is cut: the process was killed by signal 9 (Killed)",
        "is in the figures and in the file")
    complete(folder, "killed.nettrace", False)


def target_ends(folder):
    """A target that ends properly completes its trace: no stop is needed."""
    with shop(TARGET, "cpu", 3) as app:
        r = recording(folder, app, "ends.nettrace", "--duration", "60s")
        result = r.finish()
    check(result.code == 0, "ends: exit code 0", result)
    check(re.search(r"process %d \(Shop\) ended by itself after [\d.]+ s; the trace is complete" % app.pid,
                    result.err), "ends: says how", result)
    check(result.seconds < 10, "ends: with the target", result)
    complete(folder, "ends.nettrace")


def full_disk(folder, app):
    """4 MiB of tmpfs: recording stops, the file ends at a whole block."""
    small = os.path.join(folder, "small")
    os.mkdir(small)
    if os.geteuid() != 0 or subprocess.call(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", small],
            stderr=subprocess.DEVNULL) != 0:
        print("not tried: a full disk (mounting needs root)")
        return
    try:
        for name in ("full.nettrace", "full.nettrace.zst"):
            if name.endswith(".zst"):  # less room, as it needs less
                with open(os.path.join(small, "filler"), "wb") as f:
                    f.write(b"\0" * (3968 << 10))
            r = run("collect", "-p", app.pid, "--duration", "60s", "-o", os.path.join(small, name),
                    "--providers", "Microsoft-Windows-DotNETRuntime:ffffffffff:5,"
                    "Microsoft-DotNETCore-SampleProfiler", "--json")
            check(r.code == 3, name + ": exit code 3", r)
            check("No space left" in r.err, name + ": says why", r)
            check("recording stops" in r.err and r.seconds < 40, name + ": stops", r)
            report = r.json()
            live = report.get("trace", {})
            check([f for f in report.get("findings", []) if f["id"] == "trace.file-cut"],
                  name + ": the report says that the file is cut", report.get("findings"))
            check(live.get("complete") is True, name + ": the report is complete", live)
            trace = complete(small, name, False)
            check(0 < trace.get("events", 0) < live.get("events", 0),
                  name + ": holds less than was analysed", trace, live)
            if name.endswith(".zst"):
                check(subprocess.call(["zstd", "-tq", os.path.join(small, name)]) == 0,
                      name + ": the frame is closed")
            for n in os.listdir(small):
                os.unlink(os.path.join(small, n))
    finally:
        subprocess.call(["umount", small])


def compressed(folder, app):
    path = os.path.join(folder, "packed.nettrace.zst")
    r = run("collect", "-p", app.pid, "--duration", "2s", "-o", path)
    check(r.code == 0, "zst: exit code 0", r)
    complete(folder, "packed.nettrace.zst")
    plain = subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE).stdout
    check(plain[:8] == b"Nettrace", "zst: holds a trace", plain[:40])
    check(os.path.getsize(path) < len(plain) / 2, "zst: is smaller")


def to_stdout(folder, app):
    path = os.path.join(folder, "report.json")
    r = run("collect", "-p", app.pid, "--duration", "1s", "-o", "-", "--json", "--report", path,
            binary=True)
    check(r.code == 0, "stdout: exit code 0", r.err)
    check(r.out[:8] == b"Nettrace", "stdout: has the trace", r.out[:40])
    check(r.out[-1:] == b"\1" or r.out.endswith(b"drde\r\n\x1a"),  # or the block behind it
          "stdout: to its end tag", r.out[-20:])
    check(os.path.exists(path), "stdout: the report is in its file")
    r = run("events", "--count", "--json", "-", input=r.out, stdin=None)
    check(r.code == 0, "stdout: reads", r)


def reader_goes(folder, app):
    """'collect -o - | head': the trace has no reader any more, so it ends, with 3."""
    for size in (1000, 0):
        r = subprocess.Popen(["sh", "-c", '"$@" 2>"$ERR"; echo $? >"$CODE"', "sh",
                              PROGRAM, "collect", "-p",
                              str(app.pid), "--duration", "60s", "-o", "-"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             env=dict(os.environ, ERR=os.path.join(folder, "err"),
                                      CODE=os.path.join(folder, "code")))
        r.stdout.read(size)
        r.stdout.close()
        begin = time.monotonic()
        r.wait(30)
        with open(os.path.join(folder, "code"), encoding="utf-8") as f:
            code = f.read().strip()
        check(code == "3", "reader goes: exit code 3", code)
        check(time.monotonic() - begin < 10, "reader goes: ends")


def pipes(folder, app):
    """A named pipe gets what it would have got; one that nobody reads does not keep us."""
    path = os.path.join(folder, "pipe")
    os.mkfifo(path)
    r = Running("collect", "-p", app.pid, "-o", path, "--duration", "60s")
    time.sleep(0.3)
    r.signal(signal.SIGINT)
    result = r.finish(30)
    check(result.code == 1 and "cannot write '%s': No such device" % path in result.err,
          "pipe: nobody reads it", result)
    r = Running("collect", "-p", app.pid, "-o", path, "--duration", "500ms")
    time.sleep(0.3)
    with open(path, "rb") as f:
        got = f.read()
    result = r.finish()
    check(result.code == 0 and got[:8] == b"Nettrace", "pipe: its reader may come later", result)
    r = run("events", "--count", "--json", "-", input=got, stdin=None)
    check(r.code == 0 and r.json()["trace"]["complete"] is True, "pipe: all of it", r)


def names(folder, app):
    """Existing files, patterns, and two runs in one second."""
    path = os.path.join(folder, "mine.nettrace")
    with open(path, "wb") as f:
        f.write(b"mine")
    r = run("collect", "-p", app.pid, "--duration", "1s", "-o", path)
    check(r.code == 1 and "exists" in r.err, "names: an existing file is refused", r)
    with open(path, "rb") as f:
        check(f.read() == b"mine", "names: and left alone")
    r = run("collect", "-p", app.pid, "--duration", "1s", "-o", path, "--force")
    check(r.code == 0, "names: --force replaces it", r)
    complete(folder, "mine.nettrace")
    both = [Running("collect", "-p", app.pid, "--duration", "1s", cwd=folder) for _ in range(2)]
    paths = [b.finish().err.rstrip().split("\n")[-1] for b in both]
    check(len(set(paths)) == 2, "names: two runs at once have two names", paths)
    for p in paths:
        check(re.fullmatch(r"\./Shop_%d_\d{8}T\d{6}Z(-2)?\.nettrace" % app.pid, p),
              "names: default", p)
        check(os.path.exists(os.path.join(folder, p)), "names: the file is there", p)
    r = run("collect", "-p", app.pid, "--duration", "1s", "-o", "%n-%p.x.nettrace", cwd=folder)
    check(os.path.exists(os.path.join(folder, "Shop-%d.x.nettrace" % app.pid)), "names: pattern", r)
    r = run("collect", "-p", app.pid, "--duration", "1s", "-o", "none", "--json", cwd=folder)
    check(r.code == 0 and r.json().get("trace", {}).get("file") is None, "names: no file", r)


def unreachable(app):
    r = run("collect", "-p", 2147483000, "--duration", "1s", "-o", "none")
    check(r.code == 5 and "no such process" in r.err, "unreachable: no process", r)
    r = run("collect", "-p", os.getpid(), "--duration", "1s", "-o", "none")
    check(r.code == 5 and "no diagnostic socket" in r.err, "unreachable: no .NET process", r)
    r = run("collect", "-n", "no-such-name", "--duration", "1s", "-o", "none")
    check(r.code == 5, "unreachable: no such name", r)
    freeze(app.pid)
    r = run("collect", "-p", app.pid, "--timeout", "1s", "-o", "none")
    os.kill(app.pid, signal.SIGCONT)
    check(r.code == 5 and 0.9 < r.seconds < 3, "unreachable: --timeout covers everything", r)
    if os.geteuid() == 0:
        r = run("collect", "-p", app.pid, "--duration", "1s", "-o", "none",
                preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)))
        check(r.code == 5, "unreachable: another user's process", r)
        check("belongs to user root" in r.err and len(r.err.strip().split("\n")) <= 2,
              "unreachable: one line says whose", r)


def just_started(folder):
    """'app & collect -p $!': its port is not there yet."""
    with shop(TARGET, "idle", wait=False) as app:
        r = run("collect", "-p", app.pid, "--duration", "1s", "-o",
                os.path.join(folder, "young.nettrace"))
    check(r.code == 0, "just started: is waited for", r)
    complete(folder, "young.nettrace")


def old_runtime(folder):
    """What an older runtime cannot do is said."""
    with shop("net8", "idle") as app:
        r = run("collect", "-p", app.pid, "--duration", "1s", "--profile", "gc-collect", "-o",
                os.path.join(folder, "gc.nettrace"))
    check(r.code == 0, "old: exit code 0", r)
    check("cannot choose its rundown" in r.err, "old: says what was given up", r)
    complete(folder, "gc.nettrace")


if __name__ == "__main__":
    with scratch() as folder:
        with shop(TARGET, "mixed", 300) as app:
            parts((signals, nohup, compressed, to_stdout, reader_goes, pipes, names, full_disk, twice,
                   stop_timeout), folder, app)
            parts((unreachable,), app)
        parts((killed, target_ends, just_started, old_runtime), folder)
    done()
