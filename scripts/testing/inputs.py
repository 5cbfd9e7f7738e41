"""A hash of a test's inputs, independent of the checkout's location.

Executables contain absolute paths, so they are represented by their sources, headers and commands, as ninja
knows them."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import time

CODE = (".h", ".cc")
COMPILED = (".o", ".gch")
DATA_FOLDERS = ("tests/", "examples/", "scripts/", "cmake/", "web/")
# Files that test executables use although no argument names them: servers that they start, and files that
# the program finds by itself.
SUPPORT = ("tests/support/", "tests/data/", "examples/", "scripts/third_party.txt")
NAMED_BY_MACRO = re.compile(r'-D\w+=\\?"?\./([^"\\\s]+)')
# Written by the runner.
OWN_FILES = ("tests/flaky.txt", "tests/cost.txt")
SEEN_VARIABLES = ("MUSTER_", "GTEST_", "ASAN_", "UBSAN_", "TSAN_", "CHROMIUM")


class Unknown(Exception):
    """The sources of a test are not known."""


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class Inputs:
    """A run's view of the checkout. Each file is hashed once."""

    def __init__(self, root):
        self.root = root
        self.began = time.time()
        self.hashes = {}
        self.dependencies = {}
        self.environment = {name: value for name, value in os.environ.items()
                            if name.startswith(SEEN_VARIABLES)}
        self.files = self._list_files()
        self.states = {name: self._state(name) for name in self.files or []}
        self.is_trusted = self.files is not None
        self.looked = 0
        self.parts = {}

    def _list_files(self):
        """Files that git tracks or would track; None if this is not a checkout."""
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], cwd=self.root, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if listed.returncode != 0:
            return None
        return sorted(name for name in set(listed.stdout.split("\0")) - {"", *OWN_FILES}
                      if (self.root / name).is_file())

    def can_be_trusted(self):
        """False once a file has changed during the run: a build or test may have seen either version."""
        if self.is_trusted and time.monotonic() > self.looked + 1:
            self.is_trusted = all(self._state(name) == state for name, state in self.states.items())
            self.looked = time.monotonic()
        return self.is_trusted

    def _state(self, name):
        try:
            found = os.stat(self.root / name)
            return found.st_mtime_ns, found.st_size
        except FileNotFoundError:
            return None

    def key(self, task, labels=()):
        """The key under which a pass of the task is remembered; None if it cannot be."""
        if not self.can_be_trusted():
            return None
        about = {
            "task": [task.name, task.timeout, self.relative(str(task.cwd))],
            "command": [self.relative(word) for word in task.command],
            "environment": [task.environment, self.environment],
            "versions": self.versions(),
        }
        try:
            about["built"] = [self.built(task.preset, target) for target in sorted(task.targets)]
        except Unknown:
            return None
        if set(labels) & {"unit", "contract", "sim"} and task.targets:
            about["data"] = self.hash_of(self._named_data(task))
        else:
            about["data"] = self._part("data", self._data)
        if "e2e" in labels:
            about["documents"] = self._part("documents", self._documents)
        # A test that is given the checkout can read all of it.
        if str(self.root) in task.command:
            about["everything"] = self._part("everything", self._everything)
        if "fixtures" in json.dumps([about["command"], self.environment]) or any(
                self._names_fixtures(task.preset, target) for target in task.targets):
            about["fixtures"] = self._part("fixtures", self._fixtures)
        return digest(about)

    def code_key(self, name):
        """The key of a check that reads all C++ files and its own configuration."""
        if not self.can_be_trusted():
            return None
        return digest([name, self.versions(), self.hash_of(
            file for file in self.files if file.endswith(CODE) or file.startswith(".clang"))])

    def relative(self, text):
        return text.replace(str(self.root), ".")

    def hash_of(self, names):
        return digest([[name, self._hash(name)] for name in names])

    def _hash(self, name):
        if name not in self.hashes:
            path = self.root / name
            self.hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        return self.hashes[name]

    def _part(self, name, make):
        if name not in self.parts:
            self.parts[name] = make()
        return self.parts[name]

    def _data(self):
        return self.hash_of(name for name in self.files
                            if name.startswith(DATA_FOLDERS) and not name.endswith(CODE))

    def _named_data(self, task):
        """Files named by a test's command or by macros of its executables, and those that all tests use."""
        named = {self.relative(word).removeprefix("./") for word in task.command}
        for target in task.targets:
            for command in self._commands(task.preset, target):
                named.update(NAMED_BY_MACRO.findall(command))
        folders = tuple(f"{name.rstrip('/')}/" for name in named) + SUPPORT
        return [name for name in self.files
                if not name.endswith(CODE) and (name in named or name.startswith(folders))]

    def _documents(self):
        return self.hash_of(name for name in self.files
                            if not name.startswith(DATA_FOLDERS) and not name.endswith(CODE))

    def _everything(self):
        return self.hash_of(self.files)

    def versions(self):
        return self._part("versions", self._versions)

    def _versions(self):
        """All packages: guessing which ones matter would save few runs and cause errors."""
        packages = subprocess.run(["dpkg-query", "-W"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True).stdout
        return digest([packages, os.uname().machine])

    def _fixtures(self):
        folder = pathlib.Path(os.environ.get("MUSTER_FIXTURES", self.root / "../shared/fixtures"))
        return digest(sorted([str(path.relative_to(folder)), path.stat().st_size]
                             for path in folder.rglob("*") if path.is_file()))

    # What ninja knows.

    def built(self, preset, target):
        return self._part(f"built {preset} {target}", lambda: digest([
            self._commands(preset, target), self.hash_of(self._sources(preset, target))]))

    def objects(self, preset, targets):
        """The objects of the targets, each with a hash of its sources."""
        names = {name for name in self._ninja(preset, "inputs", *targets).splitlines()
                 if name.endswith(COMPILED)}
        return {name: self._version(preset, name) for name in names}

    def _version(self, preset, name):
        try:
            return self.object_key(preset, name)[:16]
        except Unknown:
            return ""

    def object_key(self, preset, name):
        """A hash of the sources of an object, without its command."""
        return self.hash_of(self._only_sources(preset, self._headers(preset, name)))

    def _ninja(self, preset, *arguments):
        return subprocess.run(["ninja", "-C", self.root / "build" / preset, "--quiet", "-t",
                               *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout

    def _commands(self, preset, target):
        return self._part(f"commands {preset} {target}", lambda: sorted(
            self.relative(self._ninja(preset, "commands", target)).splitlines()))

    def _names_fixtures(self, preset, target):
        return any("fixtures" in command for command in self._commands(preset, target))

    def _sources(self, preset, target):
        """All files that are compiled, included, embedded or linked into a target, without generated ones."""
        found = set()
        for name in self._ninja(preset, "inputs", target).splitlines():
            found.add(name)
            found.update(self._headers(preset, name))
        return self._only_sources(preset, found)

    def _only_sources(self, preset, names):
        return sorted(set(filter(None, (self._source(preset, name) for name in names))))

    def _source(self, preset, name):
        """Its name from the root; None for generated files and those of packages."""
        # ccache makes names relative to the build folder.
        name = os.path.normpath(self.root / "build" / preset / name)
        if not name.startswith(f"{self.root}/"):
            return None
        name = name.removeprefix(f"{self.root}/")
        is_ours = name in self._part("set", lambda: set(self.files))
        return name if is_ours or name.startswith("build/third_party/") else None

    def _headers(self, preset, item):
        """As recorded by ninja."""
        known = self.dependencies.get(preset, {})
        if item.endswith(COMPILED) and item not in known:
            # It was built since.
            known = self.dependencies[preset] = read_dependencies(self._ninja(preset, "deps"))
            if item not in known:
                raise Unknown(item)
        return known.get(item, [])


def read_dependencies(text):
    """The output of `ninja -t deps`: blocks of an object and, indented, what it includes."""
    dependencies, headers = {}, []
    for line in text.splitlines():
        if line.startswith("    "):
            # The versions of packages stand for the hundreds of system headers.
            if not line.startswith("    /usr/"):
                headers.append(line[4:])
        elif ": #deps" in line:
            headers = dependencies[line.partition(": #deps")[0]] = []
    return dependencies
