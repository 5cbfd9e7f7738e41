"""The tasks of each suite."""

import dataclasses
import pathlib
import re
import subprocess

from testing import ctest
from testing.cases import judge_ctest, results_file
from testing.inputs import digest
from testing.task import FAILED, PASSED, Case, Task

DEFAULT = ["lint", "unit", "contract", "sim", "e2e", "fuzz", "web", "asan", "tsan", "hashes"]
ON_REQUEST = ["quick", "versions"]

# Suites declared in CMake: the build that each runs in, and the labels of its tests.
IN_CMAKE = {
    "quick": ("release", lambda labels: labels & {"unit", "contract"} and "slow" not in labels),
    "unit": ("release", lambda labels: "unit" in labels),
    "contract": ("release", lambda labels: "contract" in labels),
    "sim": ("release", lambda labels: "sim" in labels),
    "e2e": ("release", lambda labels: "e2e" in labels),
    "versions": ("release", lambda labels: "versions" in labels),
    "asan": ("asan", lambda labels: labels & {"unit", "contract"}),
    # Only tests that share memory among threads: ThreadSanitizer finds nothing in the others.
    "tsan": ("tsan", lambda labels: labels & {"unit", "contract"} and "threads" in labels),
}
PRESETS = ["release", "asan", "tsan"]
# Builds that suites outside CMake use.
USED_BUILDS = {"web": ["release"], "lint": ["release"], "hashes": ["release", "asan"]}

OTHER_SERVERS = ["opensearch-1.3.20", "opensearch-3.6.0", "elasticsearch-6.8.23", "elasticsearch-7.17.29",
                 "elasticsearch-8.19.21"]
CHECK_FORMAT = r"""find include src tests bench \( -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 -n 50 -P 2 clang-format-16 --dry-run -Werror"""
FUZZ_SECONDS = 15
SANITIZER_REPORT = re.compile(r"(ERROR|WARNING): (Address|Leak|Thread)Sanitizer|runtime error:")
TRACE_HASH = re.compile(r"^\d+ [0-9a-f]+$", re.MULTILINE)

RANK_BUILD, RANK_FIXTURE, RANK_EARLY, RANK_TEST = 0, 0.95, 1, 2


@dataclasses.dataclass
class Site:
    """The checkout, the number of jobs of a build, and the number of slots."""
    root: pathlib.Path
    jobs: int
    slots: int

    def build(self, preset):
        return self.root / "build" / preset

    def build_slots(self):
        """Half of them, so that tests, which mostly wait, run beside a build."""
        return max(1, self.slots // 2)


class Plan:
    """The tasks of the named suites. `broken` has the failures of suites that cannot be planned."""

    def __init__(self, site, suites, inputs, build_environment):
        self.site = site
        self.suites = suites
        self.inputs = inputs
        self.build_environment = build_environment
        self.tasks = {}
        self.broken = {}
        self.filled = set()
        self.tests = {}
        self._configure()
        self._choose()

    def _configure(self):
        """Configures all builds at once: CMake then knows which tests there are."""
        wanted = {IN_CMAKE[suite][0] for suite in self.suites if suite in IN_CMAKE}
        wanted |= {preset for suite in self.suites for preset in USED_BUILDS.get(suite, [])}
        (self.site.root / "build").mkdir(exist_ok=True)
        running = {}
        for preset in sorted(wanted, key=PRESETS.index):
            # The launcher builds in the same folder and takes the same lock.
            running[preset] = subprocess.Popen(
                ["flock", "--shared", "build/.lock", "cmake", "--preset", preset,
                 "--log-level=WARNING"],
                cwd=self.site.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for preset, process in running.items():
            output, _ = process.communicate()
            if process.returncode == 0:
                self.tests[preset] = ctest.read_tests(self.site.build(preset))
            else:
                print(output)

    def _choose(self):
        for suite in self.suites:
            lacking = [preset for preset in self._presets_of(suite) if preset not in self.tests]
            if lacking:
                self.broken[suite] = [Case(FAILED, f"the configuration of {preset}")
                                      for preset in lacking]
            elif suite in IN_CMAKE:
                self._add_ctests(suite)
            if not lacking:
                getattr(self, f"_add_{suite}", lambda: None)()
        for suite in set(self.suites) - self.filled - set(self.broken):
            self.broken[suite] = [Case(FAILED, f"{suite}: no test was run")]
        self._add_builds()

    def _presets_of(self, suite):
        return [IN_CMAKE[suite][0]] if suite in IN_CMAKE else USED_BUILDS.get(suite, [])

    def _add(self, task):
        """A task that two suites share is run once, for the first one."""
        self.filled.add(task.suite)
        return self.tasks.setdefault(task.name, task)

    def _remember(self, task, labels=()):
        task.key = lambda: self.inputs.key(task, labels)

    # Tests that CMake declares.

    def _add_ctests(self, suite):
        preset, is_chosen = IN_CMAKE[suite]
        tests = self.tests[preset]
        # A sanitizer cannot see into programs that are not built with it.
        chosen = [name for name, test in tests.items() if is_chosen(set(test.labels()))
                  and (preset == "release" or targets_of(test.command, self.site.build(preset)))]
        for name in ctest.with_fixtures(chosen, tests):
            task = self._add(self._ctest(suite, preset, tests[name]))
            # Fixtures are always set up, and `fresh` tests differ each time.
            if "FIXTURES_SETUP" not in tests[name].properties and "fresh" not in tests[name].labels():
                self._remember(task, tests[name].labels())

    def _ctest(self, suite, preset, test):
        properties = test.properties
        labels = set(test.labels())
        is_quick = IN_CMAKE["quick"][1](labels) and preset == "release"
        return Task(
            name=f"{preset}/{test.name}", suite=suite, preset=preset,
            command=launch_prefix(preset) + test.command,
            cwd=pathlib.Path(properties["WORKING_DIRECTORY"]),
            environment=test.environment(), results=results_file(test.command),
            judge=judge_ctest(test.name, test.command, properties.get("SKIP_RETURN_CODE")),
            slots=slots_of(preset, properties),
            timeout=properties.get("TIMEOUT"),
            targets=targets_of(test.command, self.site.build(preset)),
            after=[f"{preset}/{name}" for name in ctest.prerequisites(test, self.tests[preset])],
            locks=frozenset(properties.get("RESOURCE_LOCK", [])),
            alone=properties.get("RUN_SERIAL", False),
            uses_servers=bool(labels & {"unit", "contract", "e2e"}),
            awaits_servers=bool(labels & {"contract", "e2e"}),
            rank=rank_of(properties, is_quick), can_repeat=True,
            # The simulator is deterministic: a second run would find the same.
            may_retry=is_maybe_chance if "sim" not in labels else lambda outcome: False)

    # Builds.

    def _add_builds(self):
        """Builds release in two parts if that lets the quick tests start early."""
        for preset in PRESETS:
            users = [task for task in self.tasks.values() if task.preset == preset and task.targets]
            early = set().union(*(task.targets for task in users if task.rank == RANK_EARLY))
            whole = set().union(*(task.targets for task in users))
            parts = {f"build {preset}": {"all"} if "all" in whole else whole}
            # Tests of `serve` run the program.
            early |= whole & {"bin/muster"} if early else set()
            if early and whole - early:
                parts = {f"build {preset}, quick tests": early, **parts}
            for name, targets in parts.items():
                if targets:
                    self._add_build(name, preset, targets)
            for task in users:
                task.after.append(next(name for name, targets in parts.items()
                                       if task.targets <= targets or "all" in targets))

    def _add_build(self, name, preset, targets):
        # One after the other, in this order; a failed build does not keep the next from starting.
        rank = RANK_BUILD + sum(task.is_build for task in self.tasks.values()) / 10
        self._add(Task(
            name=name, preset=preset, is_build=True, rank=rank, cwd=self.site.root,
            command=["flock", "build/.lock", "ninja", "-C", f"build/{preset}", "-j",
                     str(self.site.jobs), *([] if targets == {"all"} else sorted(targets))],
            slots=self.site.build_slots(), locks=frozenset({"build"}),
            environment=self.build_environment, targets=targets))

    # Suites that CMake does not know.

    def _check(self, suite, name, command, **more):
        return self._add(Task(name=name, suite=suite, command=command, cwd=self.site.root,
                              judge=judge_exit_code(name), **more))

    def _add_format(self, suite):
        task = self._check(suite, "clang-format", ["bash", "-c", CHECK_FORMAT], slots=4,
                           rank=RANK_EARLY)
        task.key = lambda: self.inputs.code_key(task.name)

    def _add_quick(self):
        self._add_format("quick")

    def _add_lint(self):
        self._add_format("lint")
        # Remembers clean files itself.
        self._check("lint", "clang-tidy", ["scripts/tidy"], rank=RANK_EARLY,
                    slots=self.site.build_slots(), locks=frozenset({"build"}))
        self._remember(self._check("lint", "tsc and prettier", ["web/build", "--check"], slots=4))

    def _add_fuzz(self):
        """Its script makes the build, with clang."""
        self._add(Task(name="build fuzz", command=["tests/fuzz/fuzz", "--build"], is_build=True,
                       cwd=self.site.root, rank=RANK_BUILD + 0.9, slots=self.site.build_slots(),
                       locks=frozenset({"build"})))
        self._remember(self._check(
            "fuzz", "the decoders of src/lucene", ["tests/fuzz/fuzz", str(FUZZ_SECONDS)],
            slots=self.site.build_slots(), preset="fuzz", targets={"all"}, after=["build fuzz"]))

    def _add_web(self):
        cases = self.site.root / "build/web.cases"
        self._remember(self._add(Task(
            name="web", suite="web", cwd=self.site.root, slots=6,
            command=["tests/web/run", "--cases", str(cases)],
            judge=judge_listed_cases(cases), results=cases, preset="release", targets={"bin/muster"},
            may_retry=is_maybe_chance, can_repeat=True)))

    def _add_versions(self):
        fetch = "download of other servers"
        self._check("versions", fetch, ["scripts/fetch", *OTHER_SERVERS])
        for task in self.tasks.values():
            if task.suite == "versions" and task.name != fetch:
                task.after.append(fetch)

    def _add_hashes(self):
        """The simulator's traces must not depend on the build: a difference means undefined behaviour, or
        an input that does not come from the seed. The release build's traces are not remembered, since the
        others are compared with them."""
        outputs = {}
        for preset in ("release", "asan"):
            program = self.site.build(preset) / "bin/muster"
            self._add(Task(
                name=f"hashes {preset}", suite="hashes", preset=preset, slots=4, cwd=self.site.root,
                command=launch_prefix(preset) + [str(program), "sim", "--seeds", "1..20", "--hash"],
                judge=judge_hashes(preset, outputs), targets={"bin/muster"},
                after=["hashes release"] if preset == "asan" else []))
        compared = self.tasks["hashes asan"]
        compared.key = lambda: self.inputs.key(compared) and digest(
            [self.inputs.key(compared), self.inputs.built("release", "bin/muster")])


def launch_prefix(preset):
    """ThreadSanitizer's shadow memory collides with randomised addresses of more than 28 bits: turn
    randomisation off on such hosts."""
    bits = pathlib.Path("/proc/sys/vm/mmap_rnd_bits")
    if preset == "tsan" and bits.exists() and int(bits.read_text()) > 28:
        return ["setarch", "-R"]
    return []


def rank_of(properties, is_quick):
    """Fixtures first: building or fetching a server takes long, and other tests wait for it."""
    if "FIXTURES_SETUP" in properties:
        return RANK_FIXTURE
    return RANK_EARLY if is_quick else RANK_TEST


def slots_of(preset, properties):
    """Tests that mostly wait still need processor time under a sanitizer."""
    slots = int(properties.get("PROCESSORS", 1))
    return slots if preset == "release" else max(2, slots)


def targets_of(command, build):
    """The parts of a build that a test's command names; all of it where it names the folder."""
    inside = f"{build}/"
    targets = {word.removeprefix(inside) for word in command if word.startswith(inside + "bin/")}
    return {"all"} if str(build) in command else targets


def is_maybe_chance(outcome):
    """A sanitizer's finding stands, even if a second run passes."""
    return not SANITIZER_REPORT.search(outcome.text())


def judge_exit_code(name):
    def judge(_, outcome):
        return [Case(PASSED if outcome.code == 0 else FAILED, name)]
    return judge


def judge_listed_cases(path):
    """For a program that writes `VERDICT NAME` lines."""
    def judge(task, outcome):
        cases = []
        if path.exists():
            cases = [Case(*line.split(" ", 1)) for line in path.read_text().splitlines()]
        if not cases:
            return [Case(FAILED, f"{task.name}: no test was run")]
        if outcome.code != 0 and not any(case.verdict == FAILED for case in cases):
            cases.append(Case(FAILED, f"{task.name}: {outcome.reason()}"))
        return cases
    return judge


def judge_hashes(preset, outputs):
    def judge(_, outcome):
        # The output also has progress lines, which differ.
        outputs[preset] = TRACE_HASH.findall(outcome.text())
        if outcome.code != 0 or len(outputs[preset]) < 20:
            return [Case(FAILED, f"trace hashes of 20 seeds in the {preset} build")]
        if outputs[preset] != outputs["release"]:
            return [Case(FAILED, f"trace hashes of the {preset} build equal the release build's")]
        return [Case(PASSED, f"trace hashes of the {preset} build")]
    return judge
