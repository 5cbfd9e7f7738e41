#!/usr/bin/env python3
"""Counts events by type into a SQLite file. Reads one event a line, acknowledges each.

Events may come again, here or at the child of another partition: after a crash, after a failure, or
when the number of workers has changed. So each event is written down under its position, in one
file for all partitions, and the key refuses the second time. That and the effect are one
transaction, committed before the acknowledgement.
"""
import json
import os
import sqlite3
import sys

version = int(os.environ["MUSTER_VERSION"])
db = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
db.execute("CREATE TABLE IF NOT EXISTS counted (version INTEGER, position INTEGER, PRIMARY KEY (version, position))")
db.execute("CREATE TABLE IF NOT EXISTS types (version INTEGER, type TEXT, events INTEGER, PRIMARY KEY (version, type))")

for line in sys.stdin:
    event = json.loads(line)
    db.execute("BEGIN IMMEDIATE")
    new = db.execute("INSERT OR IGNORE INTO counted VALUES (?, ?)", (version, event["position"])).rowcount
    if new:
        db.execute(
            "INSERT INTO types VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET events = events + 1",
            (version, event["type"]),
        )
    db.execute("COMMIT")
    print(json.dumps({"ack": event["position"]}), flush=True)
