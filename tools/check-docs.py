#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check-docs.py PROGRAM

Compares the documents with the option tables: each command has a manual page and a line in
drdotnet-trace(1); a page names every option of its command and none that the command lacks; what
README.md and HACKING.md tell to type exists, files included."""
import json
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Options of the program itself; drdotnet-trace(1) has them.
OWN = {"--help", "-h", "--version", "--list-options"}
PROGRAM_CALL = re.compile(r"(?:tools/run|drdotnet-trace)\s+([^#|>&\n`]*)")


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as f:
        return f.read()


def listed(program, *command):
    done = subprocess.run([program, "--list-options", *command], check=True, capture_output=True,
                          text=True)
    return [line.split("\t")[0] for line in done.stdout.splitlines() if line]


def plain(scd):
    """scdoc source without its markup."""
    return re.sub(r"[*_\\]", "", scd)


def documented(text):
    """Options that the section OPTIONS of a page explains: those at the start of its entries."""
    section = re.search(r"^# OPTIONS\n(.*?)(?=^# |\Z)", text, re.M | re.S)
    names = set()
    for line in (section.group(1) if section else "").splitlines():
        if line.startswith("-"):
            names.update(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", line))
    return names


def check_pages(options, bad):
    main = plain(read("src/man/drdotnet-trace.1.scd"))
    for command, names in options.items():
        path = f"src/man/drdotnet-trace-{command}.1.scd"
        if not os.path.exists(os.path.join(TOP, path)):
            bad(f"{path} is missing")
            continue
        if f"drdotnet-trace-{command}(1)" not in main:
            bad(f"drdotnet-trace.1.scd does not name drdotnet-trace-{command}(1)")
        text = plain(read(path))
        entries = documented(text)
        for name in names:
            if name not in OWN and not re.search(r"(?<![\w-])" + re.escape(name) + r"(?![\w-])",
                                                 text):
                bad(f"{path} does not name {name}")
        for name in sorted(entries - set(names) - OWN):
            bad(f"{path} explains {name}, which {command} does not have")


def check_profiles(program, bad):
    """The names of profiles, which the program lists when it is given none of them."""
    done = subprocess.run([program, "collect", "--profile", "?"], capture_output=True, text=True,
                          check=False)
    match = re.search(r"there are ([\w, -]+)", done.stderr)
    names = set(match.group(1).split(", ")) if match else set()
    if len(names) < 10:
        bad("collect does not list its profiles: " + done.stderr)
    shown = subprocess.run([program, "collect", "--help"], capture_output=True, text=True,
                           check=True).stdout
    page = plain(read("src/man/drdotnet-trace-collect.1.scd"))
    section = re.search(r"^# PROFILES\n(.*?)(?=^# )", page, re.M | re.S)
    completion = re.search(r"--profile \]\].*?-W \"(.*?)\"",
                           read("src/completion/drdotnet-trace.bash"), re.S)
    for where, text in (("collect --help", shown), ("the manual", section and section.group(1)),
                        ("the completion", completion and completion.group(1))):
        for name in sorted(names):
            if not re.search(r"(?<![\w-])" + re.escape(name) + r"(?![\w-])", text or ""):
                bad(f"{where} does not name the profile {name}")
    for name in set(re.split(r"[\s\\]+", completion.group(1))) - names if completion else ():
        if name:
            bad(f"the completion names {name}, which is no profile")


def check_limits(program, bad):
    """The limits of findings: docs/findings.md has each with its value, and knows its finding."""
    text = read("docs/findings.md")
    shown = subprocess.run([program, "analyzers", "--json"], capture_output=True, text=True,
                           check=True).stdout
    limits = [limit for a in json.loads(shown)["analyzers"] for limit in a["limits"]]
    rows = dict(re.findall(r"^\| `([\w.-]+)` \| ([\d.]+)[^|]*\|[^|]*\|$", text, re.M))
    if len(limits) < 40:
        bad("the program lists no limits")
    for limit in limits:
        name, value = limit["name"], limit["default"]
        finding = ".".join(name.split(".")[:2])
        if float(rows.pop(name, "nan")) != value:
            bad(f"docs/findings.md does not say that {name} is {value:g} initially")
        if not re.search(r"^\| `" + re.escape(finding) + r"` \| (critical|warning|info)", text, re.M):
            bad(f"docs/findings.md has no finding {finding}, which {name} is for")
    for name in rows:
        bad(f"docs/findings.md has the limit {name}, which the program lacks")


def check_calls(name, options, bad):
    """Commands and options in the code blocks of a Markdown file."""
    text = read(name)
    blocks = re.findall(r"^(?:    |\t)(.*)$", text, re.M)
    blocks += [line for block in re.findall(r"```\w*\n(.*?)```", text, re.S)
               for line in block.splitlines()]
    calls = 0
    for line in blocks + re.findall(r"`([^`\n]+)`", text):
        match = PROGRAM_CALL.match(line.strip().removeprefix("$ "))
        words = match.group(1).split() if match else []
        if not words or not re.fullmatch(r"[a-z]+", words[0]):
            continue
        calls += 1
        if words[0] not in options:
            bad(f"{name}: '{line.strip()}': there is no command '{words[0]}'")
            continue
        given = words[1:words.index("--")] if "--" in words else words[1:]
        for word in given:
            option = word.strip("[]").split("=")[0]
            if option.startswith("-") and option != "-" and option not in options[words[0]]:
                bad(f"{name}: '{line.strip()}': {words[0]} has no option {option}")
    for path in set(re.findall(r"\b((?:tools|docs|fixtures|tests|src|nettrace|analyzers)/[\w./-]+)",
                               text)):
        if not os.path.exists(os.path.join(TOP, path.rstrip("."))) and "NAME" not in path:
            bad(f"{name} names {path}, which does not exist")
    return calls


def main():
    program = sys.argv[1]
    faults = []
    options = {command: listed(program, command) for command in listed(program)}
    if not options or not all(options.values()):
        faults.append("the program lists no commands or no options")
    check_pages(options, faults.append)
    check_profiles(program, faults.append)
    check_limits(program, faults.append)
    calls = check_calls("README.md", options, faults.append)
    if calls == 0:
        faults.append("README.md shows no call of the program")
    check_calls("HACKING.md", options, faults.append)
    print("\n".join(faults) if faults else f"{len(options)} commands are documented")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
