#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a session asks of the runtime, what older ones cannot do, what ends it, what is shown."""

import os
import pty
import re
import select
import signal
import subprocess
import termios
import time

from flood import flood
from live import (LONG, PROGRAM, Running, check, cpu_ticks, document, done, events, freeze,
                  in_process_sessions, part_file, parts, run, scratch, shop, wait_until)

RUNTIME = "Microsoft-Windows-DotNETRuntime"
SAMPLER = "Microsoft-DotNETCore-SampleProfiler"
GC = RUNTIME + ":1:4"


def record(app, folder, name, *args, seconds="1s", code=0):
    path = os.path.join(folder, name + ".nettrace")
    r = run("collect", "-p", app.pid, "--duration", seconds, "--json", "-o", path, *args)
    check(r.code == code, name + ": exit code %d" % code, r)
    return r, events(path)[0]


def ids(trace, provider):
    return {k.split("/")[1] for k in trace.get("counts", {}) if k.startswith(provider + "/")}


def event_filter(folder):
    """At the source on .NET 10; by us on .NET 8, which is said."""
    for target, at_source in (("net10", True), ("net8", False)):
        with shop(target, "gc") as app:
            r, trace = record(app, folder, "only-" + target, "--providers", GC, "--event-filter",
                              RUNTIME + ":only:1-2")
            _, but = record(app, folder, "but-" + target, "--providers", GC, "--event-filter",
                            RUNTIME + ":except:1,2")
        name = "filter-" + target
        check({"1", "2"} <= ids(trace, RUNTIME), name + ": these", ids(trace, RUNTIME))
        if at_source:
            check(ids(trace, RUNTIME) <= {"1", "2", "187"}, name + ": no others",
                  ids(trace, RUNTIME))
            check(not ids(but, RUNTIME) & {"1", "2"}, name + ": all but these", ids(but, RUNTIME))
        else:
            check("cannot filter events" in r.err, name + ": says what it cannot", r)
            check("3" in ids(trace, RUNTIME), name + ": the file has them all")
            check(r.json().get("trace", {}).get("counts") == trace.get("counts"),
                  name + ": the counts are the file's")
        check((r.json().get("gc", {}).get("count") or 0) > 0, name + ": collections", r)


def stacks(folder):
    for target, knows in (("net10", True), ("net8", False)):
        with shop(target, "exceptions") as app:
            r, _ = record(app, folder, "flat-" + target, "--no-stacks", "--providers",
                          RUNTIME + ":8000:4")
        path = os.path.join(folder, "flat-%s.nettrace" % target)
        out = run("events", path, "--format", "ndjson", "--stacks", "--name", "Exception*").out
        with_stack = sum('"stack"' in line for line in out.split("\n"))
        check((with_stack == 0) is knows, "stacks: left out on " + target, with_stack)
        check(("cannot leave out stacks" in r.err) is not knows, "stacks: said on " + target, r)


def rundown_keyword(folder):
    sizes = {}
    for target in ("net8", "net10"):
        with shop(target, "idle") as app:
            r, trace = record(app, folder, "rd-" + target, "--rundown-keyword", "gc", "--providers",
                              GC)
            sizes[target] = sum(n for k, n in trace.get("counts", {}).items() if "Rundown" in k)
            check(("cannot choose its rundown" in r.err) is (target == "net8"),
                  "rundown: said on " + target, r)
    check(sizes["net10"] < 50 < sizes["net8"], "rundown: less where it can be chosen", sizes)


def block_mode(folder):
    """.NET 11 waits for us; older ones drop, which is said."""
    for target, knows in (("net11", True), ("net10", False)):
        with shop(target, "mixed") as app:
            r, trace = record(app, folder, "block-" + target, "--buffering-mode", "block",
                              "--buffersize", "1")
        check("threads of the process wait for us" in r.err.split("\n")[0],
              "block: says beforehand what it does", r)
        check(("cannot wait for us" in r.err) is not knows, "block: said on " + target, r)
        if knows:
            check(trace.get("events_lost") == 0, "block: nothing is lost", trace)


def stopping_event(folder):
    """At once, not when the duration is over, and with the whole rundown."""
    with shop("net10", "gc") as app:
        provider = ["--providers", GC, "--stopping-event-provider-name", RUNTIME]
        for name, args in (("any", []), ("named", ["--stopping-event-event-name", "GC/Start"]),
                           ("payload", ["--stopping-event-event-name", "GCStart",
                                        "--stopping-event-payload-filter", "Depth:0"])):
            r, trace = record(app, folder, "stop-" + name, *provider, *args, seconds="60s")
            check("the stopping event came" in r.err and "did not come" not in r.err,
                  name + ": says so", r)
            check(r.seconds < 20, name + ": at once", r)
            check(trace.get("complete") is True, name + ": complete", trace)
        r, _ = record(app, folder, "stop-never", *provider, "--stopping-event-event-name", "GCStart",
                      "--stopping-event-payload-filter", "Depth:77")
        check("the stopping event did not come" in r.err and r.seconds >= 1,
              "never: goes on to its end, and says so", r)
    # One event in a silent stream: nothing follows that could push it out.
    with shop("net10", "exceptions" if LONG else "idle") as app:
        begin = time.monotonic()
        r, _ = record(app, folder, "stop-quiet", "--providers",
                      "System.Runtime:0:4:EventCounterIntervalSec=1",
                      "--stopping-event-provider-name", "System.Runtime", seconds="60s")
        check(time.monotonic() - begin < 8, "quiet: at once", r)


def max_size(folder):
    with shop("net10", "mixed") as app:
        r, trace = record(app, folder, "size", "--max-size", "1M", "--providers",
                          RUNTIME + ":ffffffffff:5," + SAMPLER, seconds="60s")
    check("--max-size is reached" in r.err and r.seconds < 30, "size: stops", r)
    check(trace.get("complete") is True, "size: complete", trace)
    check(os.path.getsize(os.path.join(folder, "size.nettrace")) >= 1 << 20, "size: not before")


def early_symbols(folder):
    """Names without the rundown at the end, on each runtime that has names."""
    for target in ("net31", "net8", "net9", "net10", "net11") if LONG else ("net31", "net11"):
        with shop(target, "cpu") as app:
            time.sleep(1)
            r, trace = record(app, folder, "early-" + target, "--early-symbols", "--rundown",
                              "false", "--profile", "cpu")
            check(in_process_sessions(app) == 0, target + ": both sessions are gone")
        check(re.search(r"names of code loaded before: [\d.]+ [KM]B in [\d.]+ s", r.err),
              target + ": says the cost", r)
        check(not any("Rundown" in k for k in trace.get("counts", {})),
              target + ": nothing of it is in the file", trace.get("counts"))
        methods = [m["method"] for m in r.json().get("cpu", {}).get("methods", [])]
        check("Shop.Cpu.Hot" in methods, target + ": names the hot method", methods[:8])
        plain = os.path.join(folder, "early-%s.nettrace" % target)
        report = run("report", plain, "--json").json()
        check(report.get("trace", {}).get("events") == r.json().get("trace", {}).get("events"),
              target + ": the events are those of the file")


def crash_of_ours(folder):
    """kill -9: the file that was being written is a trace up to the last second."""
    with shop("net10", "mixed") as app:
        for name in ("crash.nettrace", "crash.nettrace.zst"):
            r = Running("collect", "-p", app.pid, "--duration", "60s", "-o",
                        os.path.join(folder, name), "--report", os.path.join(folder, "crash.txt"))
            wait_until(name + ": is being written", lambda: part_file(folder) > 0)
            time.sleep(1.8)
            r.signal(signal.SIGKILL)
            r.finish()
            parts = [n for n in os.listdir(folder) if n.startswith(name) and n.endswith(".part")]
            check(len(parts) == 1, name + ": there is one part", parts)
            empty = [n for n in os.listdir(folder) if n.startswith("crash.txt")]
            check(not empty, name + ": no report without content", empty)
            path = os.path.join(folder, parts[0])
            trace, code = events(path)
            check(code == 3 and trace.get("last_event_ms", 0) > 800, name + ": lost less than 1 s",
                  code, trace.get("last_event_ms"))
            check(run("report", path, "--json").json().get("cpu", {}).get("samples", 0) > 0,
                  name + ": gives a report")
            os.unlink(path)
        wait_until("crash: the target's session is gone", lambda: in_process_sessions(app) == 0)
        r, trace = record(app, folder, "after")
        check(trace.get("complete") is True, "crash: the target can be traced again", trace)


def target_goes_on(folder):
    """Our own process stopped: a target that drops does not wait for us."""
    with shop("net10", "cpu") as app:
        r = Running("collect", "-p", app.pid, "--duration", "30s", "--buffersize", "1", "-o",
                    os.path.join(folder, "stopped.nettrace"))
        wait_until("stopped: is being written", lambda: part_file(folder) > 0)
        freeze(r.process.pid)
        before = cpu_ticks(app.pid)
        time.sleep(2)
        check(cpu_ticks(app.pid) - before > 10, "stopped: the target works on",
              cpu_ticks(app.pid) - before)
        r.signal(signal.SIGCONT)
        r.signal(signal.SIGTERM)
        result = r.finish()
        check(result.code == 0, "stopped: ends well afterwards", result)
        check(in_process_sessions(app) == 0, "stopped: no session is left open")


def duration_under_load(folder):
    """All processors busy: the duration holds, and both times are told."""
    seconds = 5 if LONG else 3
    spinners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
    try:
        with shop("net10", "mixed") as app:
            r, _ = record(app, folder, "busy", seconds="%ds" % seconds)
    finally:
        for s in spinners:
            s.kill()
            s.wait()
    m = re.search(r"recorded ([\d.]+) s(?: \(([\d.]+) s from its answer to our stop\))?, then "
                  r"([\d.]+) s until the end of the rundown", r.err)
    check(m and seconds - 0.1 <= float(m[2] or m[1]) <= seconds + 1, "busy: the duration", r)


class Terminal:
    """collect with a terminal of its own."""

    def __init__(self, *args):
        go, told = os.pipe()  # not before we have looked at the terminal
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.read(go, 1)
            os.environ["TERM"] = "xterm"
            os.execv(PROGRAM, [PROGRAM, *map(str, args)])
        self.text = ""
        self.before = termios.tcgetattr(self.fd)
        os.write(told, b"x")
        os.close(go)
        os.close(told)

    def read(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    return
                if not data:
                    return
                self.text += data.decode("utf-8", "replace")

    def key(self, key):
        os.write(self.fd, key.encode())

    def finish(self):
        self.read(20)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        check(termios.tcgetattr(self.fd) == self.before, "the terminal is as it was")
        os.close(self.fd)
        return code


def keys(folder):
    """Enter, q and Ctrl-C on a terminal; the line in place."""
    with shop("net10", "cpu") as app:
        for name, key in (("enter", "\n"), ("q", "q"), ("ctrl-c", "\x03")):
            path = os.path.join(folder, "key-%s.nettrace" % name)
            t = Terminal("collect", "-p", app.pid, "-o", path, "--report",
                         os.path.join(folder, name + ".txt"))
            wait_until(name + ": a line in place", lambda t=t: t.read(0.1) or "lost" in t.text)
            t.key("x")  # means nothing
            t.read(0.3)
            t.key(key)
            code = t.finish()
            check(code == 0, name + ": exit code 0", code, t.text[-600:])
            check(re.search(r"\r\x1b\[K00:0\d  [\d.]+ [KM]?B  \d+ events  \d+/s  0 lost  "
                            r"\(Enter stops\)", t.text), name + ": a line in place", t.text[:600])
            check("\x1b[K" in t.text and "x" not in t.text.split("lost")[1][:3],
                  name + ": nothing is echoed")
            trace, code = events(path)
            check(code == 0 and trace.get("complete"), name + ": complete", trace)


def lines(folder):
    """Without a terminal: no control codes; a line a minute; nothing with -q."""
    with shop("net10", "idle", 200) as app:
        for quiet in (False, True):
            r = run("collect", "-p", app.pid, "--duration", "63s" if LONG else "1s", "-o",
                    os.path.join(folder, "line%d.nettrace" % quiet), *(["-q"] if quiet else []))
            check("\033" not in r.err and "\r" not in r.err, "lines: no control codes", r)
            if quiet:
                check(r.err.count("\n") == 1, "lines: -q leaves the name alone", r)
            elif LONG:
                check(re.search(r"^01:00 of 63 s  .* events  \d+/s", r.err, re.M),
                      "lines: one a minute", r)


def unattended(folder):
    """As under cron: no terminal, standard input closed or /dev/null, setsid."""
    with shop("net10", "idle") as app:
        for name, command in (
                ("null", '"$@" </dev/null >"$LOG" 2>&1'), ("closed", '"$@" <&- >"$LOG" 2>&1'),
                ("all-closed", '"$@" <&- >&- 2>&-'), ("setsid", 'setsid -w "$@" >"$LOG" 2>&1')):
            path = os.path.join(folder, "cron-%s.nettrace" % name)
            log = os.path.join(folder, name + ".log")
            r = subprocess.run(["sh", "-c", command, "sh", PROGRAM, "collect", "-p", str(app.pid),
                                "--duration", "1s", "-o", path, "--report",
                                os.path.join(folder, name + ".json"), "--json"],
                               env=dict(os.environ, LOG=log), timeout=60, check=False)
            said = ""
            if os.path.exists(log):
                with open(log, encoding="utf-8") as f:
                    said = f.read()
            if not check(r.returncode == 0, name + ": exit code 0", r, said):
                continue
            trace, code = events(path)
            check(code == 0 and trace.get("complete"), name + ": complete", trace)
            with open(os.path.join(folder, name + ".json"), encoding="utf-8") as f:
                check(document(f.read()).get("trace"), name + ": the report is in its file")
            check("\033" not in said, name + ": no control codes in the log")


def quota(folder):
    """A limit on the file's size, as a quota is: the session stops, the prefix is kept."""
    with shop("net10", "mixed") as app:
        path = os.path.join(folder, "limit.nettrace")
        r = subprocess.run(["sh", "-c", 'ulimit -f 1024; exec "$@"', "sh", PROGRAM, "collect", "-p",
                            str(app.pid), "--duration", "60s", "-o", path, "--report", "-",
                            "--providers", RUNTIME + ":ffffffffff:5," + SAMPLER],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           stdin=subprocess.DEVNULL, timeout=90, check=False)
        check(r.returncode == 3, "limit: exit code 3", r.returncode, r.stderr)
        check("recording stops" in r.stderr, "limit: says so", r.stderr)
        check(in_process_sessions(app) == 0, "limit: no session is left open")
        trace, code = events(path)
        check(code == 3 and trace.get("events", 0) > 0, "limit: the prefix reads", trace)


def losses(folder):
    """A storm, a small buffer, and we stand still: what is lost is said live, in text and JSON."""
    with flood("events") as app:
        path = os.path.join(folder, "loss.nettrace")
        out = os.path.join(folder, "loss.json")
        t = Terminal("collect", "-p", app.pid, "-o", path, "--buffersize", "1", "--providers",
                     "Flood:1:4", "--report", out, "--json")
        wait_until("loss: it records", lambda: t.read(0.1) or "events" in t.text)
        freeze(t.pid)
        time.sleep(1)
        os.kill(t.pid, signal.SIGCONT)
        told = r"  [1-9]\d* lost  events are lost: --buffersize"
        wait_until("loss: it is said", lambda: t.read(0.1) or re.search(told, t.text))
        t.key("q")
        code = t.finish()
        check(code == 0, "loss: exit code 0", code, t.text[-800:])
        check(re.search(told, t.text),
              "loss: on the progress line", t.text[-800:])
        with open(out, encoding="utf-8") as f:
            report = document(f.read())
        lost = report["trace"]["events_lost"]
        found = [f for f in report["findings"] if f["id"] == "trace.events-lost"]
        check(lost > 0 and found and "thread" in found[0]["evidence"], "loss: in the report, "
              "with its threads", lost, found)
        check(events(path)[0].get("events_lost") == lost, "loss: the file says the same")


def many_tasks(folder):
    """A program that awaits all the time: recorded without tasks, unless they are asked for."""
    with flood("awaits") as app:
        r, trace = record(app, folder, "calm", seconds="4s")
        check("begins anew without them" in r.err, "calm: says so", r)
        check(not any("TplEventSource" in k for k in trace.get("counts", {})), "calm: no tasks",
              trace.get("counts"))
        check(trace.get("complete") is True and 3000 < trace.get("last_event_ms", 0) < 8000,
              "calm: the file is the second session alone", trace)
        check(os.listdir(folder).count("calm.nettrace") == 1 and
              not [n for n in os.listdir(folder) if n.endswith(".part")], "calm: one file")
        check(in_process_sessions(app) == 0, "calm: no session is left open")
        r, trace = record(app, folder, "forced", "--profile", "cpu,gc,tasks", seconds="2500ms")
        check(any("TplEventSource" in k for k in trace.get("counts", {})), "forced: tasks", r)
        check("begins anew" not in r.err, "forced: once", r)
        # Stopped before the two seconds are over, and slow to end: what there is stays.
        path = os.path.join(folder, "early.nettrace")
        r = Running("collect", "-p", app.pid, "--duration", "60s", "-o", path)
        wait_until("early: it records", lambda: part_file(folder) > 0)
        time.sleep(0.5)
        freeze(app.pid)
        r.signal(signal.SIGINT)
        time.sleep(2)
        os.kill(app.pid, signal.SIGCONT)
        result = r.finish()
        check(result.code == 0 and "begins anew" not in result.err, "early: no new beginning",
              result)
        trace, code = events(path)
        check(code == 0 and any("TplEventSource" in k for k in trace.get("counts", {})),
              "early: the file is kept", trace)
    with flood("awaits", 60, 4, 250) as app:
        r, trace = record(app, folder, "few", seconds="2500ms")
        check("begins anew" not in r.err, "few: recorded with them", r)
        check(any("TplEventSource" in k for k in trace.get("counts", {})), "few: tasks")


if __name__ == "__main__":
    with scratch() as folder:
        parts((event_filter, stacks, rundown_keyword, block_mode, stopping_event, max_size,
               early_symbols, crash_of_ours, target_goes_on, duration_under_load, keys, lines,
               unattended, quota, losses, many_tasks), folder)
    done()
