"""plan_prefect.py TASKS: milliseconds that Prefect takes for a task that does nothing, as JSON, by the shape of the flow:
{"ranked": ten and then ten at a time, "wide": all at once, "chain": one after another}. Each has "returned", until the flow
has returned, and "stored", until the server says that all tasks are completed, for the flow does not wait for that; medians
of three flows, on a server of its own that has run a flow before."""

import json
import os
import statistics
import sys
import tempfile
import time

home = tempfile.TemporaryDirectory()
os.environ.update(PREFECT_HOME=home.name, PREFECT_LOGGING_LEVEL="CRITICAL", PREFECT_LOGGING_TO_API_ENABLED="false",
                  PREFECT_SERVER_ANALYTICS_ENABLED="false", DO_NOT_TRACK="1")
import httpx  # noqa: E402
from prefect import flow, runtime, task  # noqa: E402
from prefect.settings import PREFECT_API_URL  # noqa: E402
from prefect.testing.utilities import prefect_test_harness  # noqa: E402

PHASE = 10
PATIENCE_S = 120


@task
def nothing():
    return 1


def at_once(count):
    for future in [nothing.submit() for _ in range(count)]:
        future.result()


@flow
def ranked(count):
    for begun in range(0, count, PHASE):
        at_once(min(PHASE, count - begun))
    return runtime.flow_run.id


@flow
def wide(count):
    at_once(count)
    return runtime.flow_run.id


@flow
def chain(count):
    for _ in range(count):
        nothing()
    return runtime.flow_run.id


def completed(run):
    answer = httpx.post(PREFECT_API_URL.value() + "/task_runs/count", json={
        "flow_runs": {"id": {"any_": [str(run)]}}, "task_runs": {"state": {"type": {"any_": ["COMPLETED"]}}}})
    answer.raise_for_status()
    return answer.json()


def measure(run, count):
    returned, stored = [], []
    for _ in range(3):
        start = time.perf_counter()
        begun = run(count)
        returned.append((time.perf_counter() - start) * 1000 / count)
        while completed(begun) < count:
            if time.perf_counter() - start > PATIENCE_S:
                sys.exit(f"Prefect's server has {completed(begun)} of {count} tasks after {PATIENCE_S} s")
            time.sleep(0.02)
        stored.append((time.perf_counter() - start) * 1000 / count)
    return {"returned": statistics.median(returned), "stored": statistics.median(stored)}


with prefect_test_harness(server_startup_timeout=120):
    wide(1)
    tasks = int(sys.argv[1])
    result = {run.name: measure(run, tasks) for run in (ranked, wide, chain)}
print(json.dumps(result))
