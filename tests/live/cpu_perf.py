# SPDX-License-Identifier: MIT
"""CPU samples that the kernel takes: the right methods, the right time for each thread, the same
report from the file, and what happens where perf_event_open is not allowed.

With DRD_LONG on every runtime, and against 'perf record' with perf maps."""

import collections
import ctypes
import errno
import os
import re
import shutil
import struct
import subprocess
import time

from flood import program
from live import LONG, TARGETS, App, check, done, events, run, scratch, shop, skip

# LONG is long enough for the tolerances that are promised: 4 points are 3 sigma of 1,350 samples.
SECONDS = 8 if LONG else 4
ENOUGH_SECONDS = 3 if LONG else 1
SYSCALL = {"x86_64": 298, "aarch64": 241}.get(os.uname().machine)


def forbid(error):
    """For a child: perf_event_open fails with that error, as under a container's seccomp filter."""
    def apply():
        libc = ctypes.CDLL(None, use_errno=True)
        rows = [(0x20, 0, 0, 0), (0x15, 0, 1, SYSCALL), (0x06, 0, 0, 0x50000 | error),
                (0x06, 0, 0, 0x7FFF0000)]
        code = b"".join(struct.pack("HBBI", *row) for row in rows)
        text = ctypes.create_string_buffer(code, len(code))
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows),
                                                          ctypes.addressof(text)))
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
            os._exit(99)
    return apply


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def collect(app, path, *args, **more):
    """Past its start, where it mostly compiles; longer where others keep the machine busy."""
    end = time.monotonic() + 20
    while cpu_seconds(app.pid) < 1 and time.monotonic() < end:
        time.sleep(0.05)
    for seconds in (SECONDS, 4 * SECONDS):
        before = cpu_seconds(app.pid)
        r = run("collect", "-p", app.pid, "--duration", "%ds" % seconds, "-o", path, "--force",
                "--json", "--top", "0", *args, **more)
        if cpu_seconds(app.pid) - before > ENOUGH_SECONDS:
            break
    return r


def share(section, name):
    return sum(m["exclusive_percent"] for m in section["methods"] if m["method"] == name)


def threads_are_right(section, who):
    """Samples of a thread against what /proc says of it."""
    busy = [t for t in section["threads"] if (t["cpu_time_ms"] or 0) > 500]
    check(busy, who + ": a thread was busy", section["threads"])
    for t in busy:
        sampled = t["samples"] * section["interval_ms"]
        check(abs(sampled - t["cpu_time_ms"]) <= 0.05 * t["cpu_time_ms"] + (0 if LONG else 10),
              who + ": samples are CPU time", sampled, t)


def cpu(target, folder):
    path = os.path.join(folder, target + ".nettrace")
    with shop(target, "cpu") as app:
        r = collect(app, path, "--cpu-source", "perf", "--profile", "cpu")
    section = r.json().get("cpu", {})
    if "takes no CPU samples" in r.err and section.get("source") != "perf":
        skip("perf_event_open is not allowed here: " + r.err.strip()[:200])
    check(r.code == 0, target + ": exit code", r)
    check(section.get("source") == "perf", target + ": source", section.get("source"))
    check(section.get("samples_unknown") == 0, target + ": nothing is unknown", r)
    samples = section.get("samples") or 1
    check(samples >= (1350 if LONG else 100), target + ": samples", samples)
    for name, percent in (("Hot", 60), ("Warm", 30), ("Mild", 10)):
        found = share(section, "Shop.Cpu." + name)
        # On a busy machine there are few samples, and chance is worth more than 4 points.
        chance = 0 if LONG else 300 * (percent / 100 * (1 - percent / 100) / samples) ** 0.5
        check(abs(found - percent) <= max(4, chance), "%s: %s has about %d %%" % (target, name, percent), found,
              section["methods"][:8])
    threads_are_right(section, target)
    again = run("report", path, "cpu", "--json", "--top", "0").json().get("cpu")
    check(again == section, target + ": the file says the same", section, again)
    return section


def callers(section, target):
    """Code that replaced itself on the stack has its caller all the same."""
    rows = {m["method"]: m["inclusive_samples"] for m in section["methods"]}
    inner = rows.get("Shop.Cpu.Hot", 0) + rows.get("Shop.Cpu.Warm", 0)
    check(rows.get("Shop.Cpu.Run", 0) >= 0.9 * inner, target + ": the caller of Hot is known", rows)


SAMPLER = "Microsoft-DotNETCore-SampleProfiler/"


def has_sampler(report):
    return any(kind.startswith(SAMPLER) for kind in report["trace"]["counts"])


def sampler_stays_off(folder):
    """The runtime's sampler runs where it tells what the kernel's samples do not."""
    path = os.path.join(folder, "alone.nettrace")
    rows = (([], True), (["--profile", "cpu"], False), (["--profile", "cpu,gc"], False),
            (["--profile", "cpu", "--view", "waiting"], True), (["--profile", "cpu,threadpool"], True),
            (["--cpu-source", "perf"], False), (["--profile", "cpu,threads", "--cpu-source", "perf"], True),
            (["--profile", "cpu", "--cpu-source", "proc"], True))
    with shop("net10", "cpu") as app:
        for args, on in rows if LONG else rows[:4]:
            r = run("collect", "-p", app.pid, "--duration", "1s", "-o", path, "--force", "--json", *args)
            report = r.json()
            if not check(r.code == 0 and report, "recorded", args, r):
                continue
            check(has_sampler(report) == on, "the sampler runs only where it is of use", args, on)
            waits = report["cpu"]["waits_recorded"]
            check(waits == on, "what was not recorded is not known", args, waits)
            if on:
                continue
            r = run("report", path, "cpu", "--json", "--view", "waiting")
            cpu = r.json()["cpu"]
            check(cpu["samples_waiting"] is None and not cpu["methods"] and
                  any(f["id"] == "cpu.waits-not-recorded" for f in r.json()["findings"]),
                  "who waits was not recorded, and that is said", args, r)


def idle(name, app, folder):
    """That no sample came, or next to none, is an answer: nothing ran."""
    path = os.path.join(folder, name + ".nettrace")
    end = time.monotonic() + 30
    used = 1
    while used > 0.02 and time.monotonic() < end: # it still compiles what its start needed
        before = cpu_seconds(app.pid)
        time.sleep(1)
        used = cpu_seconds(app.pid) - before
    # That somebody asks makes a runtime compile for a moment (150 ms of ASP.NET Core's).
    r = run("collect", "-p", app.pid, "--duration", "8s", "-o", path, "--json", "--profile", "cpu",
            "--cpu-source", "perf")
    report = r.json()
    if not check(r.code == 0 and report, name + ": recorded", r):
        return
    cpu_section = report["cpu"]
    check(cpu_section["source"] == "perf" and cpu_section["cpu_time_ms"] <= 400,
          name + ": an idle CPU view", cpu_section)
    ids = [f["id"] for f in report["findings"]]
    check("cpu.mostly-waiting" in ids and "cpu.hot-method" not in ids, name + ": said", ids)
    check(run("report", path, "cpu", "--json").json()["cpu"] == cpu_section,
          name + ": the file says the same")


def kernel_names():
    """Whether we may know addresses of the kernel's functions."""
    with open("/proc/kallsyms", encoding="utf-8") as f:
        return any(int(line.split()[0], 16) for line, _ in zip(f, range(100)))


def without_rights():
    """For a child: root that may not see the kernel's work (CAP_PERFMON, CAP_SYS_ADMIN)."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (38, 21):
        if libc.prctl(24, capability, 0, 0, 0):
            os._exit(99)


def kernel_frames(folder):
    """Page faults of a program that allocates: the kernel's functions, called by the program's."""
    path = os.path.join(folder, "kernel.nettrace")
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        paranoid = int(f.read())
    with shop("net10", "gc") as app:
        for args, wanted in (([], False), (["--kernel-frames"], True)):
            r = collect(app, path, "--profile", "cpu", "--cpu-source", "perf", *args)
            section = r.json().get("cpu", {})
            found = [m for m in section["methods"] if m["module"] == "[kernel]"]
            if "cpu.user-only" in [f["id"] for f in r.json()["findings"]]:
                print("frames of the kernel: not allowed here")
                return
            check(bool(found) == wanted, "frames of the kernel are there when asked for", args, found[:5])
            check(section["samples_on_cpu"] == section["samples"] > 0, "all samples count", section)
            rows = {m["method"]: m["inclusive_percent"] for m in section["methods"]}
            check(rows.get("Shop.Gc.Run", 0) >= 50, "the program is their caller", rows)
            if wanted and kernel_names():
                named = sum(m["exclusive_samples"] for m in found if m["method"].startswith("[kernel] "))
                check(named >= 0.9 * sum(m["exclusive_samples"] for m in found),
                      "functions of the kernel have names", found)
            again = run("report", path, "cpu", "--json", "--top", "0").json().get("cpu")
            check(again == section, "frames of the kernel: the file says the same", args)
        if os.geteuid() or paranoid < 2:
            print("without rights: cannot be tried here")
            return
        r = collect(app, path, "--profile", "cpu", "--kernel-frames", preexec_fn=without_rights)
        lines = [line for line in r.err.splitlines() if "frames of the kernel are not recorded" in line]
        section = r.json().get("cpu", {})
        check(r.code == 0 and len(lines) == 1, "one line says what lacks", r)
        check(section["source"] == "perf" and
              not any(m["module"] == "[kernel]" for m in section["methods"]) and
              any(m["method"] == "Shop.Gc.Run" for m in section["methods"]), "the rest is there", section)


def default(folder):
    """Both samplers at once, and waiting threads are known as well."""
    path = os.path.join(folder, "auto.nettrace")
    with shop("net10", "cpu") as app:
        r = collect(app, path)
    report = r.json()
    check(has_sampler(report), "auto: where threads are blocked is recorded, too", r)
    section = report.get("cpu", {})
    check(section.get("source") == "perf", "auto takes perf", section.get("source"))
    check(section["methods"][0]["method"] == "Shop.Cpu.Hot", "auto: the hottest", section["methods"][:5])
    check(report["trace"]["events"] == events(path)[0].get("events"), "the stream is whole", r)


def forbidden(folder):
    with shop("net10", "cpu") as app:
        for error in (errno.ENOSYS, errno.EPERM):
            path = os.path.join(folder, "no-%d.nettrace" % error)
            r = collect(app, path, "--cpu-source", "perf", "--profile", "cpu",
                        preexec_fn=forbid(error))
            lines = [line for line in r.err.splitlines() if "takes no CPU samples" in line]
            check(len(lines) == 1, "one line says so", r.err)
            check(r.code == 0, "it records all the same", r)
            section = r.json().get("cpu", {})
            check(section.get("source") == "sample-profiler", "it falls back", section.get("source"))
            check(section["methods"][0]["method"] == "Shop.Cpu.Hot", "and is right",
                  section["methods"][:5])


def forbidden_default(folder):
    """In a container that forbids perf_event_open all the rest works, without being asked to."""
    path = os.path.join(folder, "default.nettrace")
    with shop("net10", "mixed") as app:
        r = collect(app, path, preexec_fn=forbid(errno.EPERM))
    report = r.json()
    if not check(r.code == 0 and report, "without perf: recorded", r):
        return
    check(r.err.count("CPU samples are the runtime's") == 1, "without perf: one line says so", r.err)
    check(report["cpu"]["source"] == "sample-profiler" and report["cpu"]["samples_on_cpu"] > 100,
          "without perf: CPU", report["cpu"]["samples"])
    check(report["gc"]["count"] > 0 and report["gc"]["pause_total_ms"] > 0, "without perf: collections",
          report["gc"]["count"])
    check(report["locks"]["count"] > 0, "without perf: locks", report["locks"]["count"])
    check(report["exceptions"] is not None and report["trace"]["complete"], "without perf: the trace is whole",
          report["trace"])


def maps(kind, folder):
    """Names that the process wrote for others, where the trace has none."""
    path = os.path.join(folder, "map-%d.nettrace" % kind)
    with shop("net10", "cpu", env={"DOTNET_PerfMapEnabled": str(kind)}) as app:
        r = collect(app, path, "--cpu-source", "perf", "--profile", "cpu", "--rundown", "false",
                    "--no-early-symbols")
        for name in ("perf-%d.map", "jit-%d.dump", "perfinfo-%d.map"):
            if os.path.exists("/tmp/" + name % app.pid):
                os.unlink("/tmp/" + name % app.pid)
    section = r.json().get("cpu", {})
    check(share(section, "Shop.Cpu.Hot") > 40, "perf map %d: names" % kind, section.get("methods")[:5])
    check(run("report", path, "cpu", "--json", "--top", "0").json().get("cpu") == section,
          "perf map %d: the file says the same" % kind)


# --- against perf record ---

def perf_names(path):
    """Exclusive samples by method, of what 'perf script' prints."""
    text = subprocess.run(["perf", "script", "-i", path, "-F", "ip,sym"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout
    count = collections.Counter()
    for sample in re.split(r"\n\s*\n", text):
        words = sample.strip().split(None, 1)
        name = words[1].splitlines()[0] if len(words) > 1 else ""
        m = re.search(r"\] ([^\[(]+)::([^(\[]+)", name)
        if m:
            count[m.group(1) + "." + m.group(2)] += 1
    return count


def rank_correlation(a, b):
    """Spearman's, of two lists of numbers."""
    def ranks(values):
        order = sorted(range(len(values)), key=lambda i: -values[i])
        out = [0.0] * len(values)
        i = 0
        while i < len(order):
            k = i
            while k + 1 < len(order) and values[order[k + 1]] == values[order[i]]:
                k += 1
            for j in range(i, k + 1):
                out[order[j]] = (i + k) / 2
            i = k + 1
        return out
    x, y = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    top = sum((p - mean) * (q - mean) for p, q in zip(x, y))
    below = (sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)) ** 0.5
    return top / below if below else 1.0


def ground_truth(mode, folder):
    path = os.path.join(folder, mode + ".data")
    env = {"DOTNET_PerfMapEnabled": "1", "DOTNET_EnableWriteXorExecute": "0"}
    with shop("net10", mode, env=env) as app:
        recorder = subprocess.Popen(["perf", "record", "-q", "-F", "499", "-e", "cpu-clock", "-g", "-k",
                                     "CLOCK_MONOTONIC", "-p", str(app.pid), "-o", path, "--", "sleep",
                                     str(SECONDS + 1)], stderr=subprocess.DEVNULL)
        r = collect(app, os.path.join(folder, mode + ".nettrace"), "--cpu-source", "perf", "--profile",
                    "cpu")
        recorder.wait()
        truth = perf_names(path)
    ours = {m["raw"]: m["exclusive_samples"] for m in r.json()["cpu"]["methods"]}
    # Methods compiled beforehand are in no perf map; a handful of samples has no rank.
    top = [name for name, n in truth.most_common(10) if n >= 5]
    known = [(truth[name], ours.get(name, 0)) for name in top]
    if check(len(known) >= 3, mode + ": perf has methods", truth.most_common(5)):
        found = rank_correlation([t for t, _ in known], [o for _, o in known])
        check(found >= 0.9, mode + ": the same order as perf's", found, list(zip(top, known)))


def main():
    if not SYSCALL:
        skip("the number of perf_event_open is not known here")
    with scratch() as folder:
        callers(cpu("net10", folder), "net10")
        forbidden(folder)
        sampler_stays_off(folder)
        if not LONG:
            done()
        with shop("net10", "idle") as app:
            idle("idle", app, folder)
        with App([program("web", "Web")]) as app: # ASP.NET Core, which serves nobody
            idle("web", app, folder)
        forbidden_default(folder)
        kernel_frames(folder)
        default(folder)
        maps(3, folder)  # perf map
        maps(2, folder)  # jitdump
        for target in TARGETS:
            if target not in ("net10", "aot10"):
                cpu(target, folder)
        if not shutil.which("perf"):
            print("not compared: there is no perf here")
            done()
        ground_truth("cpu", folder)
        ground_truth("mixed", folder)
    done()


main()
