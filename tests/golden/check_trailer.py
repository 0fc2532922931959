#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The block behind the end of a trace (nettrace/README.md): used where it is sound, said and ignored
where it is not, and in nobody's way.

usage: check_trailer.py PROGRAM [FOLDER]

FOLDER has the traces (default: fixtures/ of the source tree).  The blocks are made here, by the
layout that is documented.  Without libzstd.so.1 the test is skipped (exit code 77).
"""
import ctypes
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEAD = b"\x9dDRDT\r\n\x1a"
FOOTER = b"\x9ddrde\r\n\x1a"
WINDOW_NS = 100_000_000
USED_NS = 50_000_000
faults = []


def check(ok, what, *details):
    if not ok:
        faults.append(what)
        print("FAILED:", what)
        for d in details:
            print("   ", str(d)[:1500])


# --- zstd ---

def zstd():
    try:
        lib = ctypes.CDLL("libzstd.so.1")
    except OSError:
        print("SKIP: there is no libzstd.so.1")
        sys.exit(77)
    lib.ZSTD_decompress.restype = lib.ZSTD_compress.restype = ctypes.c_size_t
    lib.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p,
                                    ctypes.c_size_t]
    lib.ZSTD_compress.argtypes = lib.ZSTD_decompress.argtypes + [ctypes.c_int]
    return lib


def unpack(lib, data):
    room = ctypes.create_string_buffer(32 << 20)
    size = lib.ZSTD_decompress(room, len(room), data, len(data))
    return room.raw[:size]


def pack(lib, data):
    room = ctypes.create_string_buffer(len(data) + 65536)
    size = lib.ZSTD_compress(room, len(room), data, len(data), 3)
    return room.raw[:size]


def framed(block):
    return struct.pack("<II", 0x184D2A5D, len(block)) + block


# --- the block ---

def varuint(v):
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def varint(v):
    return varuint((v << 1) ^ (v >> 63))


def record(kind, body):
    return struct.pack("<II", kind, len(body)) + body


def block(*records):
    body = b"".join(records)
    size = 24 + len(body) + 24
    head = HEAD + struct.pack("<IIQ", 1, 0, size) + body + struct.pack("<Q", size)
    return head + struct.pack("<II", zlib.crc32(head), 0) + FOOTER


def info(process_id):
    return record(1, b"\x01" + varint(process_id) + varuint(0) + varuint(7) + varuint(0) * 3)


def windows(begin, count):
    return record(2, varint(begin) + varuint(WINDOW_NS) + (varint(0) + varuint(WINDOW_NS)) * (count - 1))


def thread(tid, count, used_ns):
    body = varuint(tid) + varuint(4) + b"main" + b"R" + varint(0) + varuint(count * WINDOW_NS)
    if used_ns:
        body += varuint(0) + varint(used_ns) + varuint(3)
        body += (varuint(1) + varint(0) + varuint(3)) * (count - 1)
    return record(3, body)


# --- runs ---

class Run:
    def __init__(self, program, *args, data=None, path=None):
        with open(path, "rb") if path else open(os.devnull, "rb") as f:
            given = {"input": data} if data is not None else {"stdin": f}
            r = subprocess.run([program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               check=False, **given)
        self.code, self.err = r.returncode, r.stderr.decode()
        try:
            self.report = json.loads(r.stdout)
            self.report["trace"].pop("file", None)
        except (ValueError, KeyError):
            self.report = {}

    def __str__(self):
        return f"exit {self.code}: {self.err}"


class Case:
    def __init__(self, program, folder, data):
        self.program, self.path, self.data = program, os.path.join(folder, "t.nettrace"), data

    def report(self, data):
        with open(self.path, "wb") as f:
            f.write(data)
        return Run(self.program, "report", "--json", self.path)

    def count(self, data):
        with open(self.path, "wb") as f:
            f.write(data)
        return Run(self.program, "events", "--count", "--json", self.path)

    def redirected(self, data):
        with open(self.path, "wb") as f:
            f.write(data)
        return Run(self.program, "report", "--json", "-", path=self.path)

    def piped(self, data):
        return Run(self.program, "report", "--json", "-", data=data)


def main_row(report):
    return report["cpu"]["threads"][0]


def check_used(c, lib, plain, sound, without):
    """Half of the time of every window: half of the time for the thread, whoever brings it."""
    whole = without.report["cpu"]["threads"][0]
    size = struct.unpack_from("<I", sound, 28)[0] # of its first record
    longer = block(record(1, sound[32:32 + size] + b"more"), sound[32 + size:-24])
    ways = {
        "plain": c.report(plain + sound),
        "zstd": c.report(pack(lib, plain) + framed(sound)),
        "redirected": c.redirected(plain + sound),
        "two frames": c.report(pack(lib, plain[:5000]) + pack(lib, plain[5000:]) + framed(sound)),
        "an unknown record": c.report(plain + sound_with(sound, record(999, b"whatever"))),
        "a longer record": c.report(plain + longer),
    }
    check(not whole["cpu_time_measured"], "without the block nothing is measured", whole)
    for name, r in ways.items():
        check(r.code == 0 and not r.err, name + ": read without a word", r)
        row = main_row(r.report)
        check(row["cpu_time_measured"] and row["thread_id"] == whole["thread_id"]
              and row["name"] == "main", name + ": measured, and it has a name", row)
        half = without.report["trace"]["last_event_ms"] / 2
        check(0.4 * half < row["cpu_time_ms"] <= 1.02 * half, name + ": half of the time", row, half)
        check(r.report == ways["plain"].report, name + ": the same report", r)
    r = ways["plain"].report
    rest = [k for k in r if k not in ("cpu", "findings", "stacks") and r[k] != without.report.get(k)]
    check(not rest, "other sections are as without the block", rest)


def sound_with(sound, more):
    return block(sound[24:-24], more)


def check_late(c, lib, plain, sound):
    direct = main_row(c.report(plain + sound).report)
    for name, data in (("plain", plain + sound), ("zstd", pack(lib, plain) + framed(sound))):
        r = c.piped(data)
        check(r.code == 0 and "count for threads, not for methods" in r.err,
              name + " from a pipe: said", r)
        row = main_row(r.report)
        check(row["cpu_time_measured"] and abs(row["cpu_time_ms"] - direct["cpu_time_ms"]) < 1,
              name + " from a pipe: totals of threads", row, direct)


def check_damaged(c, lib, plain, sound, without):
    places = {"version": 8, "length": 16, "a record": 30, "the end": len(sound) // 2,
              "the second length": len(sound) - 24, "checksum": len(sound) - 16,
              "footer magic": len(sound) - 4}
    for name, at in places.items():
        bad = sound[:at] + bytes([sound[at] ^ 0x40]) + sound[at + 1:]
        for kind, data in (("plain", plain + bad), ("zstd", pack(lib, plain) + framed(bad))):
            for way in (c.report, c.piped) if at in (8, len(sound) - 4) else (c.report,):
                r = way(data)
                check(r.code == 0 and "cannot be used" in r.err, f"{name} damaged, {kind}: said", r)
                check(r.report == without.report, f"{name} damaged, {kind}: ignored", r)
    hostile = {
        "no windows": block(info(1), thread(1, 5, 1)),
        "windows that fall": block(info(1), windows(10 ** 15, 2), windows(5, 2)),
        "endless windows": block(record(2, varint(0) + varuint(2 ** 63))),
        "a thread beyond": block(windows(10 ** 15, 2), thread(5, 3, 1)),
        "a cut record": block(windows(10 ** 15, 2), record(3, b"\xff")),
        "a record that is too long": block(windows(10 ** 15, 2), struct.pack("<II", 3, 1000)),
        "a long name": block(windows(10 ** 15, 2), record(3, b"\x05" + varuint(2 ** 62))),
    }
    for name, bad in hostile.items():
        r = c.report(plain + bad)
        check(r.code == 0 and "makes no sense" in r.err, name + ": said", r)
        check(r.report == without.report, name + ": ignored", r)


def check_others(c, plain, sound, without):
    check(c.count(plain + sound).report == c.count(plain).report, "events --count is not confused")
    r = c.report(plain + b"x" * 5000)
    odd = [f for f in r.report["findings"] if f["id"] == "trace.oddities"]
    check(r.code == 0 and odd and "5000 bytes after the end" in odd[0]["evidence"],
          "bytes that are no block are mentioned", r, odd)
    r = c.report(plain + b"x" * 50 + sound)
    check(r.code == 0 and main_row(r.report)["cpu_time_measured"], "bytes between are no harm", r)
    cut = plain[:len(plain) * 2 // 3]
    alone, both = c.report(cut), c.report(cut + sound)
    check(alone.code == both.code == 3, "a cut trace is one with a block behind it, too", both)
    check(alone.report["trace"] == both.report["trace"], "cut at the same place",
          alone.report["trace"], both.report["trace"])
    check(without.code == 0, "the trace alone", without)


def main():
    program = os.path.abspath(sys.argv[1])
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(TOP, "fixtures")
    lib = zstd()
    with open(os.path.join(folder, "cpu-net10.nettrace.zst"), "rb") as f:
        plain = unpack(lib, f.read())
    sync, per_s = struct.unpack_from("<qq", plain, 32 + 15 + 5 + 1 + 16)
    check(per_s == 10 ** 9, "the trace's clock counts ns", per_s)
    with tempfile.TemporaryDirectory() as place:
        c = Case(program, place, plain)
        without = c.report(plain)
        row = without.report["cpu"]["threads"][0]
        count = int(without.report["trace"]["last_event_ms"] / 100) + 2
        begin = sync - WINDOW_NS // 2
        sound = block(info(without.report["trace"]["process_id"]), windows(begin, count),
                      thread(row["thread_id"], count, USED_NS))
        check_used(c, lib, plain, sound, without)
        check_late(c, lib, plain, sound)
        check_damaged(c, lib, plain, sound, without)
        check_others(c, plain, sound, without)
        idle = block(windows(begin, count), thread(row["thread_id"], count, 0))
        r = c.report(plain + idle)
        ran = {t["thread_id"]: t["samples_on_cpu"] for t in r.report["cpu"]["threads"]}
        check(ran.get(row["thread_id"]) == 0, "a thread that used nothing did not run", ran)
    print("all is well" if not faults else f"{len(faults)} checks failed")
    return 1 if faults else 0


sys.exit(main())
