"""Runs tests many times on a busy machine and pauses them at random, to find those that depend on timing."""

import collections
import dataclasses
import datetime
import os
import random
import shutil
import subprocess
import sys

from testing.memory import read, write
from testing.task import FAILED, PASSED

# All whose outcome can depend on timing: the simulator, fuzzing and the checks of sources always do the
# same work, by their seeds or inputs.
DEFAULT_SUITES = ["unit", "contract", "e2e", "web", "asan", "tsan"]
BUSY_LOOPS = 8
TIMEOUT_FACTOR = 5
PAUSE_SECONDS = (0.02, 0.3)
MEAN_SECONDS_BETWEEN_PAUSES = 0.5
# Exits when the runner does, even if the runner is killed.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n  sum(range(10**5))"


class Shaker:
    """Stops one running test at a time, with all its processes, and resumes it soon after."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.paused = None
        self.until = 0

    def shake(self, running, now):
        """Returns when to call it again."""
        if now < self.until:
            return self.until
        if self.paused:
            self.paused.resume()
            self.paused = None
            self.until = now + self.random.expovariate(1 / MEAN_SECONDS_BETWEEN_PAUSES)
        elif running:
            self.paused = self.random.choice(running)
            self.paused.pause()
            self.until = now + self.random.uniform(*PAUSE_SECONDS)
        else:
            self.until = now + 0.1
        return self.until


class BusyMachine:
    """A context in which more processes compete for the cores than there are cores."""

    def __enter__(self):
        self.loops = [subprocess.Popen([sys.executable, "-SEc", BUSY], stdin=subprocess.DEVNULL,
                                       start_new_session=True) for _ in range(BUSY_LOOPS)]
        return self

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()


def new_seed():
    return int.from_bytes(os.urandom(4), "big")


class Campaign:
    """Repeats tests until each has `times` clean repetitions with the same inputs. Takes hours, so the
    counts are kept in `folder`, under the keys of remembered passes, and a later run continues
    where an earlier one stopped. A failure resets a test's count to 0. The output of failing repetitions
    is kept in `outputs`. A test without a key is repeated from the start each time.

    Serves as the scheduler's memory."""

    def __init__(self, folder, outputs, times, is_trusted=lambda: True, again=False):
        self.folder = folder
        self.outputs = outputs
        self.times = times
        self.is_trusted = is_trusted
        self.again = again
        self.keys = {}
        self.clean = {}
        self.records = collections.defaultdict(list)

    def tasks(self, tasks):
        """The repetitions that are missing, each test's one after the other, and once each fixture that
        they need. Builds are complete by now."""
        builds = {task.name for task in tasks if task.is_build}
        fixtures = {name for task in tasks for name in task.after} - builds
        result = []
        for task in tasks:
            if not task.can_repeat or task.name in fixtures:
                continue
            self.keys[task.name] = task.key() if task.key else None
            self.clean[task.name] = 0 if self.again else self._kept(task.name)
            # All tests once, then all a second time: what was interrupted has repeated all as often.
            result += [dataclasses.replace(without(builds, task), name=f"{task.name} #{number}", rank=number,
                                           key=None, locks=task.locks | {f"repeat {task.name}"})
                       for number in range(self.clean[task.name] + 1, self.times + 1)]
        needed = {name for task in result for name in task.after}
        return [dataclasses.replace(without(builds, task), key=None)
                for task in tasks if task.name in needed] + result

    def _kept(self, name):
        key = self.keys[name]
        return read(self.folder / key, {}).get("clean", 0) if key else 0

    def recall(self, _):
        return None

    def keep(self, record):
        name, is_repetition, number = record.task.name.partition(" #")
        if not is_repetition or not record.outcome:
            return
        self.records[name].append(record)
        if record.verdict == FAILED:
            self.outputs.mkdir(parents=True, exist_ok=True)
            shutil.copy(record.outcome.output, self.outputs / f"{name.replace('/', ' ')} #{number}.txt")
        if record.verdict in (PASSED, FAILED):
            self.clean[name] = self.clean[name] + 1 if record.verdict == PASSED else 0
            if self.keys[name] and self.is_trusted():
                write(self.folder / self.keys[name], {
                    "task": name, "clean": self.clean[name],
                    "date": datetime.datetime.now().isoformat(timespec="seconds")})

    def print_report(self):
        """Returns the exit code: 0 if every test has its clean repetitions."""
        print(f"\n{'runs':>5} {'failures':>8} {'slowest':>8} {'clean':>6}  test")
        for name in sorted(self.clean, key=lambda name: (-failed(self.records[name]), name)):
            slowest = max((record.outcome.seconds for record in self.records[name]), default=0)
            print(f"{len(self.records[name]):5} {failed(self.records[name]):8} {slowest:8.1f} "
                  f"{self.clean[name]:6}  {name}")
        short = [name for name, clean in self.clean.items() if clean < self.times]
        if short:
            print(f"fewer than {self.times} clean repetitions with the same inputs:")
        for name in sorted(short, key=lambda name: (self.clean[name], name)):
            print(f"  {self.clean[name]:4}  {name}")
        failures = sum(map(failed, self.records.values()))
        if failures:
            print(f"what they printed is in {self.outputs}")
        print(f"{sum(map(len, self.records.values()))} runs, {failures} failures; "
              f"{len(self.clean) - len(short)} of {len(self.clean)} tests have {self.times} clean repetitions")
        return 1 if short else 0


def without(builds, task):
    return dataclasses.replace(task, after=[name for name in task.after if name not in builds])


def failed(records):
    return sum(record.verdict == FAILED for record in records)
