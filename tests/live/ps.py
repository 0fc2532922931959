#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ps: which processes there are, of which runtime, and why one cannot be traced."""

import os
import re
import resource
import shutil
import signal
import subprocess

from live import (PROGRAM, App, check, child_of, done, freeze, parts, run, scratch, shop, skip,
                  wait_until, workload)

VERSIONS = {"net31": "3.1.", "net8": "8.", "net9": "9.", "net10": "10.", "net11": "11.",
            "aot10": "10."}
MEMBERS = ["pid", "name", "runtime_version", "arch", "user", "container", "uptime_s",
           "command_line", "traceable", "why_not", "socket"]


def processes(*args, **more):
    r = run("ps", "--json", *args, **more)
    check(r.code == 0, "ps: exit code 0", r)
    j = r.json()
    check(j.get("schema") == "drdotnet-trace/1", "ps: schema", r)
    return {p["pid"]: p for p in j.get("processes", [])}


def all_runtimes():
    apps = {t: shop(t, "idle") for t in VERSIONS}
    try:
        found = processes()
        text = run("ps")
        for target, app in apps.items():
            p = found.get(app.pid)
            if not check(p, target + ": is listed", found.keys()):
                continue
            check(list(p) == MEMBERS, target + ": members", list(p))
            check(p["name"] == "Shop", target + ": name", p)
            check(p["runtime_version"].startswith(VERSIONS[target]), target + ": version", p)
            check(p["arch"] == "x64", target + ": arch", p)
            check(p["traceable"] is True and p["why_not"] is None, target + ": traceable", p)
            check("idle" in p["command_line"], target + ": command line", p)
            check(0 <= p["uptime_s"] < 60, target + ": uptime", p)
            check(any(line.split()[:2] == [str(app.pid), "Shop"]
                      for line in text.out.split("\n")), target + ": in the table", text)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("ps")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        check(used < 0.3, "ps: takes little time of a processor", used)
    finally:
        for app in apps.values():
            app.__exit__()


def not_traceable(folder):
    binary = os.path.join(workload("net10"), "shop")
    with App([binary, "idle", "60"], env={"DOTNET_EnableDiagnostics": "0"}, wait=False) as app:
        p = wait_until("a process without a port is listed", lambda: processes().get(app.pid))
        check(p and p["traceable"] is False and "DOTNET_EnableDiagnostics" in p["why_not"],
              "disabled: says why", p)
    long = os.path.join(folder, "x" * 120)
    os.mkdir(long)
    with App([binary, "idle", "60"], env={"TMPDIR": long}, wait=False) as app:
        p = wait_until("a process with a long TMPDIR is listed",
                       lambda: processes().get(app.pid))
        check(p and p["traceable"] is False and "TMPDIR" in p["why_not"], "long: says why", p)
    with shop("net10", "idle") as app:
        if os.geteuid() == 0:
            # Other users cannot see much, but they are told whose it is.
            p = processes(preexec_fn=lambda: (os.setgid(65534), os.setuid(65534))).get(app.pid)
            check(p and p["traceable"] is False and "root" in p["why_not"], "other user", p)
        freeze(app.pid)
        p = processes("--timeout", "200ms").get(app.pid)
        os.kill(app.pid, signal.SIGCONT)
        check(p and p["traceable"] is False and "stopped" in p["why_not"], "stopped: says so", p)


def unreadable(folder):
    """Kernel threads, and processes of others: passed over, and counted with -v."""
    if os.geteuid() != 0:
        print("not tried: entries that cannot be read (needs root)")
        return
    public = os.path.join(folder, "tool")
    shutil.copy(PROGRAM, public)
    os.chmod(folder, 0o755)
    with shop("net10", "idle"):
        r = subprocess.run([public, "ps", "-v"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, check=False, stdin=subprocess.DEVNULL,
                           preexec_fn=lambda: (os.setgroups([]), os.setgid(65534), os.setuid(65534)))
        m = re.search(r"(\d+) processes looked at, (\d+) of them not readable", r.stderr)
        check(r.returncode == 0 and m, "unreadable: counted", r)
        check(m and int(m.group(2)) < int(m.group(1)), "unreadable: not all are", r)


def own_directory(folder):
    own = os.path.join(folder, "own")
    os.mkdir(own)
    binary = os.path.join(workload("net10"), "shop")
    with App([binary, "idle", "60"], env={"TMPDIR": own}, tmp=own) as app:
        check(processes().get(app.pid, {}).get("traceable"), "TMPDIR of the target")
    with shop("net10", "idle", env={"TMPDIR": ""}) as app:
        p = processes(env=dict(os.environ, TMPDIR=own)).get(app.pid, {})
        check(p.get("traceable"), "our own TMPDIR does not matter", p)


def namespaces(folder):
    """A private /tmp, and another pid namespace."""
    if os.geteuid() != 0 or subprocess.call(["unshare", "-m", "true"],
                                            stderr=subprocess.DEVNULL) != 0:
        print("not tried: namespaces (unshare needs root)")
        return
    binary = os.path.join(workload("net10"), "shop")
    for flags, what in (("-m", "private /tmp"), ("-mpf", "pid namespace")):
        inner = 'mount -t tmpfs tmpfs /tmp && exec "$@"'
        own_proc = ["--mount-proc"] if "p" in flags else []
        starter = subprocess.Popen(["unshare", flags, *own_proc, "--propagation", "private", "sh",
                                    "-c", inner, "sh", binary, "idle", "60"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            pid = starter.pid
            if "f" in flags:
                pid = wait_until(what + ": child", lambda: child_of(starter.pid))
            p = wait_until(what + ": is found", lambda: traceable(pid))
            if "p" in flags:
                check(p and p["container"], what + ": is told", p)
            path = os.path.join(folder, "ns%s.nettrace" % flags)
            r = run("collect", "-p", pid, "--duration", "1s", "-o", path)
            check(r.code == 0, what + ": can be traced", r)
        finally:
            for victim in (child_of(starter.pid), starter.pid):
                if victim:
                    subprocess.call(["kill", "-9", str(victim)], stderr=subprocess.DEVNULL)
            starter.wait()


def traceable(pid):
    p = processes().get(pid)
    return p if p and p["traceable"] else None


if __name__ == "__main__":
    if not os.path.isdir("/proc/self"):
        skip("there is no /proc")
    with scratch() as folder:
        parts((all_runtimes,))
        parts((not_traceable, own_directory, namespaces, unreadable), folder)
    done()
