#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The measuring half of tools/bench; see there.  Each part is a file of its own, bench_PART.py."""
import argparse
import importlib
import os
import shutil
import sys

from bench_common import Table, machine

PARTS = ["read", "load", "store", "sample", "cost", "cpu-sources", "heap"]
UNASKED = ["read", "load"]


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "measure", "big-trace", "fixtures", "folder", "refdump",
                 "dotnet-trace", "big-store"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=350)
    parser.add_argument("--ten-times", action="store_true")
    parser.add_argument("parts", nargs="*", metavar="PART")
    args = parser.parse_args()
    for part in args.parts:
        if part not in PARTS:
            sys.exit(f"bench: there is no part '{part}': {' '.join(PARTS)}")
    have_dotnet = shutil.which("dotnet") is not None
    args.have_refdump = have_dotnet and os.access(args.refdump, os.X_OK)
    args.have_dotnet_trace = have_dotnet and os.access(args.dotnet_trace, os.X_OK)

    print(f"machine: {machine()}")
    if not args.have_refdump:
        print("left out: TraceEvent (no .NET SDK, or its packages cannot be had here)")
    if not args.have_dotnet_trace:
        print("left out: dotnet-trace (no .NET SDK, or its packages cannot be had here)")
    table = Table()
    for part in args.parts or UNASKED:
        importlib.import_module("bench_" + part.replace("-", "_")).bench(args, table)
    print("all goals met" if table.missed == 0 else f"{table.missed} goals missed")


if __name__ == "__main__":
    main()
