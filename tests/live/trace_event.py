#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that collect wrote, read by Microsoft's own library: the same events, none lost."""

import os

from live import TARGETS, check, done, run, scratch, shop
from reference import reader, reference

program = reader()
with scratch() as folder:
    for target in TARGETS:
        mode = "gc" if target == "aot10" else "mixed"
        path = os.path.join(folder, target + ".nettrace")
        with shop(target, mode) as app:
            r = run("collect", "-p", app.pid, "--duration", "2s", "--json", "-o", path)
        check(r.code == 0, target + ": recorded", r)
        ours = r.json().get("trace", {})
        counts, total, lost = reference(program, path)
        check(ours.get("events") == total and total > 0, target + ": events", ours.get("events"),
              total)
        check(ours.get("events_lost") == lost, target + ": lost", ours.get("events_lost"), lost)
        differ = {k: (ours.get("counts", {}).get(k), counts.get(k))
                  for k in set(counts) | set(ours.get("counts", {}))
                  if ours.get("counts", {}).get(k) != counts.get(k)}
        check(not differ, target + ": counts (ours, theirs)", differ)
done()
