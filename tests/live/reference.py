# SPDX-License-Identifier: MIT
"""Microsoft's own library as a second reader of traces: tools/refdump, built once."""

import os
import re
import shutil
import subprocess

from live import TOP, check, scratch, skip


def reader():
    """The program, or the test is skipped."""
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")),
                         "drdotnet-trace", "refdump")
    program = os.path.join(cache, "TeDump")
    if os.path.exists(program):
        return program
    if not shutil.which("dotnet"):
        skip("there is no .NET SDK (command 'dotnet') to build the reference reader")
    with scratch() as folder:
        source = os.path.join(folder, "src")
        shutil.copytree(os.path.join(TOP, "tools", "refdump"), source)
        env = dict(os.environ, DOTNET_CLI_TELEMETRY_OPTOUT="1", DOTNET_NOLOGO="1",
                   MSBUILDDISABLENODEREUSE="1")
        r = subprocess.run(["dotnet", "build", "-c", "Release", "-o", cache,
                            "-p:UseSharedCompilation=false"], cwd=source, env=env,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
        if r.returncode != 0 or not os.path.exists(program):
            skip("the reference reader cannot be built here: " + r.stdout[-300:])
    return program


def reference(program, path):
    """Counts by Provider/ID/vVERSION, events, lost."""
    r = subprocess.run([program, "hist", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True)
    if not check(r.returncode == 0, path + ": opens in TraceEvent", r.stderr[-1500:]):
        return {}, 0, 0
    counts = {}
    for line in r.stdout.split("\n"):
        m = re.fullmatch(r" *(\d+) (\S+/\d+/v\d+)", line)
        if m:
            # It gives GCDynamicEvent, 39 on the wire, a number of its own.
            key = m.group(2).replace("DotNETRuntime/65524/", "DotNETRuntime/39/")
            counts[key] = counts.get(key, 0) + int(m.group(1))
    total = re.search(r"total (\d+) lost (\d+)", r.stdout)
    return counts, int(total.group(1)), int(total.group(2))
