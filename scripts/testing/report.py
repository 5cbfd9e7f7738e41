"""The end of a run: a table of the suites, the failed, skipped and flaky tests, and the sum."""

import collections
import datetime

from testing.cost import slowest_objects
from testing.suites import PRESETS
from testing.task import FAILED, PASSED, SKIPPED, Case


def cases_by_suite(records, more):
    """Includes the cases in `more`, and one failure for each suite that a broken build kept from running."""
    cases = collections.defaultdict(list)
    for suite, found in more.items():
        cases[suite] += found
    for record in records.values():
        suite = record.task.suite
        cases[suite] += record.cases
        if not record.blocked_by:
            continue
        if record.blocked_by.startswith("build "):
            failure = Case(FAILED, f"the {record.blocked_by.replace('build', 'build of', 1)}")
            cases[suite] += [failure] if failure not in cases[suite] else []
        else:
            cases[suite].append(Case(SKIPPED, f"{record.task.name}: needs {record.blocked_by}"))
    return cases


def count(cases, verdict):
    return sum(case.verdict == verdict for case in cases)


def print_report(suites, records, more, is_ci):
    """The exit code."""
    cases = cases_by_suite(records, more)
    print(f"\n{'suite':10} {'tests':>7} {PASSED:>7} {FAILED:>7} {SKIPPED:>8} {'remembered':>11} "
          f"{'seconds':>9} {'processor':>10}")
    for suite in suites:
        mine = [record for record in records.values() if record.task.suite == suite]
        remembered = sum(len(record.cases) for record in mine if record.remembered)
        outcomes = [record.outcome for record in mine if record.outcome]
        seconds = sum(outcome.seconds for outcome in outcomes)
        print(f"{suite:10} {len(cases[suite]):7} {count(cases[suite], PASSED):7} "
              f"{count(cases[suite], FAILED):7} {count(cases[suite], SKIPPED):8} {remembered:11} "
              f"{seconds:9.1f} {processor_seconds(mine):10.1f}")
    print()
    for suite in suites:
        for case in cases[suite]:
            if case.verdict != PASSED:
                print(f"{case.verdict.upper()} {suite}: {case.name}")
    everything = [case for suite in suites for case in cases[suite]]
    failed, skipped = count(everything, FAILED), count(everything, SKIPPED)
    if is_ci and skipped:
        print("CI=true: skipped tests fail the run")
    print(f"{count(everything, PASSED)} passed, {failed} failed"
          + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or (is_ci and skipped) else 0


def processor_seconds(records):
    return sum(record.outcome.processor_seconds for record in records if record.outcome)


def print_duration(records, seconds):
    """The line to compare with the limits of a run."""
    builds = processor_seconds(record for record in records.values() if record.task.is_build)
    tests = processor_seconds(record for record in records.values() if not record.task.is_build)
    print(f"the run took {seconds / 60:.1f} minutes, and {(builds + tests) / 60:.1f} processor-minutes: "
          f"{builds / 60:.1f} for builds, {tests / 60:.1f} for tests and checks (without shared servers)")


def flaky_lines(records):
    today = datetime.date.today().isoformat()
    lines = []
    for record in records.values():
        task = record.task
        test = task.name.removeprefix(f"{task.preset}/")
        for case in record.flaky:
            # A script has no cases, only a reason for its failure.
            name = case.name.removeprefix(f"{test}: ")
            name = name if " " not in name and name != test else "-"
            lines.append(f"{today} {task.preset or '-'} {test} {name}")
    return lines


def report_flaky(records, path, is_ci):
    """Lists flaky tests and appends them to the list in the checkout; CI, whose checkout is discarded,
    only prints them."""
    lines = flaky_lines(records)
    if not lines:
        return
    print("\nflaky: failed, and passed when run again alone")
    for record in records.values():
        if record.flaky:
            again = record.outcome.output
            print(f"  {record.task.name}: {again.with_name(again.name.replace('.again', ''))}, {again}")
    if is_ci:
        print(f"lines to add to tests/{path.name}:")
    else:
        with open(path, "a") as file:
            file.writelines(line + "\n" for line in lines)
        print(f"added to tests/{path.name}:")
    print("\n".join(lines))


def print_seeds(records):
    """The random seeds of this run: the next one draws others."""
    for record in records.values():
        if record.outcome and record.task.name.endswith("/sim_fresh"):
            lines = [line for line in record.outcome.text().splitlines() if " seeds from " in line]
            print("\n".join(["fresh seeds:"] + [f"  {line}" for line in lines]))


def print_slowest(records, root, began):
    """Where the time went."""
    for build in (record for record in records.values() if record.task.is_build and record.outcome):
        print(f"{build.task.name}: {build.outcome.seconds:.0f} s, processor "
              f"{build.outcome.processor_seconds:.0f} s")
    objects = [(seconds, f"{preset} {name}") for preset in PRESETS for seconds, name in
               slowest_objects(root / "build" / preset / ".ninja_log", began)]
    ran = [record for record in records.values() if record.outcome and not record.task.is_build]
    tests = [(record.outcome.seconds, record.task.name) for record in ran]
    heavy = [(record.outcome.processor_seconds, record.task.name) for record in ran]
    for what, found in (("objects", objects), ("tests", tests), ("tests by processor time", heavy)):
        if found:
            print(f"slowest {what}:")
        for seconds, name in sorted(found, reverse=True)[:10]:
            print(f"  {seconds:7.1f} s  {name}")
