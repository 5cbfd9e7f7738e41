"""Counts tests: GoogleTest's cases where an executable left its results, else the test as one."""

import xml.etree.ElementTree as xml
import pathlib

from testing.task import FAILED, PASSED, SKIPPED, Case

RESULTS_OPTION = "--gtest_output=xml:"


def results_file(command):
    """Where a GoogleTest command leaves its results; None: it is none."""
    for word in command:
        if word.startswith(RESULTS_OPTION):
            return pathlib.Path(word.removeprefix(RESULTS_OPTION))
    return None


def gtest_cases(test, path):
    """None: there are no results, or only half of them."""
    try:
        cases = list(xml.parse(path).iter("testcase"))
    except (OSError, xml.ParseError):
        return None
    return [Case(_verdict(case), f"{test}: {case.get('classname')}.{case.get('name')}")
            for case in cases]


def _verdict(case):
    if case.find("failure") is not None:
        return FAILED
    # Also disabled by its name is not passed.
    return PASSED if case.get("result") == "completed" else SKIPPED


def judge_ctest(test, command, skip_code):
    """How a ctest is judged; `test` is its name."""
    path = results_file(command)

    def judge(_, outcome):
        cases = gtest_cases(test, path) if path else None
        if skip_code is not None and outcome.code == skip_code:
            return (cases or []) + [Case(SKIPPED, test)]
        # It may have passed all its cases and died after them: of a leak, a sanitizer, a time-out.
        if outcome.code != 0 and not any(case.verdict == FAILED for case in cases or []):
            return (cases or []) + [Case(FAILED, f"{test}: {outcome.reason()}")]
        return [Case(PASSED, test)] if cases is None else cases

    return judge
