# SPDX-License-Identifier: MIT
"""A diagnostic port that does as it is told, for what no real runtime does on request.

In a test: with FakePort(path, answer) as port: ...; answer(set, command, payload) returns what to do
with a connection, see SILENT and the functions below it.  As a program, fake_port.py MODE, it binds
the socket that a runtime of its own pid would have, says "ready", and serves until it is killed.
"""

import contextlib
import ctypes
import os
import socket
import struct
import sys
import threading
import time

MAGIC = b"DOTNET_IPC_V1\0"
UNKNOWN_COMMAND = 0x80131385
FAIL = 0x80004005

SILENT = [None]  # reads, and never answers


def ok(payload=b"\0\0\0\0"):
    return [MAGIC + struct.pack("<HBBH", 20 + len(payload), 0xff, 0, 0) + payload]


def error(hresult, more=b""):
    payload = struct.pack("<I", hresult) + more
    return [MAGIC + struct.pack("<HBBH", 20 + len(payload), 0xff, 0xff, 0) + payload]


def text(s):
    return struct.pack("<I", len((s + "\0").encode("utf-16le")) // 2) + (s + "\0").encode("utf-16le")


def in_single_bytes(steps):
    return [bytes([b]) for step in steps for b in step]


def info(version, command_line="app", entry="Fake", runtime="9.0.1+abc"):
    payload = struct.pack("<I", 1) if version == 3 else b""
    payload += struct.pack("<Q", 77) + bytes(range(16)) + text(command_line) + text("Linux") + text("x64")
    if version >= 2:
        payload += text(entry) + text(runtime)
    if version == 3:
        payload += text("linux-x64")
    return ok(payload)


INFO = {0: 1, 4: 2, 8: 3}  # command of set 4 -> version


class FakePort:
    def __init__(self, path, answer, backlog=16, accept=True):
        self.path, self.answer = path, answer
        self.requests, self.ends, self.threads = [], 0, []
        self.listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.listener.bind(path or ("127.0.0.1", 0))
        if not path:
            self.path = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.listener.listen(backlog)
        if accept:
            self.go(self.serve)

    def go(self, function, *args):
        thread = threading.Thread(target=function, args=args, daemon=True)
        self.threads.append(thread)
        thread.start()

    def serve(self):
        while True:
            try:
                conn = self.listener.accept()[0]
            except OSError:
                return
            self.go(self.talk, conn)

    def talk(self, conn):
        """Steps: bytes are sent, a number is slept, None waits for the other side to close."""
        data = b""
        try:
            while len(data) < 20 or len(data) < struct.unpack_from("<H", data, 14)[0]:
                part = conn.recv(65536)
                if not part:
                    return
                data += part
            self.requests.append((data[16], data[17], data[20:]))
            for step in self.answer(data[16], data[17], data[20:]):
                if step is None:
                    while conn.recv(65536):
                        pass
                elif isinstance(step, bytes):
                    conn.sendall(step)
                else:
                    time.sleep(step)
        except OSError:
            pass
        finally:
            conn.close()
            self.ends += 1

    def commands(self):
        return [r[:2] for r in self.requests]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with contextlib.suppress(OSError):  # ends the accept of the other thread
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        if os.path.exists(self.path):
            os.unlink(self.path)


def own_path():
    with open("/proc/self/stat", encoding="utf-8") as f:
        start = f.read().rsplit(")", 1)[1].split()[19]
    folder = os.environ.get("TMPDIR") or "/tmp"
    return "%s/dotnet-diagnostic-%d-%s-socket" % (folder, os.getpid(), start)


def answer_in_mode(mode):
    def answer(kind, command, payload):
        if mode == "silent":
            return SILENT
        if mode == "garbage":
            return [b"HTTP/1.1 400 Bad Request\r\n\r\n"]
        if kind == 4 and command in INFO:
            return info(INFO[command])
        if kind == 2 and mode == "mute":  # as a runtime that waits to be resumed
            return ok(struct.pack("<Q", 5)) + [None]
        if kind == 2 and mode == "starting":
            return error(0x8013135b)
        if kind == 2:
            return error(FAIL)
        return error(UNKNOWN_COMMAND)
    return answer


def thread_named(name):
    def live():
        ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
        time.sleep(600)

    threading.Thread(target=live, daemon=True).start()


if __name__ == "__main__":
    port = FakePort(own_path(), answer_in_mode(sys.argv[1]), accept=sys.argv[1] != "dead")
    if sys.argv[1] == "dead":
        port.listener.close()
    if sys.argv[1] in ("young", "asleep"):  # what every runtime has from its start on
        thread_named(".NET EventPipe")
        time.sleep(0.1)
    print("ready", flush=True)
    if sys.argv[1] == "young":
        time.sleep(0.5)
        thread_named(".NET Finalizer")
    time.sleep(600)
