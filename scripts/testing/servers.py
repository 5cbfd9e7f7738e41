"""Servers that all tests of a run share, started by tests/support/shared_servers on first use."""

import json
import os
import pathlib
import selectors
import shutil
import signal
import subprocess
import tempfile
import time

KINDS = ["postgresql", "opensearch", "dynamodb"]
READY_SECONDS = 240
STOP_SECONDS = 20


class SharedServers:
    """If they cannot be started, each test starts its own, which only takes longer."""

    def __init__(self, program, log, say):
        self.program = program
        self.log = log
        self.say = say
        self.environment = {}
        self.process = None
        self.folder = None
        self.began = None
        self.is_settled = False

    def settled(self):
        """Whether they are ready or have failed. The first call starts them."""
        if self.began is None:
            self._start()
        return self.is_settled

    def _start(self):
        self.began = time.monotonic()
        if not self.program.exists():
            self._give_up(f"no {self.program.name}")
            return
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-servers-"))
        # The servers do not run as root, and need access.
        self.folder.chmod(0o755)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [self.program, "--folder", self.folder, *KINDS], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, start_new_session=True)

    def attend(self):
        """Call it regularly: it notices when they are ready, and when they have died."""
        if not self.process:
            return
        if not self.is_settled:
            with selectors.DefaultSelector() as selector:
                selector.register(self.process.stdout, selectors.EVENT_READ)
                if selector.select(0):
                    self._read()
                elif time.monotonic() > self.began + READY_SECONDS:
                    self._give_up(f"they were not ready within {READY_SECONDS} s")
        elif self.environment and self.process.poll() is not None:
            self._give_up(f"they ended with {self.process.returncode}")

    def _read(self):
        line = self.process.stdout.readline()
        try:
            self.environment = {name: str(value) for name, value
                                in json.loads(line)["environment"].items()}
            self.is_settled = True
            self.say(f"shared servers are ready after {time.monotonic() - self.began:.0f} s")
        except (ValueError, KeyError, TypeError):
            self._give_up(f"instead of an environment they said {line!r}")

    def _give_up(self, why):
        self.say(f"no shared servers ({why}; {self.log}): each test starts its own")
        self.environment = {}
        self.is_settled = True
        self.stop()

    def stop(self):
        if self.process:
            process, self.process = self.process, None
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
