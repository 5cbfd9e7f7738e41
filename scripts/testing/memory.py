"""Passes and durations, kept in the user's cache folder for all checkouts."""

import datetime
import json
import os
import pathlib
import time

from testing.task import PASSED, Case, Record

MOST_DAYS = 30
# For a test without a recorded duration, its time limit is the best hint.
SHARE_OF_TIMEOUT = 1 / 20
UNKNOWN_SECONDS = 15


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "muster" / "tests"


def write(path, value):
    """Replaces the file atomically: another run may be reading it."""
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
    """The key is computed once, before the task runs, and a pass is kept under that key."""

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
        # Keeps prune() from removing it.
        os.utime(path)
        return Record(task, PASSED, [Case(PASSED, name) for name in kept["cases"]], remembered=True)

    def keep(self, record):
        """Only if all cases passed at the first try, and no file changed during the run."""
        key = self.keys.get(record.task.name)
        if not key or record.verdict != PASSED or record.flaky:
            return
        if any(case.verdict != PASSED for case in record.cases):
            return
        if self.is_trusted():
            write(self.folder / key, {
                "task": record.task.name, "cases": [case.name for case in record.cases],
                "seconds": round(record.outcome.seconds, 1),
                "date": datetime.datetime.now().isoformat(timespec="seconds")})


def prune(folder):
    """Removes what was not used for long."""
    for path in folder.iterdir() if folder.is_dir() else []:
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
        # A repetition takes as long as the test.
        known = self.seconds.get(task.name.partition(" #")[0])
        if known is not None or task.is_build:
            return known or 0
        return task.timeout * SHARE_OF_TIMEOUT if task.timeout else UNKNOWN_SECONDS

    def update(self, records):
        # Read again: another run may have changed it.
        seconds = read(self.path, {})
        for record in records.values():
            if record.outcome and record.verdict == PASSED:
                seconds[record.task.name] = round(record.outcome.seconds, 1)
        write(self.path, seconds)
