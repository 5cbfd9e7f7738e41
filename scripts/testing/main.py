"""./muster test [--again] [--jobs N] [--stress N] [SUITE...]"""

import argparse
import os
import pathlib
import shutil
import signal
import sys

from testing import report, suites
from testing.inputs import Inputs
from testing.memory import Durations, Memory, cache_folder
from testing.progress import Progress
from testing.scheduler import SLOTS_PER_CORE, Scheduler

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./muster test", allow_abbrev=False,
        description="Builds and runs test suites: all of " + " ".join(suites.DEFAULT)
        + " unless some are named; on request: " + " ".join(suites.ON_REQUEST) + ".")
    parser.add_argument("--again", action="store_true",
                        help="also run what is remembered to have passed")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="cores to use (default: all)")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs is at least 1")
    for suite in options.suites:
        if suite not in suites.DEFAULT + suites.ON_REQUEST:
            print(f"muster: no test suite '{suite}': there are {' '.join(suites.DEFAULT)}, and "
                  f"{' '.join(suites.ON_REQUEST)} on request", file=sys.stderr)
            sys.exit(2)
    options.suites = list(dict.fromkeys(options.suites)) or suites.DEFAULT
    return options


def run(options):
    is_ci = os.environ.get("CI") == "true"
    site = suites.Site(ROOT, options.jobs, options.jobs * SLOTS_PER_CORE)
    inputs = Inputs(ROOT)
    memory = Memory(cache_folder(), inputs.can_be_trusted, options.again)
    durations = Durations(cache_folder())
    plan = suites.Plan(site, options.suites, inputs)
    tasks = list(plan.tasks.values())
    outputs = ROOT / "build/test-output"
    shutil.rmtree(outputs, ignore_errors=True)
    progress = Progress(tasks, site.slots, durations.expected)
    records = Scheduler(tasks, site.slots, outputs, progress, durations.expected, memory).run()
    progress.clear()
    durations.update(records)
    memory.prune()
    report.report_flaky(records, ROOT / "tests/flaky.txt", is_ci)
    return report.print_report(options.suites, records, plan.broken, is_ci)


def main(arguments):
    options = parse(arguments)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # Ends as with Ctrl-C: nothing that was started may go on.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    os.chdir(ROOT)
    try:
        return run(options)
    except KeyboardInterrupt:
        print("\nmuster: interrupted", file=sys.stderr)
        return 130
