"""The tests that CMake declares in a build folder."""

import dataclasses
import json
import pathlib
import re
import subprocess

ADD_TEST = re.compile(r'^add_test\(\[=\[(.*?)\]=\]((?: "(?:[^"\\]|\\.)*")+)\)$', re.MULTILINE)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclasses.dataclass
class Test:
    name: str
    command: list[str]
    properties: dict

    def labels(self):
        return self.properties.get("LABELS", [])

    def environment(self):
        return dict(line.split("=", 1) for line in self.properties.get("ENVIRONMENT", []))


def read_tests(build):
    """By name."""
    shown = subprocess.run(["ctest", "--show-only=json-v1", "--test-dir", build], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    commands = None
    tests = {}
    for entry in json.loads(shown)["tests"]:
        command = entry.get("command")
        if not command:
            # ctest leaves out the command of an executable that is not built yet.
            commands = commands or _commands(pathlib.Path(build))
            command = commands[entry["name"]]
        properties = {each["name"]: each["value"] for each in entry.get("properties", [])}
        tests[entry["name"]] = Test(entry["name"], command, properties)
    return tests


def _commands(build):
    commands = {}
    for path in build.rglob("CTestTestfile.cmake"):
        for name, words in ADD_TEST.findall(path.read_text()):
            commands[name] = [re.sub(r"\\(.)", r"\1", word) for word in QUOTED.findall(words)]
    return commands


def with_fixtures(chosen, tests):
    """The chosen names, and those of the fixtures that they require."""
    chosen = list(chosen)
    for name in chosen:
        chosen += [other for other in prerequisites(tests[name], tests) if other not in chosen]
    return chosen


def prerequisites(test, tests):
    """The names of the fixtures that a test requires."""
    wanted = set(test.properties.get("FIXTURES_REQUIRED", []))
    return [other.name for other in tests.values()
            if wanted & set(other.properties.get("FIXTURES_SETUP", []))]
