#!/usr/bin/env python3
"""Counts events by type into a file. Reads one event a line, acknowledges each.

After a crash events may come again that were counted already: their positions tell.
"""
import json
import os
import sys

path = f"{sys.argv[1]}.{os.environ['MUSTER_PARTITION_KEY']}"
try:
    with open(path) as file:
        state = json.load(file)
except FileNotFoundError:
    state = {"seen": [], "counts": {}}
seen = set(state["seen"])

for line in sys.stdin:
    event = json.loads(line)
    if event["position"] not in seen:
        seen.add(event["position"])
        state["counts"][event["type"]] = state["counts"].get(event["type"], 0) + 1
        state["seen"] = sorted(seen)
        with open(path + ".new", "w") as file:
            json.dump(state, file)
        os.replace(path + ".new", path)
    print(json.dumps({"ack": event["position"]}), flush=True)
