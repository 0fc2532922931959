#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make-values.py SCHEMA

Prints the C table of the numbers and booleans that --fail-if may name: every one in the JSON Schema
of the report that is reached through objects only, not through lists and maps."""
import json
import sys


def resolve(root, node):
    while "$ref" in node:
        at = root
        for part in node["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        node = at
    return node


def values(root, node, path):
    for name, child in resolve(root, node).get("properties", {}).items():
        child = resolve(root, child)
        at = f"{path}.{name}" if path else name
        types = child.get("type", [])
        types = {types} if isinstance(types, str) else set(types)
        if "object" in types:
            yield from values(root, child, at)
        elif types & {"integer", "number", "boolean"}:
            yield at, "boolean" in types, child.get("description", "")


def unit(path, boolean):
    """The unit is in the name, as that of every number of the report."""
    words = path.rsplit(".", 1)[-1].split("_")
    size = "bytes" in words
    if boolean:
        return "UNIT_BOOL"
    if words[-2:] == ["per", "s"]:
        return "UNIT_BYTES_PER_S" if size else "UNIT_PER_S"
    if words[-2:] == ["per", "minute"]:
        return "UNIT_PER_MINUTE"
    if words[-1] == "ms":
        return "UNIT_MS"
    if words[-1] == "percent":
        return "UNIT_PERCENT"
    return "UNIT_BYTES" if size else "UNIT_NONE"


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        root = json.load(f)
    print("/* Made by tools/make-values.py from docs/report.schema.json. */")
    print('#include "src/report/values.h"\n')
    print("const struct value_spec values[] = {")
    for path, boolean, text in values(root, root, ""):
        print(f"\t{{ {json.dumps(path)}, {unit(path, boolean)}, {json.dumps(text)} }},")
    print("\t{ 0 },\n};")


main()
