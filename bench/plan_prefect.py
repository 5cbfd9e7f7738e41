"""plan_prefect.py TASKS: milliseconds that Prefect takes for a task that does nothing, as JSON: {"chain": one after another,
"wide": all at once}. Each is the median of three flows, on a server of its own that has run a flow before."""

import json
import os
import statistics
import sys
import tempfile
import time

home = tempfile.TemporaryDirectory()
os.environ.update(PREFECT_HOME=home.name, PREFECT_LOGGING_LEVEL="CRITICAL", PREFECT_LOGGING_TO_API_ENABLED="false",
                  PREFECT_SERVER_ANALYTICS_ENABLED="false", DO_NOT_TRACK="1")
from prefect import flow, task  # noqa: E402
from prefect.testing.utilities import prefect_test_harness  # noqa: E402


@task
def nothing():
    return 1


@flow
def chain(count):
    for _ in range(count):
        nothing()


@flow
def wide(count):
    for future in [nothing.submit() for _ in range(count)]:
        future.result()


def measure(run, count):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run(count)
        times.append((time.perf_counter() - start) * 1000 / count)
    return statistics.median(times)


with prefect_test_harness(server_startup_timeout=120):
    chain(1)
    wide(1)
    tasks = int(sys.argv[1])
    result = {"chain": measure(chain, tasks), "wide": measure(wide, tasks)}
print(json.dumps(result))
