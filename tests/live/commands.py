#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""collect -- COMMAND: from the first event on, and nothing is left behind."""

import glob
import os
import signal
import subprocess
import tempfile
import time

import flood
from live import (Running, check, done, events, parts, recorded, run, scratch, wait_until, workload)

SHOP = os.path.join(workload("net10"), "shop")
MARK = "drd-mark-%d" % os.getpid()  # in the command lines of what we start


def directories():
    return set(glob.glob(os.path.join(tempfile.gettempdir(), "drdotnet-trace-*")))


def nothing_left(what, before):
    check(directories() <= before, what + ": the port's directory is removed", directories())
    left = subprocess.run(["pgrep", "-fa", MARK], stdout=subprocess.PIPE, text=True).stdout
    check(not left, what + ": no process is left", left)


def whole(folder):
    """A program that ends by itself, with its first events."""
    path = os.path.join(folder, "whole.nettrace")
    r = run("collect", "--json", "-o", path, "--profile", "jit,cpu", "--", SHOP, "cpu", "2")
    check(r.code == 0, "whole: exit code 0", r)
    j = r.json()
    check(j.get("child") == {"exit_code": 0, "signal": None}, "whole: child", j.get("child"))
    check(j.get("trace", {}).get("complete") is True, "whole: complete", r)
    counts = j.get("trace", {}).get("counts", {})
    # Main itself is compiled, which happens once, at the start.
    lines = run("events", path, "--format", "ndjson", "--id", "143").out
    check('"Main' in lines or "<Main>$" in lines, "whole: the entry point is seen being compiled", sorted(counts))


def exit_codes(folder):
    shell = "%s cpu 1; exit 7" % SHOP
    r = run("collect", "-o", "none", "--json", "--", "sh", "-c", shell)
    check(r.code == 7, "exit code: the child's", r)
    check(r.json().get("child") == {"exit_code": 7, "signal": None}, "exit code: JSON", r)
    r = run("collect", "-o", "none", "--exit-code", "tool", "--json", "--", "sh", "-c", shell)
    check(r.code == 0, "exit code: --exit-code tool", r)
    check(r.json().get("child") == {"exit_code": 7, "signal": None}, "exit code: JSON has it", r)
    r = run("collect", "-o", "none", "--json", "--", "sh", "-c", "%s cpu 1; kill -9 $$" % SHOP)
    check(r.code == 137, "exit code: 128 and the signal", r)
    check(r.json().get("child") == {"exit_code": None, "signal": 9}, "exit code: signal", r)
    path = os.path.join(folder, "crash.nettrace")
    r = Running("collect", "-o", path, "--json", "--", SHOP, "cpu", "60")
    wait_until("crash: something is recorded", lambda: recorded(folder))
    pid = int(subprocess.run(["pgrep", "-P", str(r.process.pid), "-f",
                              "^" + os.path.dirname(SHOP)],
                             stdout=subprocess.PIPE, text=True).stdout.split()[0])
    os.kill(pid, signal.SIGKILL)
    result = r.finish()
    check(result.code == 3, "crash: ours wins", result)
    check("killed by signal 9" in result.err, "crash: says how", result)
    check(result.json().get("child") == {"exit_code": None, "signal": 9}, "crash: JSON", result)
    check(events(path)[0].get("events", 0) > 0, "crash: what there is is kept")


def told_to_stop(folder):
    """Our own end is the command's too, and its trace is complete."""
    before = directories()
    for number in (signal.SIGINT, signal.SIGTERM):
        path = os.path.join(folder, number.name + ".nettrace")
        r = Running("collect", "-o", path, "--json", "--", "sh", "-c",
                    "%s cpu 300 %s" % (SHOP, MARK))
        wait_until("stop: something is recorded", lambda: recorded(folder))
        r.signal(number)
        result = r.finish()
        check(result.code == 0, "stop: exit code 0", result)
        check(result.json().get("trace", {}).get("complete") is True, "stop: complete", result)
        nothing_left("stop", before)
    begin = time.monotonic()
    r = run("collect", "-o", "none", "--duration", "1s", "--", "sh", "-c",
            "trap '' TERM; %s cpu 300 %s; sleep 300" % (SHOP, MARK))
    check(r.code == 0, "duration: exit code 0", r)
    check(time.monotonic() - begin < 20, "duration: a deaf command is killed", r)
    nothing_left("duration", before)


def unhandled(folder):
    """An exception that nobody catches ends the command: said, and the file kept up to there."""
    path = os.path.join(folder, "unhandled.nettrace")
    r = run("collect", "-o", path, "--json", "--", flood.program(), "events", "no-number")
    j = r.json()
    check(r.code == 3, "unhandled: partial", r)
    check(j.get("child") == {"exit_code": None, "signal": 6}, "unhandled: child", j.get("child"))
    check(not j["trace"]["complete"] and j["trace"]["truncated_at"], "unhandled: cut", j["trace"])
    # What the runtime had not sent when it died is gone with it: the exception may be among that.
    check(j["trace"]["events"] > 0, "unhandled: what came before is analysed", j["trace"])
    check(run("report", path).code == 3, "unhandled: the file is read up to its end")


def no_runtime(folder):
    before = directories()
    path = os.path.join(folder, "no.nettrace")
    r = run("collect", "-o", path, "--", "true")
    check(r.code == 5 and "no .NET runtime in it connected" in r.err, "no .NET: says so", r)
    r = run("collect", "-o", path, "--timeout", "1s", "--", "sh", "-c", "sleep 300; : " + MARK)
    check(r.code == 5 and "in time" in r.err and r.seconds < 10, "no .NET: time-out", r)
    r = run("collect", "-o", path, "--", os.path.join(folder, "nothing"))
    check(r.code == 1 and "cannot start" in r.err, "no such command", r)
    r = run("collect", "-o", path, "--")
    check(r.code == 2, "no command at all", r)
    r = run("collect", "-o", path, "-p", "1", "--", "true")
    check(r.code == 2, "a command and a process", r)
    check(not os.path.exists(path), "no .NET: no file")
    if os.path.exists(os.path.join(workload("net31"), "shop")):
        r = run("collect", "-o", path, "--timeout", "2s", "--",
                os.path.join(workload("net31"), "shop"), "idle", "60", MARK)
        check(r.code == 5 and ".NET 5" in r.err, "too old: says so", r)
    nothing_left("no runtime", before)
    r = Running("collect", "-o", path, "--timeout", "60s", "--", "sh", "-c",
                "sleep 300; : " + MARK)
    time.sleep(0.5)
    r.signal(signal.SIGINT)
    result = r.finish(20)
    check(result.code == 5 and "nothing was recorded" in result.err, "stopped too early", result)
    nothing_left("stopped too early", before)


def input_and_output(folder):
    show = "echo to-stdout; echo to-stderr >&2; cat; %s cpu 1" % SHOP
    quiet = run("collect", "-o", "none", "--", "sh", "-c", show, input=b"typed\n", stdin=None)
    check("to-std" not in quiet.out + quiet.err and "typed" not in quiet.out,
          "i/o: nothing is shown", quiet)
    r = run("collect", "-o", "none", "--show-child-io", "--report",
            os.path.join(folder, "report"), "--", "sh", "-c", show, input=b"typed\n", stdin=None)
    check("to-stdout" in r.out and "typed" in r.out, "i/o: shown", r)
    check("to-stderr" in r.err, "i/o: both", r)
    r = run("collect", "-o", "none", "--show-child-io", "--json", "--", "sh", "-c", show)
    check("to-stdout" in r.err and r.json().get("child"), "i/o: JSON has standard output", r)
    r = run("collect", "-p", "1", "--show-child-io")
    check(r.code == 2, "i/o: needs a command", r)


def grandchildren(folder):
    """Each .NET process in the command goes on; the first is recorded, or all of them."""
    both = "%s cpu 1 & %s gc 2; wait" % (SHOP, SHOP)
    r = run("collect", "-o", os.path.join(folder, "first.nettrace"), "--json", "--", "sh", "-c",
            both)
    check(r.code == 0 and r.seconds < 30, "grandchildren: none is left waiting", r)
    r.json()
    r = run("collect", "--children", "-o", os.path.join(folder, "all-%p.nettrace"), "--report",
            os.path.join(folder, "all-%p.json"), "--json", "--", "sh", "-c", both)
    check(r.code == 0, "grandchildren: all", r)
    check(len(glob.glob(os.path.join(folder, "all-*.nettrace"))) == 2, "grandchildren: two files",
          os.listdir(folder))
    check(len(glob.glob(os.path.join(folder, "all-*.json"))) == 2, "grandchildren: two reports",
          os.listdir(folder))


def killed(folder):
    """kill -9 of us, before the runtime was told to go on or after: it does not wait for ever."""
    before = directories()
    for i, moment in enumerate((0.02, 0.06, 0.12, 0.3)):
        mark = "%s-%d" % (MARK, i)
        done_file = os.path.join(folder, "done-%d" % i)
        r = Running("collect", "-o", "none", "--", "sh", "-c",
                    "%s idle 1 %s; echo $? >%s" % (SHOP, mark, done_file))
        wait_until("killed: it has begun", lambda mark=mark: processes_with(mark) > 1)
        time.sleep(moment)
        r.signal(signal.SIGKILL)
        r.finish()
        wait_until("killed: the program ran to its end", lambda path=done_file: os.path.exists(path))
    wait_until("killed: the ports are removed", lambda: directories() <= before)
    nothing_left("killed", before)


def processes_with(mark):
    return len(subprocess.run(["pgrep", "-f", mark], stdout=subprocess.PIPE,
                              text=True).stdout.split())


if __name__ == "__main__":
    with scratch() as folder, scratch() as own:
        os.environ["TMPDIR"] = tempfile.tempdir = own  # others make directories in /tmp, too
        parts((whole, exit_codes, told_to_stop, killed, no_runtime, input_and_output,
               grandchildren, unhandled), folder)
    done()
