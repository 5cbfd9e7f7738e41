"""./muster test [--again] [--jobs N] [--stress N] [SUITE...]"""

import argparse
import fcntl
import os
import pathlib
import shutil
import signal
import sys
import time

from testing import report, stress, suites
from testing.cost import Costs
from testing.inputs import Inputs
from testing.memory import Durations, Memory, cache_folder, prune
from testing.progress import Progress
from testing.scheduler import SLOTS_PER_CORE, Scheduler
from testing.servers import SharedServers
from testing.task import PASSED

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Without this, clang's sanitizers look only for llvm-symbolizer to find line numbers.
SYMBOLIZER = f"external_symbolizer_path={shutil.which('addr2line') or ''}"
ENVIRONMENT = {
    "ASAN_OPTIONS": f"detect_stack_use_after_return=1:{SYMBOLIZER}",
    "UBSAN_OPTIONS": f"print_stacktrace=1:{SYMBOLIZER}",
    "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:{SYMBOLIZER}",
}


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./muster test", allow_abbrev=False,
        description="Builds and runs test suites: all of " + " ".join(suites.DEFAULT)
        + " unless some are named; on request: " + " ".join(suites.ON_REQUEST) + ".")
    parser.add_argument("--again", action="store_true",
                        help="also run what is known to have passed; with --stress, count from 0")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="cores to use (default: all)")
    parser.add_argument("--stress", type=int, default=0, metavar="N",
                        help="run each test on a busy machine, paused at random, until it has passed N "
                        "times with the same inputs; continues an earlier campaign")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the pauses of --stress")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs is at least 1")
    for suite in options.suites:
        if suite not in suites.DEFAULT + suites.ON_REQUEST:
            print(f"muster: unknown test suite '{suite}': use {' '.join(suites.DEFAULT)}, or "
                  f"{' '.join(suites.ON_REQUEST)} on request", file=sys.stderr)
            sys.exit(2)
    default = stress.DEFAULT_SUITES if options.stress else suites.DEFAULT
    options.suites = list(dict.fromkeys(options.suites)) or default
    return options


def costed_builds(tasks):
    """The builds that tests/cost.txt has a line for: (name, preset, targets)."""
    builds = []
    for task in tasks:
        if task.preset == "release" and task.targets & {"all", "bin/muster"}:
            builds.append(("release.program", "release", {"bin/muster"}))
        if task.preset != "release" or "all" in task.targets:
            builds.append((task.preset, task.preset, task.targets))
    # Both parts of the release build contain the program.
    return list({name: (name, preset, targets) for name, preset, targets in builds}.values())


class Run:
    def __init__(self, options):
        self.options = options
        self.began = time.monotonic()
        self.is_ci = os.environ.get("CI") == "true"
        slots = options.jobs * SLOTS_PER_CORE
        self.inputs = Inputs(ROOT)
        self.costs = Costs(ROOT, cache_folder(), self.inputs.objects)
        self.durations = Durations(cache_folder())
        self.plan = suites.Plan(suites.Site(ROOT, options.jobs, slots), options.suites, self.inputs,
                                self.costs.environment())
        self.tasks = list(self.plan.tasks.values())
        self.outputs = ROOT / "build/test-output"
        self.progress = Progress(slots, self.durations.expected)
        self.servers = SharedServers(ROOT / "tests/support/shared_servers",
                                     self.outputs / "servers.txt", self.progress.say)

    def schedule(self, tasks, **more):
        shutil.rmtree(self.outputs, ignore_errors=True)
        self.progress.total = len(tasks)
        try:
            return Scheduler(tasks, self.progress.slots, self.outputs, self.progress,
                             self.durations.expected, servers=self.servers, **more).run()
        finally:
            self.progress.clear()
            self.servers.stop()

    def test(self):
        memory = Memory(cache_folder(), self.inputs.can_be_trusted, self.options.again)
        records = self.schedule(self.tasks, memory=memory)
        self.durations.update(records)
        prune(cache_folder())
        print()
        report.print_seeds(records)
        report.print_slowest(records, ROOT, self.inputs.began)
        report.print_duration(records, time.monotonic() - self.began)
        built = [record.task for record in records.values()
                 if record.task.preset in suites.PRESETS and record.task.is_build
                 and record.verdict == PASSED]
        self.costs.collect([(task.preset, task.targets) for task in built])
        costs = self.costs.judge(costed_builds(built))
        report.report_flaky(records, ROOT / "tests/flaky.txt", self.is_ci)
        return report.print_report(self.options.suites + (["build"] if costs else []), records,
                                   {**self.plan.broken, "build": costs}, self.is_ci)

    def stress(self):
        """Builds first: a busy machine would only slow them down."""
        built = self.schedule([task for task in self.tasks if task.is_build])
        if any(record.verdict != PASSED for record in built.values()):
            return 1
        seed = self.options.seed or stress.new_seed()
        campaign = stress.Campaign(cache_folder().parent / "stress", ROOT / f"build/stress/{seed}",
                                   self.options.stress, self.inputs.can_be_trusted, self.options.again)
        tests = campaign.tasks(self.tasks)
        print(f"stress: {stress.BUSY_LOOPS} busy loops, pauses by --seed {seed}")
        try:
            with stress.BusyMachine():
                self.schedule(tests, shaker=stress.Shaker(seed), memory=campaign,
                              timeout_factor=stress.TIMEOUT_FACTOR)
        finally:
            # Also of a campaign that is interrupted: the next one continues it.
            code = campaign.print_report()
            prune(campaign.folder)
        return code


def lock_checkout():
    """Two runs would delete each other's results. The lock is held while the file is open."""
    (ROOT / "build").mkdir(exist_ok=True)
    file = open(ROOT / "build/.test.lock", "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("muster: waiting for another test run of this checkout", file=sys.stderr)
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def main(arguments):
    options = parse(arguments)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # As with Ctrl-C: end everything that was started.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    os.chdir(ROOT)
    try:
        lock = lock_checkout()
        run = Run(options)
        return run.stress() if options.stress else run.test()
    except KeyboardInterrupt:
        print("\nmuster: interrupted", file=sys.stderr)
        return 130
