#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Questions to a store of one million rows."""
import json
import os
import shutil
import subprocess

from bench_common import median, mib, run, time_text

ROWS = 1_000_000
GOAL = 0.1  # seconds

QUESTIONS = (
    ("list", ["list"]),
    ("list, all of it as JSON", ["list", "--top", "0", "--json"]),
    ("show", ["show", "4000"]),
    ("trend of a metric", ["trend", "gc.number3", "-n", "Shop"]),
    ("trend of a metric, all processes", ["trend", "gc.number3"]),
    ("trend of a method", ["trend", "method:Shop.Price.Sum", "-n", "Shop"]),
    ("top", ["top"]),
    ("top since the beginning", ["top", "--since", "400d"]),
)


def bench(args, table):
    if subprocess.run([args.program, "help", "history"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("left out: store (built without SQLite)")
        return
    store = os.path.join(args.folder, "store")
    shutil.rmtree(store, ignore_errors=True)
    subprocess.run([args.big_store, store, str(ROWS)], check=True)
    size = sum(os.path.getsize(os.path.join(store, name)) for name in os.listdir(store)
               if name.startswith("samples.db"))
    print(f"history of a store of {ROWS} rows ({mib(size)}), median of {args.runs} runs")
    for title, words in QUESTIONS:
        runs = [run(args, [args.program, "history", *words, "--store", store])
                for _ in range(args.runs)]
        seconds = median(runs)
        table.row(title, time_text(seconds), f"< {time_text(GOAL)}", seconds < GOAL)
    runs = [run(args, [args.program, "history", "regressions", "--json", "--store", store])
            for _ in range(args.runs)]
    found = json.loads(runs[-1].output)
    table.row("regressions, two weeks of each", f"{time_text(median(runs))} for {found['series']} "
              f"series, {len(found['changes'])} changed")
    shutil.rmtree(store)
