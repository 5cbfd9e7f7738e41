"""Reports progress: a status line on a terminal, else a line for each finished task."""

import re
import shutil
import sys
import time

from testing.task import FAILED, PASSED

MOST_OUTPUT_LINES = 300
NINJA_STEP = re.compile(rb"\[(\d+/\d+)\]")


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Progress:
    def __init__(self, slots, expected, stream=sys.stdout):
        self.stream = stream
        self.slots = slots
        self.expected = expected
        self.total = 0
        self.done = 0
        self.began = time.monotonic()
        self.is_terminal = stream.isatty()
        self.last_tick = 0

    def say(self, text):
        if self.is_terminal:
            self.stream.write("\r\x1b[K")
        print(text, file=self.stream, flush=True)

    def started(self, task):
        if task.is_build and not self.is_terminal:
            self.say(f"{minutes(time.monotonic() - self.began):>6} started    {task.name}")

    def failed_once(self, record):
        self._show(record, f"{record.task.name} failed: it will be run again, alone")

    def finished(self, record):
        self.done += 1
        if record.verdict == FAILED:
            self._show(record, f"{record.task.name} failed")
        if not self.is_terminal or record.verdict not in (PASSED, FAILED) or record.flaky:
            self.say(self._line(record))

    def _line(self, record):
        word = "remembered" if record.remembered else "flaky" if record.flaky else record.verdict
        line = f"{minutes(time.monotonic() - self.began):>6} {word:10} {record.task.name}"
        if record.blocked_by:
            return f"{line}: not run: it needs {record.blocked_by}"
        if record.outcome:
            line += f"  {record.outcome.seconds:.1f} s, processor {record.outcome.processor_seconds:.1f} s"
        return line

    def _show(self, record, headline):
        lines = record.outcome.text().splitlines()
        self.say(f"---- {headline} ({record.outcome.reason()}), {record.outcome.output}:")
        if len(lines) > MOST_OUTPUT_LINES:
            self.say(f"... {len(lines) - MOST_OUTPUT_LINES} lines before these")
        self.say("\n".join(lines[-MOST_OUTPUT_LINES:]))
        self.say("----")

    def tick(self, scheduler):
        now = time.monotonic()
        if not self.is_terminal or now < self.last_tick + 0.5:
            return
        self.last_tick = now
        running = sorted(scheduler.running, key=lambda process: process.started)
        doing = ", ".join(self._doing(process) for process in running)
        line = (f"{self.done}/{self.total} done, {minutes(now - self.began)}, about "
                f"{minutes(self._seconds_left(scheduler))} left: {doing}")
        width = shutil.get_terminal_size().columns - 1
        self.stream.write("\r\x1b[K" + line[:width])
        self.stream.flush()

    def _doing(self, process):
        if process.task.is_build:
            with open(process.output, "rb") as file:
                file.seek(max(0, file.seek(0, 2) - 2000))
                steps = NINJA_STEP.findall(file.read())
            if steps:
                return f"{process.task.name} {steps[-1].decode()}"
        return f"{process.task.name} {process.seconds():.0f} s"

    def _seconds_left(self, scheduler):
        left = [(self.expected(task), task.slots) for task in scheduler.pending]
        left += [(max(0, self.expected(process.task) - process.seconds()), process.task.slots)
                 for process in scheduler.running]
        work = sum(seconds * slots for seconds, slots in left) / self.slots
        return max([work] + [seconds for seconds, _ in left])

    def clear(self):
        if self.is_terminal:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
