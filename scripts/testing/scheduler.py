"""Runs tasks side by side, as many as there are slots for.

A slot is a quarter of a core. A test that failed is run again when no other test is running, with builds
paused: if it passes then, it is flaky."""

import os
import selectors
import time

from testing.process import Process, kill_all
from testing.task import FAILED, SKIPPED, Record, verdict_of

SLOTS_PER_CORE = 4
LONGEST_WAIT_SECONDS = 0.5


class Scheduler:
    """`listener` is notified of events (see progress.py). `expected` estimates the seconds of a task.
    `memory` recalls and keeps results, `servers` starts the shared servers, `shaker` pauses running tests;
    each may be None."""

    def __init__(self, tasks, slots, output_folder, listener, expected=lambda task: 0, memory=None,
                 servers=None, shaker=None, timeout_factor=1):
        self.slots = slots
        self.output_folder = output_folder
        self.listener = listener
        self.memory = memory
        self.servers = servers
        self.shaker = shaker
        self.timeout_factor = timeout_factor
        self.pending = sorted(tasks, key=lambda task: (task.rank, -expected(task)))
        self.records = {}
        self.running = []
        self.looked_up = set()
        # The first records of tasks to be run again.
        self.retries = []
        self.retrying = None
        self.selector = selectors.DefaultSelector()

    def run(self):
        """The records of all tasks, by name."""
        try:
            while self.pending or self.running or self.retries:
                self._start_what_can()
                self._wait()
        finally:
            if self.running:
                kill_all(self.running)
        return self.records

    def _start_what_can(self):
        if self.retries and not self.retrying and not self._running_tests():
            for build in self.running:
                build.pause()
            self.retrying = self.retries.pop(0)
            self._start(self.retrying.task, ".again")
        elif self.retrying:
            return
        settled = True
        while settled:
            settled = False
            for task in list(self.pending):
                settled = self._consider(task) or settled

    def _consider(self, task):
        """Starts the task if it can run now. True if it was settled without running."""
        blocker = next((self.records[name] for name in task.after
                        if name in self.records and self._is_in_the_way(name)), None)
        if blocker:
            self.pending.remove(task)
            self._finish(Record(task, SKIPPED, blocked_by=blocker.blocked_by or blocker.task.name))
            return True
        if not all(name in self.records for name in task.after):
            return False
        if self.memory and task.key and task.name not in self.looked_up:
            self.looked_up.add(task.name)
            record = self.memory.recall(task)
            if record:
                self.pending.remove(task)
                self._finish(record)
                return True
        if self._fits(task):
            self.pending.remove(task)
            self._start(task)
        return False

    def _is_in_the_way(self, name):
        record = self.records[name]
        return record.verdict == FAILED or bool(record.blocked_by)

    def _fits(self, task):
        if self.retrying or (self.retries and not task.is_build):
            return False
        if any(process.task.alone for process in self.running) or (task.alone and self.running):
            return False
        if any(process.task.locks & task.locks for process in self.running):
            return False
        taken = sum(self._slots_of(process.task) for process in self.running)
        if taken + self._slots_of(task) > self.slots:
            return False
        # Checked last, since it starts them.
        return not (task.awaits_servers and self.servers and not self.servers.settled())

    def _slots_of(self, task):
        return min(task.slots, self.slots)

    def _running_tests(self):
        return [process for process in self.running if not process.task.is_build]

    def _start(self, task, suffix=""):
        shared = self.servers.environment if self.servers and task.uses_servers else {}
        environment = {**os.environ, **shared, **task.environment}
        output = self.output_folder / f"{task.name}{suffix}.txt"
        if task.results:
            task.results.parent.mkdir(parents=True, exist_ok=True)
            task.results.unlink(missing_ok=True)
        process = Process(task, output, environment, self.timeout_factor)
        self.running.append(process)
        self.selector.register(process.fd, selectors.EVENT_READ, process)
        self.listener.started(task)

    def _wait(self):
        now = time.monotonic()
        wake = [now + LONGEST_WAIT_SECONDS]
        wake += [process.next_deadline() for process in self.running if process.next_deadline()]
        if self.shaker:
            wake.append(self.shaker.shake(self._running_tests(), now))
        if self.running:
            for ready, _ in self.selector.select(max(0, min(wake) - now)):
                self._ended(ready.data)
        elif self.pending:
            # All remaining tasks wait for servers.
            time.sleep(0.05)
        now = time.monotonic()
        for process in self.running:
            process.enforce_deadline(now)
        if self.servers:
            self.servers.attend()
        self.listener.tick(self)

    def _ended(self, process):
        task = process.task
        self.selector.unregister(process.fd)
        self.running.remove(process)
        outcome = process.reap()
        cases = task.judge(task, outcome) if task.judge else []
        record = Record(task, verdict_of(task, outcome, cases), cases, outcome)
        if self.retrying and self.retrying.task is task:
            self._retried(self.retrying, record)
        elif record.verdict == FAILED and not self.shaker and task.may_retry(outcome):
            self.listener.failed_once(record)
            self.retries.append(record)
        else:
            self._finish(record)

    def _retried(self, first, second):
        self.retrying = None
        if not self.retries:
            for build in self.running:
                build.resume()
        if second.verdict != FAILED:
            second.flaky = [case for case in first.cases if case.verdict == FAILED]
        self._finish(second)

    def _finish(self, record):
        self.records[record.task.name] = record
        if self.memory and not record.remembered:
            self.memory.keep(record)
        self.listener.finished(record)
