#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""process: what no real runtime does on request, on a port of our own.  Needs no .NET."""

import os
import signal
import struct

from fake_port import (FAIL, INFO, SILENT, UNKNOWN_COMMAND, FakePort, error, in_single_bytes, info,
                       ok, text)
from live import Running, check, done, run, scratch, wait_until

LIMIT = 10  # seconds; far more than anything here takes


def knows(**commands):
    """answer(): a handler for 'setXcommandY' names, UNKNOWN_COMMAND for the rest."""
    def answer(kind, command, payload):
        handler = commands.get("c%d_%d" % (kind, command))
        return handler(payload) if handler else error(UNKNOWN_COMMAND)
    return answer


def asked(port, *args, **more):
    r = run("process", *args, "--diagnostic-port", port.path, **more)
    wait_until("every connection is closed", lambda: port.ends == len(port.requests))
    return r


def information(path):
    for newest in (3, 2, 1):
        handlers = {"c4_%d" % c: (lambda _, v=v: in_single_bytes(info(v)))
                    for c, v in INFO.items() if v <= newest}
        with FakePort(path, knows(**handlers)) as port:
            r = asked(port, "info", "--json")
            p = r.json().get("process", {})
            check(r.code == 0 and p.get("process_info_version") == newest,
                  "info: version %d" % newest, r)
            check(len(port.requests) == 4 - newest, "info: newest first", port.commands())
            check(p.get("own_pid") == 77 and p.get("arch") == "x64", "info: values", p)
            check(p.get("cookie") == "03020100-0504-0706-0809-0a0b0c0d0e0f", "info: cookie", p)
            check((p.get("entry_assembly"), p.get("runtime_version"), p.get("runtime_build")) ==
                  (("Fake", "9.0.1", "9.0.1+abc") if newest >= 2 else (None, None, None)),
                  "info: assembly and runtime", p)
            check(p.get("rid") == ("linux-x64" if newest == 3 else None), "info: rid", p)
    with FakePort(path, knows(c4_8=lambda _: info(3, command_line="a\x1b[31m\nb\u202ec"))) as port:
        r = asked(port, "info")
        check("\x1b" not in r.out and "\u202e" not in r.out and "a\\x1b[31m\\nb" in r.out,
              "info: control characters are escaped", r)
    with FakePort(path, knows(c4_8=lambda _: ok(b"\1\0\0\0short"))) as port:
        r = asked(port, "info")
        check(r.code == 1 and "does not hold" in r.err, "info: a damaged answer", r)


def environment(path):
    variables = ["A=1", "ESC=x\x1b[2Jy\nz", "EMPTY=", "NOVALUE", "U=žluťoučký 😀"]
    block = struct.pack("<I", len(variables)) + b"".join(map(text, variables))
    whole = ok(struct.pack("<IH", len(block), 0)) + [block]
    for steps in (whole, [b"".join(whole)], in_single_bytes(whole)):
        with FakePort(path, knows(c4_2=lambda _: steps)) as port:
            r = asked(port, "env", "--json")
            got = [(v["name"], v["value"]) for v in r.json().get("variables", [])]
            want = [tuple(v.split("=", 1)) if "=" in v else (v, None) for v in variables]
            check(r.code == 0 and got == want, "env: values", r)
            check(r.json().get("complete") is True, "env: complete", r)
    with FakePort(path, knows(c4_2=lambda _: whole)) as port:
        r = asked(port, "env")
        check(r.out.split("\n")[1] == "ESC=x\\x1b[2Jy\\nz" and "\x1b" not in r.out,
              "env: control characters are escaped", r)
        check("U=žluťoučký 😀\n" in r.out, "env: other characters are not", r)
        check(r.err == "", "env: nothing beside", r)
    with FakePort(path, knows(c4_2=lambda _: [whole[0], block[:40]])) as port:
        r = asked(port, "env", "--json")
        check(r.code == 3 and r.json().get("complete") is False, "env: cut is partial", r)
        check([v["name"] for v in r.json().get("variables", [])] == ["A"], "env: what was whole", r)
    with FakePort(path, knows(c4_3=lambda _: ok())) as port:
        r = asked(port, "env", "--set", "TOKEN=s3cret=1", "--set", "EMPTY=", "--json")
        check(r.code == 0 and r.json().get("set") == ["TOKEN", "EMPTY"], "env --set: names", r)
        check("s3cret" not in r.out + r.err, "env --set: values are not repeated", r)
        check([p for _, _, p in port.requests] ==
              [text("TOKEN") + text("s3cret=1"), text("EMPTY") + text("")],
              "env --set: the messages", port.requests)
    left = [ok(), error(FAIL)]
    with FakePort(path, knows(c4_3=lambda _: left.pop(0))) as port:
        r = asked(port, "env", "--set", "A=1", "--set", "B=2", "--set", "C=3", "--json")
        check(r.code == 3 and r.json().get("set") == ["A"], "env --set: half done", r)


def errors(path):
    orders = [["info"], ["env"], ["resume"], ["perfmap", "on"], ["perfmap", "off"],
              ["env", "--set", "A=B"]]
    for more in (b"", b"\0\0\0\0"):
        with FakePort(path, lambda *_: error(FAIL, more)) as port:
            for order in orders:
                r = asked(port, *order)
                check(r.code == 1 and "FAIL 0x80004005" in r.err and "64 sessions" not in r.err,
                      "%s: an error of %d bytes" % (order, 4 + len(more)), r)
        with FakePort(path, lambda *_: error(UNKNOWN_COMMAND, more)) as port:
            for order in orders[1:]:
                r = asked(port, *order)
                check(r.code == 1 and "UNKNOWN_COMMAND" in r.err and ".NET" in r.err,
                      "%s: a runtime that is too old" % order, r)
    for what, steps in (("garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n"]), ("an end", []),
                        ("half an answer", [ok()[0][:22]])):
        with FakePort(path, lambda *_: steps) as port:
            for order in orders:
                r = asked(port, *order)
                check(r.code == 5 and r.seconds < LIMIT, "%s: %s" % (order, what), r)
    r = run("process", "info", "--diagnostic-port", path)
    check(r.code == 5 and "no such file" in r.err, "no socket", r)
    r = run("process", "info", "--diagnostic-port", path + ",listen")
    check(r.code == 2 and "only connects" in r.err, "a port to listen on", r)
    with FakePort(None, knows(c4_8=lambda _: in_single_bytes(info(3)))) as port:
        r = asked(port, "info", "--json")
        check(r.code == 0 and r.json()["process"]["own_pid"] == 77, "TCP", r)
    r = run("process", "info", "--diagnostic-port", port.path)
    check(r.code == 5, "TCP: nobody there", r)
    FakePort(path, None, accept=False).listener.close()
    r = run("process", "info", "--diagnostic-port", path)
    check(r.code == 5 and "dead" in r.err, "a dead socket", r)
    os.unlink(path)


def dumps(path):
    answers = {"c4_8": lambda _: info(3)}
    for newest in (3, 2, 1):
        known = dict(answers, **{"c1_%d" % v: lambda _: ok() for v in range(1, newest + 1)})
        with FakePort(path, knows(**known)) as port:
            r = asked(port, "dump", "--type", "triage", "--crash-report", "--diag", "-o",
                      "/tmp/100%%-%n.dmp", "--json")
            d = r.json().get("dump", {})
            check(r.code == 0 and d.get("path") == "/tmp/100%-Fake.dmp", "dump: path", r)
            check(d.get("command") == "GenerateCoreDump" + ("" if newest == 1 else str(newest)),
                  "dump: command", d)
            check([c for c in port.commands() if c[0] == 1] ==
                  [(1, v) for v in range(3, newest - 1, -1)], "dump: ladder", port.commands())
            # The dumper's own percent signs are doubled; type 3; flags by version.
            check(port.requests[-1][2] == text("/tmp/100%%-Fake.dmp") +
                  struct.pack("<II", 3, 5 if newest >= 2 else 1), "dump: message", port.requests)
            gave_up = newest == 1
            check(("no crash report" in r.err) == gave_up and d.get("crash_report") != gave_up,
                  "dump: what was given up", r)
    why = "[createdump] no room\n[createdump] failed\n"
    with FakePort(path, knows(c1_3=lambda _: error(FAIL, text(why)), **answers)) as port:
        r = asked(port, "dump", "-o", "/tmp/x.dmp")
        check(r.code == 1 and "the runtime says: [createdump] no room;" in r.err and r.out == "",
              "dump: the reason of version 3", r)
    with FakePort(path, knows(c1_2=lambda _: error(FAIL), **answers)) as port:
        r = asked(port, "dump", "-o", "/tmp/x.dmp")
        check(r.code == 1 and "do not tell why" in r.err, "dump: no reason before version 3", r)
    with FakePort(path, knows(**answers)) as port:
        r = asked(port, "dump", "-o", "/tmp/x.dmp")
        check(r.code == 1 and "UNKNOWN_COMMAND" in r.err and "gcore" in r.err,
              "dump: not known at all", r)
        r = asked(port, "dump", "-o", "x.dmp")
        check(r.code == 2 and "path from its root" in r.err, "dump: a relative path", r)
    # A dump takes as long as it takes, unless told otherwise.
    slow = [1.5] + ok()
    with FakePort(path, knows(c1_3=lambda _: slow, **answers)) as port:
        r = asked(port, "dump", "-o", "/tmp/x.dmp")
        check(r.code == 0 and r.seconds >= 1.5, "dump: waits", r)
        r = asked(port, "dump", "-o", "/tmp/x.dmp", "--timeout", "300ms")
        check(r.code == 5 and r.seconds < 1.4 and "may still be writing" in r.err,
              "dump: --timeout", r)
    with FakePort(path, knows(c1_3=lambda _: SILENT, **answers)) as port:
        tool = Running("process", "dump", "-o", "/tmp/x.dmp", "--diagnostic-port", path)
        wait_until("the dump is asked for", lambda: (1, 3) in port.commands())
        tool.signal(signal.SIGINT)
        r = tool.finish(LIMIT)
        check(r.code == 1 and "interrupted" in r.err and "may still be writing" in r.err,
              "dump: Ctrl-C", r)


def silence(path):
    orders = [["info"], ["env"], ["resume"], ["dump", "-o", "/tmp/x.dmp"], ["perfmap", "on"],
              ["env", "--set", "A=B"]]
    with FakePort(path, lambda *_: SILENT) as port:
        for order in orders:
            r = asked(port, *order, "--timeout", "200ms")
            check(r.code == 5 and "in time" in r.err and 0.2 <= r.seconds < LIMIT,
                  "%s: silence" % order, r)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            before = len(port.requests)
            tool = Running("process", "env", "--diagnostic-port", path)
            wait_until("it asks", lambda: len(port.requests) > before)
            tool.signal(number)
            r = tool.finish(LIMIT)
            check(r.code == 1 and "interrupted" in r.err, "signal %d" % number, r)
    # Nobody accepts, and the queue is full.
    with FakePort(path, None, backlog=0, accept=False):
        fillers = [Running("process", "env", "--diagnostic-port", path, "--timeout", "1s")
                   for _ in range(3)]
        r = run("process", "env", "--diagnostic-port", path, "--timeout", "300ms")
        check(r.code == 5 and "in time" in r.err and r.seconds < LIMIT, "a full queue", r)
        for f in fillers:
            f.finish(LIMIT)
    # The limit is for the whole ladder: each answer comes in time, all together do not.
    with FakePort(path, lambda *_: [0.3] + error(UNKNOWN_COMMAND)) as port:
        r = asked(port, "info", "--timeout", "500ms")
        check(r.code == 5 and len(port.requests) == 2, "one limit for everything", r)
    part = [ok(struct.pack("<IH", 100, 0))[0] + struct.pack("<I", 2) + text("A=1"), None]
    with FakePort(path, lambda *_: part) as port:
        r = asked(port, "env", "--timeout", "300ms")
        check(r.code == 5 and r.seconds < LIMIT, "silence within the environment", r)


if __name__ == "__main__":
    with scratch() as folder:
        socket_path = os.path.join(folder, "port")
        information(socket_path)
        environment(socket_path)
        errors(socket_path)
        dumps(socket_path)
        silence(socket_path)
        # Longer than an address can hold.
        deep = os.path.join(folder, "d" * 100)
        os.mkdir(deep)
        os.symlink(deep, os.path.join(folder, "s"))
        with FakePort(os.path.join(folder, "s", "port"), knows(c4_8=lambda _: info(3))):
            r = run("process", "info", "--diagnostic-port", os.path.join(deep, "port") + ",connect")
            check(r.code == 0, "a long path", r)
    done()
