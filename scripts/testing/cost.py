"""Compares the cost of compiling with tests/cost.txt, even if every object comes from ccache.

Each real compilation is timed; an object from ccache costs what it did when it was last compiled on this
machine. The unit is the processor time of compiling tests/cost/reference.cc with the same compiler, measured
alongside: how two compilers compare depends on the machine."""

import collections
import concurrent.futures
import os
import resource
import subprocess

from testing.memory import read, write
from testing.task import FAILED, PASSED, Case

LIMIT = 1.10
LEAST_KNOWN = 0.8
# With fewer new objects than this, the last calibration is used.
FEW_OBJECTS = 20
GCC, CLANG = ["g++", "-O1"], ["clang++-16", "-O0"]
COMPILERS = {"release": GCC, "asan": CLANG, "tsan": CLANG}
# Kept for each object, for branches that are worked on side by side.
MOST_VERSIONS = 6


class Costs:
    """`objects_of(preset, targets)` returns the objects of the targets, each with a hash of its sources."""

    def __init__(self, root, folder, objects_of):
        self.root = root
        self.path = folder / "costs-by-compiler.json"
        self.log = root / "build" / "compile.log"
        self.objects_of = objects_of
        self.grown = []

    def environment(self):
        self.log.parent.mkdir(exist_ok=True)
        return {"CCACHE_PREFIX": str(self.root / "scripts/testing/timed_compile"),
                "MUSTER_COMPILE_LOG": str(self.log)}

    def collect(self, builds):
        """Records what was compiled in this run, and in earlier ones that were interrupted; `builds` has
        (preset, targets)."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        if not lines:
            return
        kept = read(self.path, {"units": {}, "objects": {}})
        for preset, count in collections.Counter(line.split(" ", 1)[0] for line in lines).items():
            if preset not in kept["units"] or count > FEW_OBJECTS:
                kept["units"][preset] = self.calibrate(COMPILERS[preset])
        sources = {f"{preset} {name}": version for preset, targets in builds
                   for name, version in self.objects_of(preset, targets).items()}
        for line in lines:
            name, seconds = line.rsplit(" ", 1)
            version = sources.get(name, "")
            cost = round(float(seconds) / kept["units"][name.split(" ", 1)[0]], 3)
            versions = kept["objects"].setdefault(name, {})
            if versions:
                before = list(versions.values())[-1]
                self.grown.append((cost - before, name, before, cost))
            # The newest last.
            versions.pop(version, None)
            versions[version] = cost
            while len(versions) > MOST_VERSIONS:
                versions.pop(next(iter(versions)))
        write(self.path, kept)
        self.log.unlink()

    def calibrate(self, compiler):
        """The seconds of a unit, from two compilations side by side, as in a build."""
        command = [*compiler, "-std=c++20", "-c", self.root / "tests/cost/reference.cc", "-o", os.devnull]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: subprocess.run(command, check=True), range(2)))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 2

    def total(self, preset, targets):
        """The units, the number of objects, and the share of them whose cost is known."""
        known = read(self.path, {"objects": {}})["objects"]
        objects = self.objects_of(preset, targets)
        costs = []
        for name, version in objects.items():
            versions = known.get(f"{preset} {name}")
            if versions:
                # If only comments changed, ccache has the object, and its last cost still holds.
                costs.append(versions.get(version, list(versions.values())[-1]))
        if not costs:
            return 0, len(objects), 0
        # The others are assumed to cost as much on average.
        return sum(costs) / len(costs) * len(objects), len(objects), len(costs) / len(objects)

    def judge(self, builds):
        """Prints and judges the costs; `builds` has (name in cost.txt, preset, targets)."""
        limits = self._limits()
        cases = []
        for name, preset, targets in builds:
            units, objects, share = self.total(preset, targets)
            text = f"build cost of {name}: {units:.0f} units in {objects} objects"
            if share < LEAST_KNOWN:
                print(f"{text}, known for {share:.0%} of them: not judged")
                continue
            cases.append(self._compare(name, units, text, limits))
            if name == "release":
                cases.append(self._compare("objects", objects, f"release has {objects} objects", limits))
        if any(case and case.verdict == FAILED for case in cases):
            self._print_grown()
        return [case for case in cases if case]

    def _limits(self):
        path = self.root / "tests/cost.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return {name: float(value) for name, value in
                (line.split()[:2] for line in lines if line.strip() and not line.startswith("#"))}

    def _compare(self, name, value, text, limits):
        if name not in limits:
            print(f"{text}; tests/cost.txt has no line for it")
            return None
        text += f", tests/cost.txt says {limits[name]:.0f}"
        if value > limits[name] * LIMIT:
            print(f"{text}: more than 10 % above the limit")
            return Case(FAILED, text)
        if value < limits[name] / LIMIT:
            text += ": the limit can be lowered"
        print(text)
        return Case(PASSED, f"build cost of {name}")

    def _print_grown(self):
        print("grown most since they were last compiled, in units:")
        for growth, name, before, cost in sorted(self.grown, reverse=True)[:10]:
            print(f"  {growth:+7.2f}  {before:6.2f} -> {cost:6.2f}  {name}")


def slowest_objects(log, since):
    """The ten outputs of a build that took longest, by .ninja_log, of those made since then."""
    made = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        fields = line.split("\t")
        if len(fields) == 5 and fields[3].endswith((".o", ".gch")) and int(fields[2]) / 1e9 >= since:
            made[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return sorted(((seconds, name) for name, seconds in made.items()), reverse=True)[:10]
