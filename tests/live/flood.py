# SPDX-License-Identifier: MIT
"""The program of flood/, which makes more events than anybody wants, and others; built once."""

import hashlib
import os
import shutil
import subprocess

from live import HERE, App, scratch, skip


def program(folder="flood", name="Flood"):
    """The path of a program in a folder here, or the test is skipped."""
    source = os.path.join(HERE, folder)
    stamp = hashlib.sha256()
    for part in ("Program.cs", name + ".csproj"):
        with open(os.path.join(source, part), "rb") as f:
            stamp.update(f.read())
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")),
                         "drdotnet-trace", folder + "-" + stamp.hexdigest()[:16])
    path = os.path.join(cache, name)
    if os.path.exists(path):
        return path
    if not shutil.which("dotnet"):
        skip("there is no .NET SDK (command 'dotnet') to build the workload")
    with scratch() as place:
        copy = os.path.join(place, "src")
        shutil.copytree(source, copy)
        env = dict(os.environ, DOTNET_CLI_TELEMETRY_OPTOUT="1", DOTNET_NOLOGO="1",
                   MSBUILDDISABLENODEREUSE="1")
        r = subprocess.run(["dotnet", "build", "-c", "Release", "-o", cache,
                            "-p:UseSharedCompilation=false"], cwd=copy, env=env,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False)
        if r.returncode != 0 or not os.path.exists(path):
            skip("the workload cannot be built here: " + r.stdout[-300:])
    return path


def flood(mode, seconds=60, workers=4, per_second=0):
    """Running; per_second: of each worker, 0 as many as it can."""
    return App([program(), mode, str(seconds), str(workers), str(per_second)])
