"""What a test can see, as a hash that does not depend on where the checkout is.

Executables are represented by what they are made from: their sources, headers and commands, as ninja
knows them. The executables themselves hold absolute paths."""

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
# What executables of tests use without being given its name: servers that they start, and what the
# program finds by itself.
SUPPORT = ("tests/support/", "tests/data/", "examples/", "scripts/third_party.txt")
NAMED_BY_MACRO = re.compile(r'-D\w+=\\?"?\./([^"\\\s]+)')
# Written by the runner.
OWN_FILES = ("tests/flaky.txt", "tests/cost.txt")
SEEN_VARIABLES = ("MUSTER_", "GTEST_", "ASAN_", "UBSAN_", "TSAN_", "CHROMIUM")


class Unknown(Exception):
    """What a test is made from cannot be told."""


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class Inputs:
    """One run's view of a checkout. Files are hashed once."""

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
        """What git tracks or would; None: this is no checkout."""
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], cwd=self.root, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if listed.returncode != 0:
            return None
        return sorted(name for name in set(listed.stdout.split("\0")) - {"", *OWN_FILES}
                      if (self.root / name).is_file())

    def can_be_trusted(self):
        """Not if a file was changed while the run went on: what was built or run saw which of both?"""
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
        """What remembers a pass of the task. None: nothing can."""
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
        # It was given the checkout, in which it can look at anything.
        if str(self.root) in task.command:
            about["everything"] = self._part("everything", self._everything)
        if "fixtures" in json.dumps([about["command"], self.environment]) or any(
                self._names_fixtures(task.preset, target) for target in task.targets):
            about["fixtures"] = self._part("fixtures", self._fixtures)
        return digest(about)

    def code_key(self, name):
        """Of a check that looks at the text of all C++ files, and how it is set up."""
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
        """The files that a test's command and the macros of its executables name, with what all use."""
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
        """All packages: fewer runs would be saved by knowing which ones count than errors made."""
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
        """The objects that targets consist of, each with a hash of what it is compiled from."""
        names = {name for name in self._ninja(preset, "inputs", *targets).splitlines()
                 if name.endswith(COMPILED)}
        return {name: self._version(preset, name) for name in names}

    def _version(self, preset, name):
        try:
            return self.object_key(preset, name)[:16]
        except Unknown:
            return ""

    def object_key(self, preset, name):
        """Of what an object is compiled from, its commands aside."""
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
        """All that is compiled, included, embedded or linked into a target and is not made itself."""
        found = set()
        for name in self._ninja(preset, "inputs", target).splitlines():
            found.add(name)
            found.update(self._headers(preset, name))
        return self._only_sources(preset, found)

    def _only_sources(self, preset, names):
        return sorted(set(filter(None, (self._source(preset, name) for name in names))))

    def _source(self, preset, name):
        """Its name from the root, or None for what a build made and what packages bring."""
        # ccache makes names relative to the build folder.
        name = os.path.normpath(self.root / "build" / preset / name)
        if not name.startswith(f"{self.root}/"):
            return None
        name = name.removeprefix(f"{self.root}/")
        is_ours = name in self._part("set", lambda: set(self.files))
        return name if is_ours or name.startswith("build/third_party/") else None

    def _headers(self, preset, item):
        """As the compiler has told ninja."""
        known = self.dependencies.get(preset, {})
        if item.endswith(COMPILED) and item not in known:
            # Built since they were read.
            known = self.dependencies[preset] = read_dependencies(self._ninja(preset, "deps"))
            if item not in known:
                raise Unknown(item)
        return known.get(item, [])


def read_dependencies(text):
    """The output of `ninja -t deps`: blocks of an object and, indented, what it includes."""
    dependencies, headers = {}, []
    for line in text.splitlines():
        if line.startswith("    "):
            # Of the system's headers there are hundreds for each object; packages stand for them.
            if not line.startswith("    /usr/"):
                headers.append(line[4:])
        elif ": #deps" in line:
            headers = dependencies[line.partition(": #deps")[0]] = []
    return dependencies
