"""Passes that are remembered in the user's cache folder, for all checkouts, and how long things took."""

import datetime
import json
import os
import pathlib
import time

from testing.task import PASSED, Case, Record

MOST_DAYS = 30
UNKNOWN_SECONDS = 15


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "muster" / "tests"


def write(path, value):
    """At once, for other runs that read it meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(value))
    temporary.replace(path)


def read(path, default):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return default


class Memory:
    """A key is asked for once, before the task runs: a pass is kept under what was seen then."""

    def __init__(self, folder, is_trusted=lambda: True, again=False):
        self.folder = folder
        self.is_trusted = is_trusted
        self.again = again
        self.keys = {}

    def recall(self, task):
        """The record of an earlier pass, or None."""
        key = self.keys[task.name] = task.key()
        if key is None or self.again:
            return None
        path = self.folder / key
        kept = read(path, None)
        if kept is None:
            return None
        # Used: it is not pruned.
        os.utime(path)
        return Record(task, PASSED, [Case(PASSED, name) for name in kept["cases"]], remembered=True)

    def keep(self, record):
        """Only what has passed whole and at once, and saw nothing change."""
        key = self.keys.get(record.task.name)
        if not key or record.flaky or any(case.verdict != PASSED for case in record.cases):
            return
        if self.is_trusted():
            write(self.folder / key, {
                "task": record.task.name, "cases": [case.name for case in record.cases],
                "seconds": round(record.outcome.seconds, 1),
                "date": datetime.datetime.now().isoformat(timespec="seconds")})

    def prune(self):
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            try:
                if path.stat().st_mtime < time.time() - MOST_DAYS * 86400:
                    path.unlink()
            except FileNotFoundError:
                pass


class Durations:
    """How long each task took when it last passed."""

    def __init__(self, folder):
        self.path = folder / "durations.json"
        self.seconds = read(self.path, {})

    def expected(self, task):
        return self.seconds.get(task.name, 0 if task.is_build else UNKNOWN_SECONDS)

    def update(self, records):
        # Read again: another run may have written meanwhile.
        seconds = read(self.path, {})
        for record in records.values():
            if record.outcome and record.verdict == PASSED:
                seconds[record.task.name] = round(record.outcome.seconds, 1)
        write(self.path, seconds)
