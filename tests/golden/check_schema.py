#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Validates all JSON that the program prints for the bundled traces against docs/report.schema.json,
and the list of --fail-if values against both.

usage: check_schema.py PROGRAM [--add]

A new member of the report goes into the schema, with a description if it is a number or a boolean
of its own, and into src/man/drdotnet-trace-report.5.scd.  --add writes a draft of what is missing
into the schema: the types that were seen, or null.  A person puts it right.
"""
import glob
import itertools
import json
import os
import re
import subprocess
import sys

import schema

FIXTURES = os.path.join(schema.TOP, "fixtures")
# Values that no bundled trace has: nothing here recorded them.
RARE = {
    "alloc.tree_complete", "child.exit_code", "child.signal", "cpu.samples_left_out",
    "cpu.tree_complete",
    "jit.types.loaded", "jit.types.time_ms",
    "threadpool.samples_not_told_apart", "threadpool.settings_dropped", "threads.not_followed",
}

# Documents of other commands, which the manual page of the report says nothing of.
OTHERS = {of for of in schema.KINDS.values() if of not in (None, "events-count")} | {
    "reading", "event", "history-export", "doctor-checks"}
MAP_KEYS = {"other"}  # of counts, where anything may be a key
LINES = 400  # events of each trace that are looked at

faults = {}


def run(program, *args, codes=(0,)):
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        raise SystemExit(f"{' '.join(args)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def check(what, found):
    for line in found:
        faults.setdefault(line, []).append(what)


def check_schema_itself(s):
    for where, node in s.nodes():
        unknown = set(node) - schema.KNOWN
        if unknown:
            check(where, [f"keywords that tests/golden/schema.py does not know: {unknown}"])
        if node.get("description") == "...":
            check(where, ["no description"])
        if "properties" in node and node.get("additionalProperties") is not False:
            check(where, ["additionalProperties must be false"])
        missing = set(node.get("required", [])) - set(node.get("properties", {}))
        if missing:
            check(where, [f"required, but no property: {missing}"])
    with open(schema.PATH, encoding="utf-8") as f:
        if f.read() != schema.layout(s.root) + "\n":
            check("docs/report.schema.json", ["layout: check_schema.py --add writes it"])
    check_manual(s)
    check_sources(s)
    try:
        import jsonschema
    except ImportError:
        return
    jsonschema.Draft202012Validator.check_schema(s.root)


def check_manual(s):
    """The manual page of the report and the schema name the same members."""
    with open(os.path.join(schema.TOP, "src/man/drdotnet-trace-report.5.scd"),
              encoding="utf-8") as f:
        text = f.read().replace("\\", "")
    words = set(re.findall(r"[a-z0-9_]+", text))
    members = {name for _, node in s.nodes() for name in node.get("properties", {})}
    for row in re.findall(r"\{([^{}]*)\}", text):
        for name in re.findall(r'"([^"]*)"', row):
            if name not in members:
                check("drdotnet-trace-report.5.scd", [f"{name} is not in the schema"])
    others = tuple(f"#/$defs/{name}" for name in OTHERS)
    for where, node in s.nodes():
        for name in node.get("properties", {}) if not where.startswith(others) else ():
            if name not in words:
                check("drdotnet-trace-report.5.scd", [f"does not name {name} ({where})"])


def check_sources(s):
    """What sources can add to a document is in the schema, whether a bundled trace has it or not."""
    members = {name for _, node in s.nodes() for name in node.get("properties", {})} | MAP_KEYS
    add = re.compile(r'\b(?:an_add|json)_[a-z_]+\(\s*[^,";]*,\s*"([a-z0-9_]+)"')
    for folder in ("analyzers", "src"):
        for path in glob.glob(os.path.join(schema.TOP, folder, "**", "*.c"), recursive=True):
            with open(path, encoding="utf-8") as f:
                for name in set(add.findall(f.read())) - members:
                    check(os.path.relpath(path, schema.TOP), [f"{name} is not in the schema"])


def scalars(s, node, value, path=""):
    """Paths of numbers and booleans, null or not, that are reached through objects only."""
    for name, child in s.resolve(node).get("properties", {}).items():
        if name not in value:
            continue
        child = s.resolve(child)
        at = f"{path}.{name}" if path else name
        if isinstance(value[name], dict):
            yield from scalars(s, child, value[name], at)
        elif {"integer", "number", "boolean"} & set(schema.types_of(child)):
            yield at


def traces():
    for name in sorted(os.listdir(FIXTURES)):
        if ".nettrace" in name or ".netperf" in name:
            yield name, os.path.join(FIXTURES, name)


def check_traces(program, s):
    """Returns the paths of all numbers and booleans that were seen, null or not."""
    seen = set()
    for name, path in traces():
        for args in (("--top", "0"), ("--view", "wall", "cpu", "stacks")):
            report = json.loads(run(program, "report", "--json", path, *args))
            check(name, s.faults(report))
            seen.update(scalars(s, s.root, report))
        count = json.loads(run(program, "events", "--count", "--json", path))
        check(name + " events --count", s.faults(count, "events-count"))
        check_lines(program, s, path)
    return seen


def check_lines(program, s, path):
    with subprocess.Popen([program, "events", "--format", "ndjson", "--stacks", path],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as p:
        for line in itertools.islice(p.stdout, LINES):
            check(os.path.basename(path) + " events", s.faults(json.loads(line), "event"))


def check_values(program, seen):
    listed = json.loads(run(program, "report", "--list-values", "--json"))["values"]
    paths = {row["value"] for row in listed if not row["alias_of"]}
    for path in sorted(paths - seen - RARE):
        check("report --list-values", [f"{path} is in no report"])
    for path in sorted(seen - paths):
        check("report --list-values", [f"{path} is not listed"])
    for path in sorted(RARE & seen):
        check("check_schema.py", [f"{path} is seen after all: take it out of RARE"])
    for row in listed:
        if row["alias_of"] and row["alias_of"] not in paths:
            check("report --list-values", [f"{row['value']} stands for {row['alias_of']}"])
        if row["summary"] in ("", "..."):
            check("docs/report.schema.json", [f"{row['value']} has no description"])


def main():
    program = sys.argv[1]
    if "--add" in sys.argv:
        schema.suggestions = []
    s = schema.Schema()
    check_schema_itself(s)
    seen = check_traces(program, s)
    check_values(program, seen)
    for args in (("ps",), ("analyzers",), ("doctor",), ("report", "--list-values")):
        found = json.loads(run(program, *args, "--json"))
        check(" ".join(args), s.document_faults(found))
    found, schema.suggestions = schema.suggestions, None
    if s.faults({"schema": "drdotnet-trace/1", "tool": "x", "trace": None, "findings": [],
                 "surprise": 1}) == [] or not s.document_faults({"surprise": 1}):
        check("schema.py", ["accepts anything"])
    schema.suggestions = found
    for line, where in faults.items():
        print(f"{where[0]}{f' and {len(where) - 1} more' if len(where) > 1 else ''}: {line}")
    if schema.suggestions is not None:
        s.save()
    return 1 if faults else 0


sys.exit(main())
