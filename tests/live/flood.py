# SPDX-License-Identifier: MIT
"""The program of flood/, which makes more events than anybody wants; built once."""

import hashlib
import os
import shutil
import subprocess

from live import HERE, App, scratch, skip


def program():
    """Its path, or the test is skipped."""
    source = os.path.join(HERE, "flood")
    stamp = hashlib.sha256()
    for name in ("Program.cs", "Flood.csproj"):
        with open(os.path.join(source, name), "rb") as f:
            stamp.update(f.read())
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")),
                         "drdotnet-trace", "flood-" + stamp.hexdigest()[:16])
    path = os.path.join(cache, "Flood")
    if os.path.exists(path):
        return path
    if not shutil.which("dotnet"):
        skip("there is no .NET SDK (command 'dotnet') to build the workload")
    with scratch() as folder:
        copy = os.path.join(folder, "src")
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
