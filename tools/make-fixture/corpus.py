#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the seed corpora of tests/fuzz/corpus from the fixtures: small, and each seed shows the
fuzzers another part of the format.  What a fuzzer found stands there too, under other names."""
import os
import struct
import subprocess
import zlib

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(TOP, "tests/fuzz/corpus")


def fixture(name):
    path = os.path.join(TOP, "fixtures", name)
    if name.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout
    with open(path, "rb") as f:
        return f.read()


def pack(data, *options):
    return subprocess.run(["zstd", "-qc", *options], input=data, check=True,
                          capture_output=True).stdout


def seed(target, name, data):
    folder = os.path.join(CORPUS, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "seed-" + name), "wb") as f:
        f.write(data)


def text(value):
    """A text of the diagnostic port."""
    return struct.pack("<I", len(value) + 1) + (value + "\0").encode("utf-16-le")


def reply(command, payload):
    head = b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", 20 + len(payload), 0xFF, command, 0)
    return head + payload


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def objects(data):
    """(name, start of the body, its end) of each sized object of a V4 trace."""
    at = 32 + 15 + 5 + 1 + 48 + 1
    while data[at] == 5:
        length = struct.unpack_from("<I", data, at + 11)[0]
        name = data[at + 15:at + 15 + length].decode()
        body = at + 15 + length + 1
        size = struct.unpack_from("<I", data, body)[0]
        body = (body + 4 + 3) // 4 * 4
        yield name, body, body + size
        at = body + size + 1


def block(name, body, offset):
    head = b"\5\5\1" + struct.pack("<III", 2, 2, len(name)) + name.encode() + b"\6"
    head += struct.pack("<I", len(body))
    head += bytes(-(offset + len(head)) % 4)
    return head + body + b"\6"


def first_rows(body, limit):
    """As many rows of an event block, its header included, as fit into limit bytes."""
    at, payload, meta = struct.unpack_from("<H", body)[0], 0, 0
    end = at
    while at < len(body):
        flags, at = body[at], at + 1
        if flags & 1:
            meta, at = varint(body, at)
        if flags & 2:
            for _ in range(3):
                _, at = varint(body, at)
        for bit in (4, 8):
            if flags & bit:
                _, at = varint(body, at)
        _, at = varint(body, at)
        at += 16 * bool(flags & 0x10) + 16 * bool(flags & 0x20)
        if flags & 0x80:
            payload, at = varint(body, at)
        at += payload
        if at > limit:
            break
        end = at
    return body[:end]


def short(data, limit):
    """A sound V4 trace: all definitions, the first rows of every event block, few stacks."""
    out = data[:32 + 15 + 5 + 1 + 48 + 1]
    for name, start, end in objects(data):
        body = data[start:end]
        if name == "EventBlock":
            body = first_rows(body, limit)
        elif name == "StackBlock" and len(body) > limit:
            continue
        out += block(name, body, len(out))
    return out + b"\1"


def main():
    v4, v6 = fixture("synthetic-v4.nettrace"), fixture("synthetic-v6.nettrace")
    v3 = fixture("v3-mixed-net8.netperf.zst")
    perf = fixture("v6-cpu-net10.nettrace.zst")
    rich = fixture("rich-net10.nettrace.zst")
    for name, data in (("v4", v4), ("v6", v6), ("v3", v3[:6000]), ("perf", perf[:9000]),
                       ("perf-tail", perf[:20] + perf[-1500:]), ("rich", rich[:12000])):
        seed("decoder", name, b"\0" + data)
    seed("decoder", "v4-bytes", b"\1" + v4)
    seed("decoder", "v6-unordered", b"\x8b" + v6)
    for name in ("cpu-net8", "gc-net10", "stuck-net9", "stuck-net31", "deadlock-net11",
                 "exceptions-net8", "lost-net10", "gc-aot10"):
        # Fuzzers are quick on small inputs: the shortest that still has every block.
        seed("report", name, short(fixture(name + ".nettrace.zst"), 500))
    for name in ("cpu-net8", "stuck-net31", "deadlock-net11"):
        seed("decoder", name, b"\0" + short(fixture(name + ".nettrace.zst"), 1200)[:8000])
    seed("report", "v4", v4)
    seed("report", "v3", v3[:12000])
    seed("report", "perf", perf[:12000])

    packed = pack(v4)
    seed("input", "plain", v4)
    seed("input", "packed", packed)
    seed("input", "cut", packed[:-20])
    seed("input", "frames", pack(v4[:100]) + pack(v4[100:]))
    seed("input", "skippable", struct.pack("<II", 0x184D2A50, 4) + b"skip" + packed)
    seed("input", "trailing", packed + b"rest")
    seed("input", "checksum", pack(v6, "--check"))
    seed("input", "window", pack(v4, "--long=27", "--ultra"))
    seed("input", "empty-frame", pack(b"") + packed)

    for provider in (1, 2, 5, 7):
        for event in (1, 4, 10, 15, 80, 81, 143, 144, 150, 152, 187, 202, 204):
            if (provider + event) % 3 == 0:
                seed("payload", f"table-{provider}-{event}",
                     bytes([1, provider, event, 2]) + bytes(range(64)) + "Name\0".encode("utf-16-le"))
    seed("payload", "object", bytes([0, 3, 1, 2, 9, 0, 18, 0, 19, 0, 8, 0]) + bytes(range(80)))
    seed("payload", "arrays", bytes([0, 2, 22, 1, 8, 0, 24, 0, 6, 0, 4]) + bytes(40))

    info = struct.pack("<Q", 4711) + bytes(range(16)) + text("dotnet app.dll") + text("linux")
    info += text("x64")
    seed("ipc", "info1", reply(0, info))
    seed("ipc", "info2", reply(0, info + text("app") + text("8.0.34")))
    seed("ipc", "info3", reply(0, struct.pack("<I", 1) + info + text("app") + text("8.0.34")
                               + text("linux-x64")))
    seed("ipc", "session", reply(0, struct.pack("<Q", 0x8000000000000001)))
    seed("ipc", "error", reply(0xFF, struct.pack("<I", 0x80131385)))
    seed("ipc", "environment", struct.pack("<I", 2) + text("A=b") + text("PATH=/bin"))
    seed("ipc", "environment-reply", reply(0, struct.pack("<IH", 64, 0)))
    ring_seeds()
    trailer_seeds()


def varuint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def trailer_seeds():
    """The first byte: 0 a block, 1 texts of /proc, 2 records."""
    info = struct.pack("<II", 1, 7) + bytes([1, 14, 101, 9, 0, 0, 0])
    windows = varuint(2 * 10 ** 15) + varuint(10 ** 8) + (b"\0" + varuint(10 ** 8)) * 5
    windows = struct.pack("<II", 2, len(windows)) + windows
    thread = varuint(7) + b"\x04main" + b"R" + b"\0" + varuint(6 * 10 ** 8)
    thread += b"\0" + varuint(10 ** 8) + b"\3" + (b"\1" + b"\4" + b"\0") * 3
    thread = struct.pack("<II", 3, len(thread)) + thread
    records = info + windows + thread + struct.pack("<II", 99, 3) + b"abc" + thread
    size = 48 + len(records)
    block = b"\x9dDRDT\r\n\x1a" + struct.pack("<IIQ", 1, 0, size) + records + struct.pack("<Q", size)
    block += struct.pack("<II", zlib.crc32(block), 0) + b"\x9ddrde\r\n\x1a"
    seed("trailer", "block", b"\0" + block)
    seed("trailer", "records", b"\2" + records)
    seed("trailer", "schedstat", b"\1" + b"123456789 42 7\n")
    seed("trailer", "stat", b"\1" + b"7 (a) (b\n) S 1 2 3 4 -1 6 7 8 9 10 30 4 0 0 20 0 1\n")


def ring_record(kind, misc, body, extra=b""):
    return struct.pack("<IHH", kind, misc, 8 + len(body) + len(extra)) + body + extra


def ring_seeds():
    """The first byte is the place in the ring, in words."""
    behind = struct.pack("<IIQ", 1, 2, 3)
    chain = struct.pack("<4Q", 2 ** 64 - 512, 10, 11, 12)
    sample = ring_record(9, 2, struct.pack("<IIQQ", 1, 2, 3, 4) + chain)
    mapping = ring_record(10, 1 << 14, struct.pack("<IIQQQ", 1, 2, 4096, 512, 0) + b"\x14" + bytes(23)
                          + struct.pack("<II", 5, 2) + b"/lib/x.so" + bytes(7), behind)
    name = ring_record(3, 0, struct.pack("<II", 1, 2) + b"worker" + bytes(2), behind)
    fork = ring_record(7, 0, struct.pack("<IIIIQ", 1, 1, 3, 2, 5), behind)
    lost = ring_record(2, 0, struct.pack("<QQ", 1, 40), behind)
    seed("perf", "sample", b"\0" + sample)
    seed("perf", "all", b"\x70" + sample + mapping + name + fork + lost + sample)
    seed("perf", "map-line", b"0x7f05bc800000 1a4 void [Shop] Shop.Cpu::Hot()[OptimizedTier1]")
    seed("perf", "dump", struct.pack("<IIQIIQQQQ", 0, 60, 5, 1, 2, 4096, 4096, 16, 1) + b"Hot\0")
    seed("perf", "maps", b"7f05bc800000-7f05bd000000 r-xp 000a1000 fe:00 4711     /usr/lib/x.so")


if __name__ == "__main__":
    main()
