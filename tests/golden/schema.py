# SPDX-License-Identifier: MIT
"""A validator for docs/report.schema.json: the keywords that file uses, and no others, so that a
clean machine needs no package.  faults() names the member and says what to add."""
import json
import os
import re
import textwrap

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATH = os.path.join(TOP, "docs", "report.schema.json")
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "properties", "required",
         "additionalProperties", "items", "enum", "const", "pattern", "minimum"}
TYPES = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


def types_of(node):
    types = node.get("type", [])
    return [types] if isinstance(types, str) else types


# What kind of document has a member that no other has; None is the report itself.
KINDS = {"findings": None, "readings": "counters-collect", "machine": "doctor",
         "processes": "ps", "process": "process-info", "variables": "process-env",
         "set": "process-set", "resumed": "process-resume", "dump": "process-dump",
         "perf_map": "process-perfmap", "analyzers": "analyzers", "values": "values",
         "sample": "history-show", "points": "history-trend", "methods": "history-top",
         "changes": "history-regressions", "samples": "history-list", "trace": "events-count"}

suggestions = None  # a list: what is missing is drafted; the drafts' ids


class Schema:
    def __init__(self, path=PATH):
        with open(path, encoding="utf-8") as f:
            self.root = json.load(f)

    def save(self, path=PATH):
        with open(path, "w", encoding="utf-8") as f:
            f.write(layout(self.root) + "\n")

    def resolve(self, s):
        while "$ref" in s:
            at = self.root
            for part in s["$ref"].removeprefix("#/").split("/"):
                at = at[part]
            s = at
        return s

    def nodes(self):
        """Every schema in the file, with where it is."""
        todo = [("#", self.root)]
        while todo:
            where, s = todo.pop()
            yield where, s
            for key in ("properties", "$defs"):
                todo += [(f"{where}/{key}/{k}", v) for k, v in s.get(key, {}).items()]
            for key in ("items", "additionalProperties"):
                if isinstance(s.get(key), dict):
                    todo.append((f"{where}/{key}", s[key]))

    def faults(self, value, of=None):
        """What is wrong with value, as lines; of: a name below $defs."""
        found = []
        self.check(value, self.root["$defs"][of] if of else self.root, "", found)
        return list(dict.fromkeys(found))

    def document_faults(self, value):
        """The same for whatever a command prints as one JSON document: it tells its own kind."""
        for member, of in KINDS.items():
            if isinstance(value, dict) and member in value:
                return self.faults(value, of)
        return ["a document of no kind that docs/report.schema.json knows"]

    def check(self, v, s, path, found):
        s = self.resolve(s)
        if suggestions is not None and id(s) in suggestions:
            widen(s, v)
        types = types_of(s)
        if types and not any(TYPES[t](v) for t in types):
            found.append(f"{path}: {json.dumps(v)[:60]} is not of type {' or '.join(types)}")
            return
        if "const" in s and v != s["const"]:
            found.append(f"{path}: {v!r} is not {s['const']!r}")
        if "enum" in s and v not in s["enum"]:
            found.append(f"{path}: {v!r} is none of {s['enum']}")
        if "pattern" in s and isinstance(v, str) and not re.search(s["pattern"], v):
            found.append(f"{path}: {v!r} does not match {s['pattern']}")
        if "minimum" in s and TYPES["number"](v) and v < s["minimum"]:
            found.append(f"{path}: {v} is less than {s['minimum']}")
        if isinstance(v, list) and "items" in s:
            for x in v:
                self.check(x, s["items"], path + "[]", found)
        if isinstance(v, dict):
            self.check_object(v, s, path, found)

    def check_object(self, v, s, path, found):
        prefix = path + "." if path else ""
        properties = s.get("properties", {})
        for name in s.get("required", []):
            if name not in v:
                found.append(f"{prefix}{name} is missing")
        for name, x in v.items():
            if name in properties:
                self.check(x, properties[name], prefix + name, found)
            elif isinstance(s.get("additionalProperties"), dict):
                self.check(x, s["additionalProperties"], prefix + "*", found)
            elif s.get("additionalProperties") is False:
                if suggestions is not None:
                    draft = s.setdefault("properties", {})[name] = suggest(x)
                    suggestions.append(id(draft))
                    widen(draft, x)
                found.append(f"{prefix}{name} is not in docs/report.schema.json; add "
                             f'"{name}": {json.dumps(suggest(x))}')


def has_members(v):
    """Whether a schema has properties of its own, or its items do."""
    return isinstance(v, dict) and ("properties" in v or any(map(has_members, v.values())))


def layout(v, indent=0):
    """JSON with one line for each member that has no members itself."""
    pad = "  " * indent
    if isinstance(v, dict) and (has_members(v) or any(isinstance(x, dict) and "type" in x
                                                      for k, x in v.items()
                                                      if k not in ("items",
                                                                   "additionalProperties"))):
        rows = [f"{pad}  {json.dumps(k)}: {layout(x, indent + 1)}" for k, x in v.items()]
        return "{\n" + ",\n".join(rows) + "\n" + pad + "}"
    line = json.dumps(v, ensure_ascii=False)
    if not isinstance(v, list) or len(line) + len(pad) < 90:
        return line
    rows = textwrap.wrap(line[1:-1], width=96, initial_indent=pad + "  ",
                         subsequent_indent=pad + "  ")
    return "[\n" + "\n".join(rows) + "\n" + pad + "]"


def type_of(v):
    return next(name for name, fits in TYPES.items() if fits(v))


def suggest(v, described=True):
    """A first draft for a member that the schema lacks."""
    draft = {"type": list(dict.fromkeys([type_of(v), "null"]))}
    if described:
        draft["description"] = "..."
    if isinstance(v, list) and v:
        draft["items"] = suggest(v[0], False)
    if isinstance(v, dict):
        draft["additionalProperties"] = False
        draft["required"] = list(v)
        draft["properties"] = {k: suggest(x, False) for k, x in v.items()}
    return draft


def widen(draft, v):
    """The same for what was drafted and now has another value."""
    if type_of(v) not in draft["type"]:
        draft["type"].insert(0, type_of(v))
    if "number" in draft["type"] and "integer" in draft["type"]:
        draft["type"].remove("integer")
    if isinstance(v, list):
        for x in v:
            if "items" not in draft:
                draft["items"] = suggest(x, False)
            widen(draft["items"], x)
    if isinstance(v, dict):
        draft.setdefault("additionalProperties", False)
        known = draft.setdefault("properties", {})
        draft["required"] = [k for k in draft.get("required", []) if k in v]
        for k, x in v.items():
            if k in known:
                widen(known[k], x)
            else:
                known[k] = suggest(x, False)
