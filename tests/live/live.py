# SPDX-License-Identifier: MIT
"""What the live tests share: .NET programs to trace, runs of ours, and checks that say what failed.

Each test is a program: test.py PROGRAM [TARGET].  Exit code 0 all is well, 1 something failed, 77
cannot be tried here (no .NET SDK, not root, ...), with the reason.
"""

import contextlib
import functools
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "golden"))
import schema

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
LONG = os.environ.get("DRD_LONG") == "1"
TARGETS = ["net31", "net8", "net9", "net10", "net11", "aot10"]

failures = []

# Under nohup, or in the background of a script, what we start would ignore them.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


def skip(why):
    print("SKIP:", why)
    sys.exit(77)


def check(ok, what, *details):
    """Notes a failure and goes on, so that one run says everything."""
    if ok:
        return True
    failures.append(what)
    print("FAILED:", what)
    for d in details:
        print("   ", str(d)[:3000].replace("\n", "\n    "))
    return False


def done():
    if failures:
        print(len(failures), "checks failed")
    sys.exit(1 if failures else 0)


def workload(target):
    """The folder of a built target, or the test is skipped."""
    r = subprocess.run([os.path.join(TOP, "tools", "workloads"), "--path", target],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode == 77:
        skip(r.stderr.strip() or target + " cannot be built here")
    if r.returncode != 0:
        print(r.stderr)
        sys.exit(1)
    return r.stdout.split("\n")[0]


@contextlib.contextmanager
def scratch():
    folder = tempfile.mkdtemp(prefix="drd-live-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sockets(pid, folder="/tmp"):
    return glob.glob(os.path.join(folder, "dotnet-diagnostic-%d-*-socket" % pid))


class App:
    """A running workload; killed at the end of the with block."""

    def __init__(self, command, env=None, tmp="/tmp", wait=True, **more):
        full = dict(os.environ)
        full.update(env or {})
        self.tmp = tmp
        self.process = subprocess.Popen(command, env=full, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
        self.pid = self.process.pid
        if wait:
            self.wait_for_socket()

    def wait_for_socket(self, seconds=20):
        end = time.monotonic() + seconds
        while not sockets(self.pid, self.tmp):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the workload has no diagnostic socket")
            time.sleep(0.005)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        for path in sockets(self.pid, self.tmp):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def is_frozen(pid):
    """Whether every thread of the process has stopped."""
    states = []
    for path in glob.glob("/proc/%d/task/*/stat" % pid):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as f:
            states.append(f.read().rsplit(")", 1)[1].split()[0])
    return bool(states) and all(s == "T" for s in states)


def child_of(pid):
    """Its first child, or None."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="utf-8") as f:
            children = f.read().split()
        return int(children[0]) if children else None
    except OSError:
        return None


def cpu_ticks(pid):
    """Of processor time, in user mode and in the kernel."""
    with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return int(words[11]) + int(words[12])


def freeze(pid):
    """SIGSTOP, and wait until every thread has stopped."""
    os.kill(pid, signal.SIGSTOP)
    wait_until("all threads have stopped", lambda: is_frozen(pid))


def shop(target, mode, seconds=60, **more):
    return App([os.path.join(workload(target), "shop"), mode, str(seconds)], **more)


@functools.cache
def the_schema():
    return schema.Schema()


def document(text, *details):
    """JSON of ours, checked against docs/report.schema.json."""
    try:
        value = json.loads(text)
    except ValueError as e:
        check(False, "it is JSON", e, *details)
        return {}
    found = the_schema().document_faults(value)
    check(not found, "the schema", "\n".join(found[:10]), *details)
    return value


def lines(text, of):
    """NDJSON of ours; of: what a line is, a name below $defs."""
    rows = [json.loads(line) for line in text.splitlines()]
    found = [fault for row in rows for fault in the_schema().faults(row, of)]
    check(not found, "the schema of a line", "\n".join(found[:10]))
    return rows


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds
        self.parsed = None

    def __str__(self):
        return "exit %d after %.1f s\nstdout: %s\nstderr: %s" % (
            self.code, self.seconds, self.out[:1500], self.err[:1500])

    def json(self):
        """What it printed, one document, which is what docs/report.schema.json says."""
        if self.parsed is None:
            self.parsed = document(self.out, self)
        return self.parsed


def run(*args, timeout=120, binary=False, **more):
    """drdotnet-trace ARGS, to its end."""
    begin = time.monotonic()
    more.setdefault("stdin", subprocess.DEVNULL)
    r = subprocess.run([PROGRAM, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=timeout, **more)
    out = r.stdout if binary else r.stdout.decode("utf-8", "replace")
    return Result(r.returncode, out, r.stderr.decode("utf-8", "replace"), time.monotonic() - begin)


class Running:
    """drdotnet-trace ARGS in the background."""

    def __init__(self, *args, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        self.begin = time.monotonic()
        self.process = subprocess.Popen([PROGRAM, *map(str, args)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **more)

    def signal(self, number):
        self.process.send_signal(number)

    def finish(self, timeout=60):
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            check(False, "it ends by itself", err.decode("utf-8", "replace"))
        return Result(self.process.returncode, out.decode("utf-8", "replace"),
                      err.decode("utf-8", "replace"), time.monotonic() - self.begin)


def wait_until(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    check(False, what + " within %d s" % seconds)
    return None


def parts(functions, *args):
    """One after the other, and how long each took."""
    for function in functions:
        begin = time.monotonic()
        function(*args)
        print("%s: %.1f s" % (function.__name__, time.monotonic() - begin), flush=True)


def recorded(folder, name=""):
    """Whether the file that is being written holds events already: its first bytes are none."""
    return any(events(path)[0].get("events")
               for path in glob.glob(os.path.join(folder, glob.escape(name) + "*.part")))


def part_file(folder):
    """Size of the file that is being written, or 0."""
    parts = glob.glob(os.path.join(folder, "*.part"))
    return os.path.getsize(parts[0]) if parts else 0


def events(path):
    """The trace object of 'events --count --json', and the exit code."""
    r = run("events", "--count", "--json", path)
    try:
        return json.loads(r.out).get("trace", {}), r.code
    except ValueError:
        return {}, r.code


def samples(store):
    """What 'history list' has of that store."""
    r = run("history", "list", "--json", "--store", store)
    return r.json().get("samples", []) if r.code == 0 else []


def in_process_sessions(app):
    """Unix stream connections to the app's diagnostic socket that are established."""
    inodes = set()
    with open("/proc/net/unix", encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if len(words) > 7 and "dotnet-diagnostic-%d-" % app.pid in words[7] and words[5] == "03":
                inodes.add(words[6])
    return len(inodes)
