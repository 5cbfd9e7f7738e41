"""Tasks and their outcomes."""

import collections
import dataclasses
import pathlib
from collections.abc import Callable

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

# One test as it is counted: a GoogleTest case, or a whole script.
Case = collections.namedtuple("Case", "verdict name")


@dataclasses.dataclass
class Outcome:
    """How one process ended. `code` is negative for a signal."""
    code: int
    seconds: float
    processor_seconds: float
    timed_out: bool
    output: pathlib.Path

    def text(self):
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def reason(self):
        if self.timed_out:
            return f"timed out after {self.seconds:.0f} s"
        return f"killed by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"


@dataclasses.dataclass(eq=False)
class Task:
    """A process that the scheduler runs once all tasks in `after` have passed."""
    name: str
    command: list[str]
    # Turns the outcome into cases. A task without cases, such as a build, passes with exit code 0.
    judge: Callable[["Task", Outcome], list[Case]] | None = None
    suite: str = ""
    preset: str = ""
    # The targets it needs from the build of its preset.
    targets: set[str] = dataclasses.field(default_factory=set)
    # A file that it leaves for its judge; one from an earlier run is removed first.
    results: pathlib.Path | None = None
    cwd: pathlib.Path | None = None
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    slots: int = 2
    timeout: float | None = None
    after: list[str] = dataclasses.field(default_factory=list)
    locks: frozenset[str] = frozenset()
    alone: bool = False
    is_build: bool = False
    # Whether it uses the shared servers, and whether it waits until they are ready.
    uses_servers: bool = False
    awaits_servers: bool = False
    # Lower ranks start first; within a rank, the longest tasks.
    rank: float = 2
    # Whether a failure may be random, so that a second run decides.
    may_retry: Callable[[Outcome], bool] = lambda outcome: False
    # Whether `--stress` runs it many times.
    can_repeat: bool = False
    # The name under which a pass is remembered; None: it is always run.
    key: Callable[[], str | None] | None = None


@dataclasses.dataclass
class Record:
    """The result of a task."""
    task: Task
    verdict: str
    cases: list[Case] = dataclasses.field(default_factory=list)
    outcome: Outcome | None = None
    remembered: bool = False
    # The cases that failed in the first run, if the second run passed.
    flaky: list[Case] = dataclasses.field(default_factory=list)
    # Why it was not run.
    blocked_by: str = ""


def verdict_of(task, outcome, cases):
    """One verdict for all cases: failed if any failed, skipped only if all were skipped."""
    verdicts = {case.verdict for case in cases}
    if FAILED in verdicts or (task.judge is None and outcome.code != 0):
        return FAILED
    return SKIPPED if verdicts == {SKIPPED} else PASSED
