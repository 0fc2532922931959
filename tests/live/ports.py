#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--diagnostic-port: runtimes that connect to us, ports that listen, Unix sockets and TCP."""

import contextlib
import os
import signal
import socket
import threading
import time

from live import (LONG, App, Running, check, done, events, in_process_sessions, parts, run, scratch,
                  shop, sockets, wait_until, workload)

SHOP = os.path.join(workload("net10"), "shop")


def waiting(folder, name, *args, **more):
    r = Running("collect", "--diagnostic-port", name, *args, cwd=folder, **more)
    path = os.path.join(folder, name.split(",")[0])
    wait_until("the port is there", lambda: is_served(path))  # a stale file is none
    return r, path


def is_served(path):
    with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
        s.connect(path)
        return True
    return False


def many_runtimes(folder):
    """A bare name becomes absolute; each runtime that comes is recorded from its start."""
    r, path = waiting(folder, "x.sock", "--duration", "2s", "-o", "%p.nettrace", "--json",
                      "--report", "%p.json")
    env = {"DOTNET_DiagnosticPorts": path + ",suspend"}
    with App([SHOP, "cpu", "60"], env=env, wait=False) as a, \
            App([SHOP, "gc", "60"], env=env, wait=False) as b:
        result = r.finish()
        check(result.code == 0, "many: exit code 0", result)
        check("DOTNET_DiagnosticPorts='%s,suspend'" % path in result.err,
              "many: says how to start them", result)
        for app in (a, b):
            trace, code = events(os.path.join(folder, "%d.nettrace" % app.pid))
            check(code == 0 and trace.get("complete"), "many: complete", trace)
            check(trace.get("first_event_ms", 1e9) < 3000, "many: from the start", trace)
            check(os.path.exists(os.path.join(folder, "%d.json" % app.pid)), "many: report")
            # It goes on without us, and without waiting.
            check(app.process.poll() is None, "many: the process lives")
        r = run("collect", "-p", a.pid, "--duration", "1s", "-o", "none")
        check(r.code == 0, "many: can be traced afterwards", r)
    check(not os.path.exists(path), "many: the socket is removed")


def nosuspend(folder):
    r, path = waiting(folder, "n.sock,listen,nosuspend", "--duration", "1s", "-o", "none")
    with App([SHOP, "cpu", "60"], env={"DOTNET_DiagnosticPorts": path + ",nosuspend"}):
        result = r.finish()
    check(result.code == 0 and ",nosuspend'" in result.err, "nosuspend: recorded", result)


def stale_and_taken(folder):
    path = os.path.join(folder, "s.sock")
    old = socket.socket(socket.AF_UNIX)
    old.bind(path)
    old.close()  # left behind, as by kill -9
    r, path = waiting(folder, "s.sock", "--timeout", "60s", "-o", "none")
    second = run("collect", "--diagnostic-port", path, "-o", "none")
    check(second.code == 1 and "cannot listen" in second.err, "taken: refused", second)
    check(os.path.exists(path), "taken: and left alone")
    time.sleep(0.3)
    r.signal(signal.SIGINT)
    result = r.finish()
    check(result.code == 5 and "nothing was recorded" in result.err, "stale: replaced", result)
    check(not os.path.exists(path), "stale: removed at the end")
    r = run("collect", "--diagnostic-port", path, "--timeout", "500ms", "-o", "none")
    check(r.code == 5 and "in time" in r.err and r.seconds < 5, "nobody comes: --timeout", r)
    check(not os.path.exists(path), "nobody comes: the socket is removed")
    with open(path, "wb") as f:
        f.write(b"mine")
    r = run("collect", "--diagnostic-port", path, "-o", "none")
    check(r.code == 1 and os.path.getsize(path) == 4, "a file in the way stays", r)
    r = run("collect", "--diagnostic-port", "/tmp/" + "x" * 110, "-o", "none")
    check(r.code == 2 and "107" in r.err, "too long: says the limit", r)


def target_ends(folder):
    """The run ends with the last process that came."""
    r, path = waiting(folder, "e.sock", "-o", os.path.join(folder, "e.nettrace"))
    with App([SHOP, "cpu", "2"], env={"DOTNET_DiagnosticPorts": path}, wait=False) as app:
        app.process.wait()
        result = r.finish(20)
    check(result.code == 0, "target ends: exit code 0", result)
    check(events(os.path.join(folder, "e.nettrace"))[0].get("complete"), "target ends: complete")


def not_resumed(folder):
    """--resume-runtime false leaves that to somebody else, and says what became of it."""
    r, path = waiting(folder, "w.sock", "--resume-runtime", "false", "--duration", "1s", "-o",
                      os.path.join(folder, "w.nettrace"))
    with App([SHOP, "cpu", "60"], env={"DOTNET_DiagnosticPorts": path}, wait=False):
        result = r.finish()
        check(result.code == 1 and "suspended" in result.err, "not resumed", result)


def default_port(folder):
    """A process that waits at its own port is told to go on by whoever records it."""
    env = {"DOTNET_DefaultDiagnosticPortSuspend": "1"}
    for resume, code in (("true", 0), ("false", 1)):
        path = os.path.join(folder, resume + ".nettrace")
        with App([SHOP, "cpu", "60"], env=env) as app:
            r = run("collect", "-p", app.pid, "--resume-runtime", resume, "--duration", "1s",
                    "-o", path)
            check(r.code == code, "default port: --resume-runtime " + resume, r)
        if resume == "true":
            trace = events(path)[0]
            check(trace.get("complete") and trace.get("first_event_ms", 1e9) < 3000,
                  "default port: from the start", trace)


def left_suspended():
    """Sessions that come and go while a runtime is suspended: one that is told to stop then makes
    .NET 9 and 10 crash when it goes on with another.  They are let go without that."""
    env = {"DOTNET_DefaultDiagnosticPortSuspend": "1"}
    for target in ["net8", "net9", "net10", "net11"] if LONG else ["net9", "net10"]:
        what = target + ": left suspended"
        with shop(target, "idle", env=env) as app:
            for more in ([], ["--early-symbols"]):
                r = run("collect", "-p", app.pid, "--resume-runtime", "false", "--duration",
                        "100ms", "-o", "none", "--stop-timeout", "500ms", *more)
                if target == "net11":  # it serves sessions before it goes on
                    check(r.code == 0, what, r)
                    continue
                check(r.code == 1 and "nothing was recorded of process %d (Shop): the runtime "
                      "sent nothing: it is suspended until it is told to resume" % app.pid in r.err, what, r)
                check("'drdotnet-trace process resume -p %d'" % app.pid in r.err,
                      what + ": what to do", r)
            r = run("collect", "-p", app.pid, "--duration", "500ms", "-o", "none", "-q")
            check(r.code == 0, what + ": then recorded", r)
            wait_until(what + ": no session is left", lambda app=app: in_process_sessions(app) == 0)
            r = run("collect", "-p", app.pid, "--duration", "100ms", "-o", "none", "-q")
            check(r.code == 0 and app.process.poll() is None, what + ": lives on", r)


def stopped_while_it_waits(folder):
    """Whatever happens to us, a process that came is not left waiting."""
    for providers in ("Microsoft-Windows-DotNETRuntime", "x" * 40000):
        r, path = waiting(folder, "r.sock", "-o", "none", "--providers", providers)
        with App([SHOP, "cpu", "1"], env={"DOTNET_DiagnosticPorts": path}, wait=False) as app:
            wait_until("it has come and gone", lambda app=app: app.process.poll() is not None, 30)
            check(app.process.poll() == 0, "it ran to its end", app.process.poll())
            result = r.finish(20)
        check(result.code in (0, 2), "stopped while it waits", result)


def killed_while_it_waits(folder):
    """kill -9 of us: a process that is about to come, or has just come, goes on."""
    for moment in (0, 0.1, 0.3):
        r, path = waiting(folder, "k.sock", "-o", "none")
        with App([SHOP, "idle", "1"], env={"DOTNET_DiagnosticPorts": path}, wait=False) as app:
            time.sleep(moment)
            r.signal(signal.SIGKILL)
            r.finish()
            wait_until("killed: it has come and gone",
                       lambda app=app: app.process.poll() is not None)
            check(app.process.poll() == 0, "killed: it ran to its end", app.process.poll())
        wait_until("killed: the socket is removed", lambda path=path: not os.path.exists(path))


def connect(folder):
    with shop("net10", "cpu") as app:
        port = sockets(app.pid)[0]
        path = os.path.join(folder, "c.nettrace")
        r = run("collect", "--dport", port + ",connect", "--duration", "1s", "-o", path)
        check(r.code == 0 and events(path)[0].get("complete"), "connect: complete", r)
        os.symlink(port, os.path.join(folder, "alias"))
        r = run("collect", "--dport", "uds:alias,connect", "--duration", "1s", "-o",
                "%n-%p.nettrace", cwd=folder)
        check(os.path.exists(os.path.join(folder, "Shop-%d.nettrace" % app.pid)),
              "connect: knows who it is", r, os.listdir(folder))
    r = run("collect", "--dport", os.path.join(folder, "none") + ",connect", "-o", "none")
    check(r.code == 5 and "cannot connect" in r.err, "connect: nothing there", r)
    silent = socket.socket(socket.AF_UNIX)
    silent.bind(os.path.join(folder, "silent"))
    silent.listen()
    r = run("collect", "--dport", os.path.join(folder, "silent") + ",connect", "--timeout", "1s",
            "-o", "none")
    check(r.code == 5 and 0.9 < r.seconds < 3, "connect: silence ends with --timeout", r)
    silent.close()


class Relay:
    """TCP on one side, Unix sockets on the other: what dsrouter is, on one machine."""

    def __init__(self, listener, dial):
        self.listener = listener
        self.dial = dial
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            with contextlib.suppress(OSError):
                near, _ = self.listener.accept()
                far = self.dial()
                for a, b in ((near, far), (far, near)):
                    threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    @staticmethod
    def pump(a, b):
        with contextlib.suppress(OSError):
            while True:
                data = a.recv(65536)
                if not data:
                    break
                b.sendall(data)
        for s in (a, b):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def dial(family, address):
    s = socket.socket(family)
    s.connect(address)
    return s


def tcp(folder):
    path = os.path.join(folder, "t.nettrace")
    with shop("net10", "cpu") as app:
        listener = socket.create_server(("127.0.0.1", 0))
        number = listener.getsockname()[1]
        Relay(listener, lambda: dial(socket.AF_UNIX, sockets(app.pid)[0]))
        r = run("collect", "--dport", "localhost:%d,connect" % number, "--duration", "1s", "-o",
                path)
        check(r.code == 0 and events(path)[0].get("complete"), "tcp connect: complete", r)
    number = free_port()
    r = run("collect", "--dport", "127.0.0.1:%d,connect" % number, "--duration", "1s", "-o", "none")
    check(r.code == 5 and "refused" in r.err, "tcp connect: nothing there", r)
    ours = Running("collect", "--dport", "127.0.0.1:%d" % number, "--duration", "1s", "--json",
                   "-o", os.path.join(folder, "%n.nettrace"))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(folder, "relay"))
    listener.listen()
    time.sleep(0.5)
    Relay(listener, lambda: dial(socket.AF_INET, ("127.0.0.1", number)))
    with App([SHOP, "cpu", "60"], env={"DOTNET_DiagnosticPorts": os.path.join(folder, "relay")},
             wait=False):
        result = ours.finish()
    check(result.code == 0, "tcp listen: exit code 0", result)
    check(result.json().get("trace", {}).get("complete"), "tcp listen: complete", result)
    check(os.path.exists(os.path.join(folder, "Shop.nettrace")), "tcp listen: asks for the name",
          os.listdir(folder))
    r = run("collect", "--dport", "example.org:9000,connect")
    check(r.code == 2 and "localhost" in r.err, "tcp: no names", r)


if __name__ == "__main__":
    with scratch() as folder:
        parts((many_runtimes, nosuspend, stale_and_taken), folder)
    with scratch() as folder:
        parts((target_ends, not_resumed, default_port, stopped_while_it_waits,
               killed_while_it_waits, connect, tcp), folder)
    parts((left_suspended,))
    done()
