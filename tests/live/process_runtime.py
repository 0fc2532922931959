#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""process_runtime.py PROGRAM TARGET: each action of process on a real runtime."""

import os
import re
import sys

from live import (App, check, done, in_process_sessions, run, scratch, shop, skip, wait_until,
                  workload)

TARGET = sys.argv[2] if len(sys.argv) > 2 else "net10"
VERSION = {"net31": "3.1.", "net8": "8.", "net9": "9.", "net10": "10.", "net11": "11.",
           "aot10": "10."}[TARGET]
OLD, NATIVE = TARGET == "net31", TARGET == "aot10"


def information(app):
    r = run("process", "info", "-p", app.pid, "--json")
    p = r.json().get("process", {})
    check(r.code == 0, "info: exit code", r)
    check((p.get("runtime_version") or "").startswith(VERSION), "info: version", p)
    check(p.get("process_info_version") == (0 if OLD else 3), "info: which ProcessInfo", p)
    check(p.get("name") == "Shop" and p.get("arch") == "x64", "info: name and arch", p)
    check(p.get("own_pid") == app.pid, "info: own pid", p)
    check("Shop" in (p.get("command_line") or ""), "info: command line", p)
    check(p.get("rid") == (None if OLD else "linux-x64"), "info: rid", p)
    check(bool(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
                            p.get("cookie") or "")) != OLD, "info: cookie", p)
    check(("/proc" in r.err) == OLD, "info: says where it comes from", r)
    text = run("process", "info", "-n", "Shop")
    # Another program of that name may run here.
    check(re.search(r"^ *pid +%d$" % app.pid, text.out, re.M) if text.code == 0 else
          text.code == 2 and re.search(r"^ *%d  Shop" % app.pid, text.err, re.M), "info: -n", text)
    by_path = run("process", "info", "--diagnostic-port", p.get("socket"), "--json")
    check(by_path.code == 0 and by_path.json().get("pid", 0) is None, "info: by path", by_path)


def environment(app):
    r = run("process", "env", "-p", app.pid, "--json")
    if OLD:
        check(r.code == 1 and ".NET 5" in r.err and r.out == "", "env: too old", r)
        r = run("process", "env", "-p", app.pid, "--set", "A=B")
        check(r.code == 1 and ".NET 6" in r.err, "env --set: too old", r)
        return
    got = {v["name"]: v["value"] for v in r.json().get("variables", [])}
    check(r.code == 0 and got.get("DRD_TEST") == "ž\n\x1b[1m=x", "env: value", got.get("DRD_TEST"))
    check(got.get("PATH") == os.environ["PATH"], "env: PATH", got.get("PATH"))
    r = run("process", "env", "-p", app.pid)
    check("DRD_TEST=ž\\n\\x1b[1m=x\n" in r.out, "env: escaped", r)
    r = run("process", "env", "-p", app.pid, "--set", "DRD_TEST=new=1", "--set", "DRD_MORE=")
    check(r.code == 0 and r.out == "" and "new=1" not in r.err, "env --set", r)
    r = run("process", "env", "-p", app.pid)
    check("\nDRD_TEST=new=1\n" in r.out and "\nDRD_MORE=\n" in r.out, "env: what was set", r)


def is_core(path):
    with open(path, "rb") as f:
        head = f.read(18)
    return head[:4] == b"\x7fELF" and head[16] == 4  # ET_CORE


def dumps(app, folder):
    path = os.path.join(folder, "a%b.dmp")
    order = ["process", "dump", "-p", app.pid, "--type", "mini"]
    r = run(*order, "-o", path.replace("%", "%%"), "--json")
    if NATIVE:
        check(r.code == 1 and "NativeAOT" in r.err and r.out == "", "dump: NativeAOT", r)
        return
    d = r.json().get("dump", {})
    check(r.code == 0 and d.get("path") == path, "dump: path", r)
    check(d.get("command") == ("GenerateCoreDump" if OLD else "GenerateCoreDump3"), "dump: command", d)
    check(os.path.exists(path) and is_core(path), "dump: is a core file", os.listdir(folder))
    check(os.path.exists(path) and os.path.getsize(path) == d.get("bytes"), "dump: size", d)
    r = run(*order, "-o", path.replace("%", "%%"))
    check(r.code == 1 and "it exists" in r.err, "dump: does not replace", r)
    r = run(*order, "-o", path.replace("%", "%%"), "--force", "--crash-report")
    check(r.code == 0 and r.out == path + "\n" and is_core(path), "dump: --force", r)
    check(os.path.exists(path + ".crashreport.json") != OLD, "dump: crash report",
          os.listdir(folder), r)
    check(("no crash report" in r.err) == OLD, "dump: says what was given up", r)
    r = run(*order, cwd=folder)
    check(r.code == 0 and r.out.startswith("%s/Shop_%d_" % (folder, app.pid)) and
          is_core(r.out.strip()), "dump: default name, in our folder", r)
    r = run(*order, "-o", "sub.dmp", cwd=folder)
    check(r.code == 0 and is_core(os.path.join(folder, "sub.dmp")), "dump: relative name", r)
    r = run(*order, "-o", "/nonexistent/x.dmp")
    check(r.code == 1 and r.out == "", "dump: cannot be written", r)
    check(("No such file" in r.err) != OLD, "dump: why", r)


def perf_map(app):
    path = "/tmp/perf-%d.map" % app.pid
    r = run("process", "perfmap", "on", "-p", app.pid, "--json")
    try:
        if OLD or NATIVE:
            check(r.code == 1 and ("NativeAOT" if NATIVE else ".NET 8") in r.err,
                  "perfmap: not possible, and why", r)
            check(not os.path.exists(path), "perfmap: no file")
            return
        m = r.json().get("perf_map", {})
        check(r.code == 0 and m == {"enabled": True, "kind": "perfmap", "file": path},
              "perfmap on", r)
        check(os.path.exists(path), "perfmap: the file")
        r = run("process", "perfmap", "off", "-p", app.pid, "--json")
        check(r.code == 0 and r.json()["perf_map"]["enabled"] is False, "perfmap off", r)
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        check(lines and all(re.match(r"(0x)?[0-9A-Fa-f]+ [0-9a-fA-F]+ \S", line) for line in lines),
              "perfmap: lines", lines[:3])
        check(any("Shop" in line for line in lines), "perfmap: our methods", lines[:3])
    finally:
        if os.path.exists(path):
            os.unlink(path)


def suspended(folder):
    binary = os.path.join(workload(TARGET), "shop")
    r = run("process", "resume", "-p", 1)
    check(r.code == 5, "resume: not a .NET process", r)
    with App([binary, "cpu", "60"], env={"DOTNET_DefaultDiagnosticPortSuspend": "1"}) as app:
        def runs():
            with open("/proc/%d/task/%d/stat" % (app.pid, app.pid), encoding="utf-8") as f:
                words = f.read().rsplit(")", 1)[1].split()
            return int(words[11]) + int(words[12]) > 100  # ticks; busy for a second

        if OLD:
            r = run("process", "resume", "-p", app.pid)
            check(r.code == 1 and ".NET 5" in r.err, "resume: too old", r)
            return
        r = run("process", "info", "-p", app.pid, "--json")
        check(r.code == 0, "suspended: info", r)
        r = run("process", "env", "-p", app.pid, "--set", "DRD_EARLY=1")
        check(r.code == 0, "suspended: env --set", r)
        check(not runs(), "it is suspended")
        if not NATIVE:
            path = os.path.join(folder, "early.dmp")
            r = run("process", "dump", "-p", app.pid, "--type", "mini", "-o", path)
            check((r.code == 0) == os.path.exists(path), "suspended: no lie about the dump", r)
            check(r.code == 0 or "resume" in r.err, "suspended: says what to do", r)
        r = run("process", "resume", "-p", app.pid, "--json")
        check(r.code == 0 and r.json().get("resumed") is True, "resume", r)
        wait_until("it runs", runs)
        r = run("process", "env", "-p", app.pid)
        check("\nDRD_EARLY=1\n" in r.out, "suspended: the variable is there", r)
        r = run("process", "resume", "-p", app.pid)
        check(r.code == 0, "resume: of one that runs", r)


if __name__ == "__main__":
    if not os.path.isdir("/proc/self"):
        skip("there is no /proc")
    with scratch() as scratch_folder:
        # The test runner fills freed memory; the createdump of .NET Core 3.1 never ends with that.
        with shop(TARGET, "cpu", env={"DRD_TEST": "ž\n\x1b[1m=x", "MALLOC_PERTURB_": "0"}) as target:
            information(target)
            environment(target)
            dumps(target, scratch_folder)
            perf_map(target)
            wait_until("no connection is left", lambda: in_process_sessions(target) == 0)
            check(target.process.poll() is None, "the target is alive")
        suspended(scratch_folder)
    done()
