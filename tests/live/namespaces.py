#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes that live elsewhere: other pid and mount namespaces, a /tmp of their own, other users,
and a sidecar, which shares nothing but /tmp.  All of them are found, or explained in one line."""

import contextlib
import os
import shutil
import socket
import subprocess

from live import (PROGRAM, App, Result, check, child_of, done, events, parts, recorded, run, scratch,
                  shop, skip, sockets, wait_until, workload)

SHOP = os.path.join(workload("net10"), "shop")
NOBODY = 65534


def processes():
    return run("ps", "--json").json().get("processes", [])


class Elsewhere:
    """A workload behind unshare; its pid is the one that we see."""

    def __init__(self, flags, own_tmp, tmpdir=None):
        inner = ("mount -t tmpfs tmpfs /tmp && " if own_tmp else "")
        if tmpdir:
            inner += "mkdir -p %s && export TMPDIR=%s && " % (tmpdir, tmpdir)
        inner += 'exec "$@"'
        self.starter = subprocess.Popen(
            ["unshare", *flags, "sh", "-c", inner, "sh", SHOP, "cpu", "120"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = self.starter.pid
        if "-f" in flags:
            self.pid = wait_until("the child is there", lambda: child_of(self.starter.pid))

    def socket(self):
        """Of a process that is number 1 in its own namespace and shares our /tmp."""
        with contextlib.suppress(OSError), open("/proc/%d/stat" % self.pid, encoding="utf-8") as f:
            path = "/tmp/dotnet-diagnostic-1-%s-socket" % f.read().rsplit(")", 1)[1].split()[19]
            return path if os.path.exists(path) else None
        return None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        left = self.socket()
        for victim in (child_of(self.starter.pid), self.starter.pid):
            if victim:
                subprocess.call(["kill", "-9", str(victim)], stderr=subprocess.DEVNULL)
        self.starter.wait()
        if left:
            os.unlink(left)


def seen_from_outside(folder):
    """From the host, everything with a number here is traced by that number."""
    for flags, own_tmp, what in ((["-m", "--propagation", "private"], True, "private /tmp"),
                                 (["-p", "-f", "-m", "--mount-proc"], True,
                                  "pid and mount namespace"),
                                 (["-p", "-f", "-m", "--mount-proc"], False, "shared /tmp")):
        with Elsewhere(flags, own_tmp) as app:
            p = wait_until(what + ": is found", lambda app=app: next(
                (p for p in processes() if p["pid"] == app.pid and p["traceable"]), None))
            check(p and p["container"] != "foreign", what + ": is no stranger", p)
            path = os.path.join(folder, "x.nettrace")
            r = run("collect", "-p", app.pid, "--duration", "1s", "-o", path, "--force")
            check(r.code == 0 and events(path)[0].get("complete"), what + ": is traced", r)
            if not own_tmp:
                foreign = [p for p in processes() if p["container"] == "foreign" and
                           p["socket"] == app.socket()]
                check(app.socket() and not foreign, what + ": is listed once", foreign)


def long_path(folder):
    """A path that the runtime can just bind is too long behind /proc/PID/root, and reached all the
    same."""
    for length in (60, 70):
        tmpdir = "/tmp/" + "t" * (length - 5)
        with Elsewhere(["-p", "-f", "-m", "--mount-proc"], True, tmpdir) as app:
            p = wait_until("long path: is found", lambda app=app: next(
                (p for p in processes() if p["pid"] == app.pid and p["traceable"]), None))
            check(p and len(p["socket"]) > 107, "long path: is longer than a socket's may be", p)
            path = os.path.join(folder, "long%d.nettrace" % length)
            r = run("collect", "-p", app.pid, "--duration", "1s", "-o", path)
            check(r.code == 0 and events(path)[0].get("complete"), "long path: is traced", r)


def beside(*args):
    """Ours in pid and mount namespaces of its own, with the same /tmp: as a sidecar has it."""
    r = subprocess.run(["unshare", "-p", "-f", "-m", "--mount-proc", PROGRAM, *map(str, args)],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=60)
    return Result(r.returncode, r.stdout, r.stderr, 0)


def dead_socket():
    """As a process that was killed leaves it behind."""
    path = "/tmp/dotnet-diagnostic-1-1-socket"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
    return path


def sidecar(folder):
    dead = dead_socket()
    with Elsewhere(["-p", "-f", "-m", "--mount-proc"], False) as app:
        port = wait_until("sidecar: its socket", app.socket)
        # It may still be starting, or be slow to answer while others use the processors.
        wait_until("sidecar: it answers", lambda: any(
            p["socket"] == port and p["traceable"] and p["name"]
            for p in beside("ps", "--json").json().get("processes", [])))
        r = beside("ps", "--json")
        rows = [p for p in r.json().get("processes", []) if p["container"] == "foreign"]
        check(not [p for p in rows if p["socket"] == dead], "sidecar: no dead sockets", r)
        rows = [p for p in rows if p["socket"] == port]
        check(len(rows) == 1, "sidecar: is listed once", r)
        p = rows[0] if rows else {}
        check(p.get("pid") == 1 and p.get("name") == "Shop" and p.get("traceable") is True and
              p.get("uptime_s") is None and p.get("socket") == port, "sidecar: what is known", p)
        text = beside("ps")
        check("--diagnostic-port %s,connect" % port in text.out, "sidecar: how to trace it", text)
        # Number 1 is ourselves there.
        r = beside("collect", "-p", 1, "--duration", "1s", "-o", "none")
        check(r.code == 5 and "--diagnostic-port %s,connect" % port in r.err,
              "sidecar: -p refuses and advises", r)
        path = os.path.join(folder, "side.nettrace")
        r = beside("collect", "--diagnostic-port", port + ",connect", "--duration", "1s", "-o",
                   path)
        check(r.code == 0 and events(path)[0].get("complete"), "sidecar: traced by its socket", r)
        if len([p for p in beside("ps", "--json").json()["processes"] if p["traceable"]]) == 1:
            r = beside("collect", "-n", "Shop", "--duration", "1s", "-o", path, "--force")
            check(r.code == 0 and events(path)[0].get("complete"), "sidecar: by its name", r)
            r = beside("collect", "--duration", "1s", "-o", path, "--force")
            check(r.code == 0 and events(path)[0].get("complete"), "sidecar: the only one", r)
    os.unlink(dead)


def sidecar_dies(folder):
    """How it ended cannot be seen from there."""
    with Elsewhere(["-p", "-f", "-m", "--mount-proc"], False) as app:
        port = wait_until("dies: its socket", app.socket)
        path = os.path.join(folder, "dies.nettrace")
        r = subprocess.Popen(["unshare", "-p", "-f", "-m", "--mount-proc", PROGRAM, "collect",
                              "--dport", port + ",connect", "--duration", "60s", "-o", path],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
        wait_until("dies: something is recorded", lambda: recorded(folder, "dies"))
        subprocess.call(["kill", "-9", str(app.pid)])
        err = r.communicate(timeout=30)[1]
        check(r.returncode == 3 and "not available" in err, "dies: says so", r.returncode, err)
        check(events(path)[0].get("events", 0) > 0, "dies: what there is is kept")


def other_users(folder):
    """Root traces everybody's; others are told whose it is."""
    def become():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    os.chmod(folder, 0o755)
    with shop("net10", "cpu") as app:
        r = run("collect", "-p", app.pid, "--duration", "1s", "-o", "none", preexec_fn=become)
        check(r.code == 5 and "belongs to user root: run as root" in r.err,
              "other user: one line says whose", r)
        check(len(r.err.strip().split("\n")) <= 2, "other user: one line", r)
        r = run("collect", "--dport", sockets(app.pid)[0] + ",connect", "--duration", "1s", "-o",
                "none", preexec_fn=become)
        check(r.code == 5 and "ermission denied" in r.err, "other user: by its socket", r)
    public = os.path.join(folder, "public")  # where others may read it
    shutil.copytree(os.path.join(workload("net10"), "bin"), public)
    subprocess.check_call(["chmod", "-R", "a+rX", public])
    with App([os.path.join(public, "Shop"), "cpu", "60"], preexec_fn=become,
             env={"HOME": "/nonexistent"}) as app:
        p = next((p for p in processes() if p["pid"] == app.pid), {})
        check(p.get("user") == "nobody" and p.get("traceable"), "other user: listed for root", p)
        r = run("collect", "-p", app.pid, "--duration", "1s", "-o",
                os.path.join(folder, "nobody.nettrace"))
        check(r.code == 0, "other user: root may", r)


if __name__ == "__main__":
    if os.geteuid() != 0 or subprocess.call(["unshare", "-p", "-f", "-m", "--mount-proc", "true"],
                                            stderr=subprocess.DEVNULL) != 0:
        skip("namespaces need root, and a kernel that lets root have them")
    with scratch() as folder:
        parts((seen_from_outside, long_path, sidecar, sidecar_dies, other_users), folder)
    done()
