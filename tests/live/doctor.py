#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""doctor: each cause why a process cannot be traced, made up alone; and that nothing is left."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

from live import (HERE, LONG, PROGRAM, TARGETS, App, check, done, in_process_sessions, parts, run,
                  scratch, shop, skip, sockets, wait_until, workload)


def examine(pid, *args, **more):
    """Exit code, the process's checks by id, the result itself."""
    r = run("doctor", "-p", pid, "--json", *args, **more)
    j = r.json()
    check(j.get("schema") == "drdotnet-trace/1", "schema", r)
    p = (j.get("processes") or [{}])[0]
    checks = {c["id"]: c for c in p.get("checks", [])}
    failed = [c for c in p.get("checks", []) if c["level"] == "failed"]
    check(all(c["advice"] for c in failed), "every obstacle has advice", r)
    check(p.get("traceable") == (not failed) and r.code == (5 if failed else 0),
          "verdict and exit code agree", r)
    return r.code, checks, r


def expect(pid, what, code, **wanted):
    """wanted: check id (dashes as _) -> (level, words of message or advice)."""
    got, checks, r = examine(pid)
    check(got == code, what + ": exit code %d" % code, r)
    for name, (level, words) in wanted.items():
        c = checks.get(name.replace("_", "-"))
        if check(c, "%s: has a check %s" % (what, name), r):
            check(c["level"] == level and words in c["message"] + " " + (c["advice"] or ""),
                  "%s: %s is %s, with '%s'" % (what, name, level, words), c)
    return checks


def healthy():
    for target in TARGETS:
        with shop(target, "idle") as app:
            checks = expect(app.pid, target, 0, process=("ok", ""), user=("ok", ""),
                            namespace=("ok", ""), diagnostics=("ok", ""),
                            socket=("ok", sockets(app.pid)[0]), answer=("ok", "answered"),
                            session=("ok", "ended again"))
            check(all(c["level"] in ("ok", "info", "warning") for c in checks.values()),
                  target + ": nothing is wrong", checks)
            wait_until(target + ": no session is left", lambda: in_process_sessions(app) == 0)
            check(app.process.poll() is None, target + ": is alive")


def disabled():
    cases = [("net10", "DOTNET_EnableDiagnostics"), ("net10", "DOTNET_EnableDiagnostics_IPC"),
             ("net8", "DOTNET_EnableDiagnostics_IPC"), ("net31", "COMPlus_EnableDiagnostics"),
             ("net10", "COMPlus_EnableDiagnostics"), ("aot10", "DOTNET_EnableDiagnostics")]
    for target, name in cases:
        binary = os.path.join(workload(target), "shop")
        with App([binary, "idle", "60"], env={name: "0"}, wait=False) as app:
            wait_until("it runs", lambda: len(os.listdir("/proc/%d/task" % app.pid)) > 2)
            time.sleep(0.3)
            expect(app.pid, "%s %s" % (target, name), 5, diagnostics=("failed", name + "=0"),
                   socket=("failed", "see diagnostics"))


def suspended():
    for target in TARGETS[1:] if LONG else ("net8", "net11", "aot10"):
        binary = os.path.join(workload(target), "shop")
        with App([binary, "idle", "60"], env={"DOTNET_DefaultDiagnosticPortSuspend": "1"}) as app:
            time.sleep(0.5)
            expect(app.pid, target, 0, suspended=("warning", "process resume -p %d" % app.pid))
            run("process", "resume", "-p", app.pid)
            wait_until(target + ": is resumed",
                       lambda: "suspended" not in examine(app.pid)[1])
            expect(app.pid, target + " resumed", 0, session=("ok", ""))
            wait_until(target + ": no session is left", lambda: in_process_sessions(app) == 0)
    binary = os.path.join(workload("net10"), "shop")
    with App([binary, "idle", "60"], env={"DOTNET_DiagnosticPorts": "/tmp/drd-nobody.sock"}) as app:
        time.sleep(0.5)
        expect(app.pid, "a port that nobody serves", 0, ports=("info", "/tmp/drd-nobody.sock"),
               suspended=("warning", ""))


def threads_run(app):
    wait_until("it runs", lambda: len(os.listdir("/proc/%d/task" % app.pid)) > 4)


def directories(folder):
    binary = os.path.join(workload("net10"), "shop")
    own = os.path.join(folder, "own")
    os.mkdir(own)
    with App([binary, "idle", "60"], env={"TMPDIR": own}, tmp=own) as removed:
        begin = time.monotonic()
        expect(removed.pid, "its own TMPDIR", 0, tmpdir=("info", own), session=("ok", ""))
        os.unlink(sockets(removed.pid, own)[0])
        long = os.path.join(folder, "x" * (150 - len(folder) - 1))
        os.mkdir(long)
        with App([binary, "idle", "60"], env={"TMPDIR": long}, wait=False) as app:
            threads_run(app)
            expect(app.pid, "a TMPDIR of 150 characters", 5,
                   path_length=("failed", "TMPDIR of at most"), tmpdir=("info", long),
                   socket=("failed", "see path-length"))
        with App([binary, "idle", "60"], env={"TMPDIR": folder + "/none"}, wait=False) as app:
            threads_run(app)
            expect(app.pid, "a TMPDIR that is not there", 5, tmpdir=("failed", "does not exist"),
                   socket=("failed", "see tmpdir"))
        time.sleep(max(0, begin + 5.5 - time.monotonic()))  # until it is not young any more
        expect(removed.pid, "a socket that was removed", 5,
               socket=("failed", "start the program again"))


def dead_and_gone():
    with shop("net10", "idle") as app:
        path = sockets(app.pid)[0]
        os.kill(app.pid, signal.SIGKILL)
        app.process.wait()
        expect(app.pid, "killed", 5, process=("failed", "there is no process"),
               dead_socket=("info", path))
        machine = run("doctor", "--json").json().get("machine", {})
        check(any(c["id"] == "dead-socket" and c["level"] == "info" for c in machine["checks"]),
              "dead sockets are told without -p too", machine)
    child = subprocess.Popen(["true"])
    wait_until("it is a zombie", lambda: open("/proc/%d/stat" % child.pid, encoding="utf-8").read()
               .rsplit(")", 1)[1].split()[0] == "Z")
    expect(child.pid, "ended", 5, process=("failed", "has ended"))
    child.wait()
    with App(["sleep", "60"], wait=False) as app:
        expect(app.pid, "no .NET", 5, socket=("failed", "does not look like .NET"))
    if os.path.exists("/proc/2/stat") and "kthreadd" in open("/proc/2/stat", encoding="utf-8").read():
        expect(2, "a kernel thread", 5, process=("failed", "kernel"))
    with shop("net10", "idle") as app:
        os.kill(app.pid, signal.SIGSTOP)
        wait_until("it stops", lambda: " T " in open("/proc/%d/stat" % app.pid, encoding="utf-8").read())
        expect(app.pid, "stopped", 5, process=("failed", "kill -CONT %d" % app.pid))


def sessions():
    """All 64 in use."""
    def text(s):
        return struct.pack("<I", len(s) + 1) + (s + "\0").encode("utf-16le")

    payload = struct.pack("<IIBI", 1, 1, 0, 1) + struct.pack("<QI", 0, 1)
    payload += text("Microsoft-Windows-DotNETRuntime") + struct.pack("<I", 0)
    message = b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", 20 + len(payload), 2, 3, 0) + payload
    with shop("net10", "idle") as app:
        opened = []
        for _ in range(64):
            s = socket.socket(socket.AF_UNIX)
            s.connect(sockets(app.pid)[0])
            s.sendall(message)
            check(s.recv(28)[17:18] == b"\0", "a session more")
            opened.append(s)
        expect(app.pid, "64 sessions", 5, session=("failed", "64 sessions are open"))
        wait_until("only those 64 are left", lambda: in_process_sessions(app) == 64)
        for s in opened:
            s.close()


def ports_of_our_own():
    """A process with a socket like a runtime's, that does not behave like one."""
    cases = [("silent", "answer", "failed", "another tool"), ("garbage", "answer", "failed", "ss -xlp"),
             ("dead", "answer", "failed", "dead"), ("full", "session", "failed", "FAIL"),
             ("mute", "suspended", "warning", "sends nothing"),
             ("starting", "session", "failed", "in a moment"),
             ("asleep", "suspended", "warning", "any managed code"),
             ("young", "session", "failed", "FAIL")]
    for mode, name, level, words in cases:
        fake = subprocess.Popen([sys.executable, os.path.join(HERE, "fake_port.py"), mode],
                                stdout=subprocess.PIPE, text=True)
        try:
            fake.stdout.readline()
            r = run("doctor", "-p", fake.pid, "--json", "--timeout", "500ms")
            c = {c["id"]: c for c in r.json()["processes"][0]["checks"]}.get(name)
            check(r.code == (5 if level == "failed" else 0) and r.seconds < 15, mode + ": ends", r)
            if check(c, mode + ": has a check " + name, r):
                check(c["level"] == level and words in c["message"] + " " + c["advice"],
                      "%s: %s with '%s'" % (mode, level, words), c)
            check(mode != "asleep" or r.seconds > 1.5, "asleep: is given time to start", r)
        finally:
            fake.kill()
            fake.wait()
            for path in sockets(fake.pid):
                os.unlink(path)


def other_user(folder):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("not tried: another user (needs root and setpriv)")
        return
    reachable = os.path.join(folder, "tool")
    shutil.copy(PROGRAM, reachable)
    os.chmod(folder, 0o755)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", reachable]
    with shop("net10", "idle") as app:
        r = subprocess.run([*nobody, "doctor", "-p", str(app.pid)], stdout=subprocess.PIPE, text=True,
                           check=False)
        check(r.returncode == 5 and "it belongs to root" in r.stdout and "run as root" in r.stdout,
              "another user: says whose it is", r.stdout)
        check("perf events of it cannot be opened" in r.stdout, "another user: perf", r.stdout)
        r = subprocess.run([*nobody, "process", "info", "-p", str(app.pid)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, check=False)
        check(r.returncode == 5 and "belongs to user root: run as root" in r.stderr,
              "another user: process says it too", r.stderr)
        lame = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", reachable]
        r = subprocess.run([*lame, "doctor", "-p", str(app.pid)], stdout=subprocess.PIPE, text=True,
                           check=False)
        check("without all of its rights" in r.stdout and "SYS_PTRACE" in r.stdout,
              "root without capabilities", r.stdout)
    with App(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sleep", "60"],
             wait=False) as app:
        time.sleep(0.3)
        expect(app.pid, "a user's process, as root", 5, user=("ok", "CAP_DAC_OVERRIDE"))


def namespaces():
    if os.geteuid() != 0 or subprocess.call(["unshare", "-mpf", "true"],
                                            stderr=subprocess.DEVNULL) != 0:
        print("not tried: namespaces (unshare needs root)")
        return
    binary = os.path.join(workload("net10"), "shop")
    starter = subprocess.Popen(["unshare", "-mpf", "--mount-proc", "--propagation", "private", "sh",
                                "-c", 'mount -t tmpfs tmpfs /tmp && exec "$@"', "sh", binary, "idle",
                                "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    children = "/proc/%d/task/%d/children" % (starter.pid, starter.pid)
    pid = None
    try:
        pid = int(wait_until("the child", lambda: open(children, encoding="utf-8").read().split())[0])
        own = "/proc/%d/root/tmp" % pid
        # Before its own /tmp is mounted it sees ours, where others' process 1 may have left a socket.
        wait_until("its socket", lambda: os.stat(own).st_dev != os.stat("/tmp").st_dev and
                   sockets(1, own))
        expect(pid, "a container", 0,
               namespace=("info", "other files and processes, as process 1"), session=("ok", ""))
        # What it writes, it writes into its own files.
        r = run("process", "dump", "-p", pid, "--type", "mini", "-o", "/tmp/in.dmp", "--json")
        outside = "/proc/%d/root/tmp/in.dmp" % pid
        check(r.code == 0 and os.path.exists(outside) and "seen from here: " + outside in r.err,
              "a container: dump", r)
        check(not os.path.exists("/tmp/in.dmp"), "a container: not here")
        r = run("process", "dump", "-p", pid, "-o", "in.dmp")
        check(r.code == 2 and "path from its root" in r.err, "a container: relative path", r)
        r = run("process", "perfmap", "on", "-p", pid, "--json")
        check(r.code == 0 and r.json()["perf_map"]["file"] == "/tmp/perf-1.map",
              "a container: perfmap", r)
        r = run("process", "info", "-p", pid, "--json")
        check(r.code == 0 and r.json()["process"]["own_pid"] == 1, "a container: info", r)
    finally:
        for victim in (pid, starter.pid):
            if victim:
                subprocess.call(["kill", "-9", str(victim)], stderr=subprocess.DEVNULL)
        starter.wait()


def machine():
    r = run("doctor", "--json")
    checks = {c["id"]: c for c in r.json().get("machine", {}).get("checks", [])}
    check(r.code == 0, "machine: exit code", r)
    check({"proc", "user", "tmpdir", "perf_event"} <= set(checks), "machine: checks", checks.keys())
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        check("paranoid " + f.read().strip() in checks["perf_event"]["message"],
              "machine: perf_event_paranoid", checks["perf_event"])
    r = run("doctor", env=dict(os.environ, TMPDIR="/var/tmp"))
    check("TMPDIR is '/var/tmp'" in r.out, "machine: our TMPDIR", r)
    with shop("net10", "idle") as app:
        found = {p["pid"]: p for p in run("doctor", "--json").json().get("processes", [])}
        check(found.get(app.pid, {}).get("traceable") is True, "machine: lists processes", found)
        ids = [c["id"] for c in found.get(app.pid, {}).get("checks", [])]
        check("answer" in ids and "session" not in ids, "machine: no session in each", ids)


if __name__ == "__main__":
    if not os.path.isdir("/proc/self"):
        skip("there is no /proc")
    parts((ports_of_our_own, healthy, disabled, suspended, dead_and_gone, sessions))
    with scratch() as scratch_folder:
        parts((directories, other_user), scratch_folder)
    parts((namespaces, machine))
    done()
