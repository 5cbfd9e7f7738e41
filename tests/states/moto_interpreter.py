"""Runs state machines on moto's interpreter, an independent implementation, for comparison."""

import json
import logging
import sys
import time


def load(folder):
    """Makes moto's packages importable."""
    sys.path.insert(0, folder)
    logging.disable(logging.CRITICAL)


class _Ended:
    def terminated(self):
        pass


def _mocks(mocks):
    from moto.stepfunctions.parser.mocking import mock_config as mocking

    states = []
    for state, answers in mocks.items():
        responses = []
        for index, answer in answers.items():
            first, _, last = index.partition("-")
            span = int(first), int(last or first)
            if "Return" in answer:
                responses.append(mocking.MockedResponseReturn(*span, answer["Return"]))
            else:
                throw = answer["Throw"]
                responses.append(mocking.MockedResponseThrow(*span, throw["Error"], throw["Cause"]))
        states.append(mocking.StateMockedResponses(state, state, responses))
    return mocking.MockTestCase("machine", "case", states)


def run(definition, machine_input, mocks=None):
    """The result, in the format of `muster states run --json`, without events and causes."""
    from moto.stepfunctions.parser.api import StateMachineType
    from moto.stepfunctions.parser.asl.eval import evaluation_details as details
    from moto.stepfunctions.parser.asl.eval.program_state import (
        ProgramEnded,
        ProgramError,
        ProgramTimedOut,
    )
    from moto.stepfunctions.parser.backend.execution_worker import SyncExecutionWorker

    role = "arn:aws:iam::111111111111:role/muster"
    arn = "arn:aws:states:us-east-1:111111111111:"
    worker = SyncExecutionWorker(
        details.EvaluationDetails(
            aws_execution_details=details.AWSExecutionDetails("111111111111", "us-east-1", role),
            execution_details=details.ExecutionDetails(
                arn=arn + "execution:machine:run",
                name="run",
                role_arn=role,
                inpt=machine_input,
                start_time="2026-01-01T00:00:00.000Z",
            ),
            state_machine_details=details.StateMachineDetails(
                arn=arn + "stateMachine:machine",
                name="machine",
                typ=StateMachineType.STANDARD,
                definition=json.dumps(definition),
            ),
        ),
        exec_comm=_Ended(),
        cloud_watch_logging_session=None,
        activity_store={},
        mock_test_case=_mocks(mocks) if mocks else None,
    )
    worker.start()
    state = worker.env.program_state()
    if isinstance(state, ProgramEnded):
        return {"status": "SUCCEEDED", "output": worker.env.states.get_input()}
    if isinstance(state, ProgramError):
        return {"status": "FAILED", "error": state.error.get("error")}
    if isinstance(state, ProgramTimedOut):
        return {"status": "TIMED_OUT"}
    return {"status": str(state)}


def without_waiting():
    """Waits and backoffs pass at once."""
    time.sleep = lambda seconds: None
