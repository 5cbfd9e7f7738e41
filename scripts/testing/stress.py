"""Runs tests many times on a busy machine and holds them up at random, to find what depends on time."""

import dataclasses
import os
import random
import shutil
import subprocess
import sys

from testing.task import FAILED

DEFAULT_SUITES = ["unit", "contract", "e2e"]
BUSY_LOOPS = 8
TIMEOUT_FACTOR = 5
PAUSE_SECONDS = (0.02, 0.3)
MEAN_SECONDS_BETWEEN_PAUSES = 0.5
# Ends with the runner, however that ends.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n  sum(range(10**5))"


class Shaker:
    """Stops one running test at a time, with all its processes, and resumes it soon after."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.paused = None
        self.until = 0

    def shake(self, running, now):
        """The time to be called again."""
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
    """A context with more processes that want the cores than there are cores."""

    def __enter__(self):
        self.loops = [subprocess.Popen([sys.executable, "-SEc", BUSY], stdin=subprocess.DEVNULL,
                                       start_new_session=True) for _ in range(BUSY_LOOPS)]
        return self

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()


def repeated(tasks, times):
    """Each test so many times, one after the other, and once what sets something up. Builds are
    there already; what follows from the sources alone is left out."""
    builds = {task.name for task in tasks if task.is_build}
    fixtures = {name for task in tasks for name in task.after} - builds
    result = []
    for task in tasks:
        after = [name for name in task.after if name not in builds]
        if task.name in fixtures:
            result.append(dataclasses.replace(task, after=after))
        elif task.can_repeat:
            result += [dataclasses.replace(task, name=f"{task.name} #{number}", after=after,
                                           locks=task.locks | {f"repeat {task.name}"})
                       for number in range(1, times + 1)]
    return result


def new_seed():
    return int.from_bytes(os.urandom(4), "big")


def print_stress(records, folder):
    """The exit code. What failing runs printed is kept in the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    runs = {}
    for record in records.values():
        if record.task.can_repeat:
            runs.setdefault(record.task.name.partition(" #")[0], []).append(record)
    failures = 0
    print(f"\n{'runs':>5} {'failures':>8} {'slowest':>8}  test")
    for name, several in sorted(runs.items(), key=lambda item: (-failed(item[1]), item[0])):
        slowest = max((r.outcome.seconds for r in several if r.outcome), default=0)
        print(f"{len(several):5} {failed(several):8} {slowest:8.1f}  {name}")
        failures += failed(several)
        for record in several:
            if record.verdict == FAILED:
                folder.mkdir(parents=True, exist_ok=True)
                kept = folder / f"{record.task.name.replace('/', ' ')}.txt"
                shutil.copy(record.outcome.output, kept)
                print(f"{'':25}{kept}")
    print(f"{sum(map(len, runs.values()))} runs, {failures} failures")
    return 1 if failures else 0


def failed(records):
    return sum(record.verdict == FAILED for record in records)
