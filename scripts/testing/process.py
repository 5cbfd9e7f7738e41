"""A process of a task, in a session of its own: it can be killed or paused together with its children.

A session rather than a group, since ninja puts each compiler into a group of its own. Servers that tests
start have their own sessions, and a janitor that ends them after the test."""

import os
import pathlib
import signal
import subprocess
import time

from testing.task import Outcome

GRACE_SECONDS = 3


def session_members(session):
    """The processes of a session, each with whether it is stopped."""
    members = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The program's name, in parentheses, may contain anything.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            members.append((int(entry.name), fields[0] == "T"))
    return members


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Process:
    def __init__(self, task, output, environment, timeout_factor=1):
        output.parent.mkdir(parents=True, exist_ok=True)
        self.task = task
        self.output = output
        self.timed_out = False
        self.killed_at = None
        self.paused = []
        self.started = time.monotonic()
        self.deadline = self.started + task.timeout * timeout_factor if task.timeout else None
        with open(output, "wb") as file:
            self.popen = subprocess.Popen(task.command, cwd=task.cwd, env=environment,
                                          stdin=subprocess.DEVNULL, stdout=file,
                                          stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = self.popen.pid
        self.fd = os.pidfd_open(self.pid)

    def seconds(self):
        return time.monotonic() - self.started

    def enforce_deadline(self, now):
        """Sends SIGTERM when its time is up, so that scripts can clean up, and SIGKILL a little later."""
        if self.killed_at is None and self.deadline is not None and now >= self.deadline:
            self.timed_out = True
            self.end(signal.SIGTERM, now)
        elif self.killed_at is not None and now >= self.killed_at + GRACE_SECONDS:
            self.end(signal.SIGKILL, now)

    def end(self, number, now):
        self.killed_at = now
        for pid, _ in session_members(self.pid):
            send(pid, number)
            send(pid, signal.SIGCONT)

    def next_deadline(self):
        return self.deadline if self.killed_at is None else self.killed_at + GRACE_SECONDS

    def pause(self):
        """A process that the test itself has stopped stays stopped."""
        running = [pid for pid, stopped in session_members(self.pid) if not stopped]
        for pid in running:
            send(pid, signal.SIGSTOP)
        self.paused += running

    def resume(self):
        for pid in self.paused:
            send(pid, signal.SIGCONT)
        self.paused = []

    def reap(self):
        """Call it once the process has ended. Kills what is left in its session."""
        seconds = self.seconds()
        deadline = time.monotonic() + GRACE_SECONDS
        while (left := session_members(self.pid)) and time.monotonic() < deadline:
            for pid, _ in left:
                send(pid, signal.SIGKILL)
            time.sleep(0.01)
        _, status, usage = os.wait4(self.pid, 0)
        os.close(self.fd)
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        return Outcome(self.popen.returncode, seconds, usage.ru_utime + usage.ru_stime,
                       self.timed_out, self.output)


def kill_all(processes):
    """Ends all: first by SIGTERM, then by SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            process.end(number, time.monotonic())
        deadline = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < deadline and any(session_members(p.pid) for p in processes):
            time.sleep(0.05)
    for process in processes:
        process.popen.poll()
