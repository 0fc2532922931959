#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What meson install brings to a system: all of it, nothing else, readable by everybody; and what
names the program in there names the place where it is.  installed.py BUILD-FOLDER PREFIX PROGRAM man|no-man"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, PREFIX, PROGRAM = sys.argv[1:4]
MAN = sys.argv[4] == "man"
failures = 0


def check(ok, what, *details):
    global failures
    if not ok:
        failures += 1
        print("FAILED:", what, *details, sep="\n    ")


def commands():
    """Of this build, from its own list."""
    text = subprocess.run([PROGRAM, "--list-options"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return [line.split("\t")[0] for line in text.splitlines()]


def expected():
    names = ["bin/drdotnet-trace", "share/bash-completion/completions/drdotnet-trace"]
    have = [c for c in commands() if c != "help"]
    if MAN:
        names += ["share/man/man1/drdotnet-trace.1", "share/man/man5/drdotnet-trace-report.5"]
        names += ["share/man/man1/drdotnet-trace-%s.1" % c for c in have]
    if "sample" in have:
        names += ["share/doc/drdotnet-trace/examples/" + x
                  for x in ("drdotnet-trace.cron", "sidecar.yaml")]
        names += ["lib/systemd/system/drdotnet-trace-sample." + x for x in ("service", "timer")]
    return {os.path.join(PREFIX, x) for x in names}, "sample" in have


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def units(root):
    """By systemd itself, with the units of this machine around them."""
    if not shutil.which("systemd-analyze") or not os.path.isdir("/usr/lib/systemd/system"):
        print("systemd is not here: the units are not checked by it")
        return
    shutil.copytree("/usr/lib/systemd/system", root + "/usr/lib/systemd/system", symlinks=True,
                    dirs_exist_ok=True)
    r = subprocess.run(["systemd-analyze", "verify", "--man=no", "--root=" + root,
                        "drdotnet-trace-sample.timer", "drdotnet-trace-sample.service"],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, check=False)
    check(r.returncode == 0 and not r.stdout, "systemd finds nothing wrong", r.stdout)


def main():
    with tempfile.TemporaryDirectory() as root:
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                        root], stdout=subprocess.DEVNULL, check=True)
        found = {os.path.join(folder, name)[len(root):]
                 for folder, _, names in os.walk(root) for name in names}
        want, have_store = expected()
        check(want <= found, "all is installed", *sorted(want - found))
        check(found <= want, "nothing else is", *sorted(found - want))
        for path in found:
            mode = os.stat(root + path).st_mode & 0o777
            check(mode == (0o755 if "/bin/" in path else 0o644), "everybody may read it",
                  path, oct(mode))
            with open(root + path, "rb") as f:
                text = f.read()
            check(text.startswith(b"\x7fELF") or not re.search(rb"@\w+@", text),
                  "every place is filled in", path)
        if have_store:
            program = os.path.join(PREFIX, "bin/drdotnet-trace")
            cron = read(os.path.join(root + PREFIX,
                                     "share/doc/drdotnet-trace/examples/drdotnet-trace.cron"))
            check("  root  %s sample --all " % program in cron and cron.endswith("\n"),
                  "cron finds the program, and reads the last line", cron)
            service = read(os.path.join(root + PREFIX,
                                        "lib/systemd/system/drdotnet-trace-sample.service"))
            check("\nExecStart=%s sample --all " % program in service, "systemd finds it", service)
            units(root)
    sys.exit(1 if failures else 0)


main()
