# SPDX-License-Identifier: MIT
"""The program of heap/: heaps of a known shape and size; built once."""

import subprocess

import flood


def program():
    """Its path, or the test is skipped."""
    return flood.program("heap", "Heap")


class Heap:
    """heap MODE N, running and its heap complete; killed at the end of the with block."""

    def __init__(self, mode, n, seconds=600):
        self.process = subprocess.Popen([program(), mode, str(n), str(seconds)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError("the workload has not made its heap")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()
