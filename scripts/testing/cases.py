"""Counts tests: each case of a GoogleTest program that left results, any other test as one."""

import xml.etree.ElementTree as xml
import pathlib

from testing.task import FAILED, PASSED, SKIPPED, Case

RESULTS_OPTION = "--gtest_output=xml:"


def results_file(command):
    """Where a GoogleTest command leaves its results; None for other commands."""
    for word in command:
        if word.startswith(RESULTS_OPTION):
            return pathlib.Path(word.removeprefix(RESULTS_OPTION))
    return None


def gtest_cases(test, path):
    """None if the results are missing or incomplete."""
    try:
        cases = list(xml.parse(path).iter("testcase"))
    except (OSError, xml.ParseError):
        return None
    return [Case(_verdict(case), f"{test}: {case.get('classname')}.{case.get('name')}")
            for case in cases]


def _verdict(case):
    if case.find("failure") is not None:
        return FAILED
    # A case that is disabled by its name counts as skipped.
    return PASSED if case.get("result") == "completed" else SKIPPED


def judge_ctest(test, command, skip_code):
    """The judge of a ctest; `test` is its name."""
    path = results_file(command)

    def judge(_, outcome):
        cases = gtest_cases(test, path) if path else None
        if skip_code is not None and outcome.code == skip_code:
            return (cases or []) + [Case(SKIPPED, test)]
        # It may have died after its last case: a leak, a sanitizer's finding, a time-out.
        if outcome.code != 0 and not any(case.verdict == FAILED for case in cases or []):
            return (cases or []) + [Case(FAILED, f"{test}: {outcome.reason()}")]
        return [Case(PASSED, test)] if cases is None else cases

    return judge
