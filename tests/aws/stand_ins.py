"""Fakes of the two AWS services that moto does not provide: AppFlow, and Step Functions whose machines Muster runs."""

import collections
import http.server
import json
import os
import subprocess
import tempfile
import threading
import time


class Refusal(Exception):
    def __init__(self, status, name, message):
        super().__init__(message)
        self.status, self.name = status, name


class StandIn(http.server.ThreadingHTTPServer):
    """Answers POSTs of JSON; requests are recorded in `calls`, as (action, request)."""

    daemon_threads = True

    def __init__(self):
        self.calls = []
        self.lock = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
                action = self.server.action_of(self)
                try:
                    with self.server.lock:
                        self.server.calls.append((action, request))
                        answer, status, kind = self.server.answer(action, request), 200, None
                except Refusal as refusal:
                    answer, status, kind = {"message": str(refusal)}, refusal.status, refusal.name
                body = json.dumps(answer).encode()
                self.send_response(status)
                if kind:
                    self.send_header("x-amzn-ErrorType", kind)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class AppFlow(StandIn):
    """Flows take a poll or two, and end as configured: flows[NAME] lists how its executions end, the last entry repeatedly.
    "Refused" is not an execution: the service itself fails once; nor is "Expired": the caller's credentials have expired. The
    executions of flows in `held` do not end, unless they are cancelled."""

    def __init__(self):
        self.flows = {}
        self.held = set()
        self.executions = collections.defaultdict(list)  # by flow, oldest first
        super().__init__()

    def action_of(self, handler):
        return handler.path.strip("/")

    def answer(self, action, request):
        name = request["flowName"]
        if name not in self.flows:
            raise Refusal(404, "ResourceNotFoundException", f"Flow {name} does not exist")
        if action == "cancel-flow-executions":
            return self.cancel(name, request["executionIds"])
        return self.start(name, request) if action == "start-flow" else self.describe(name)

    def cancel(self, name, ids):
        begun = [execution for execution in self.executions[name] if execution["executionId"] in ids]
        for execution in begun:
            execution["cancelled"] = True
        known = {execution["executionId"] for execution in begun}
        return {"invalidExecutions": [one for one in ids if one not in known]}

    def start(self, name, request):
        endings = self.flows[name]
        ending = endings.pop(0) if len(endings) > 1 else endings[0]
        if ending == "Refused":
            raise Refusal(500, "InternalServerException", "try again")
        if ending == "Expired":
            raise Refusal(403, "ExpiredTokenException", "The security token included in the request is expired")
        begun = self.executions[name]
        token = request.get("clientToken")
        for execution in begun:
            if token and execution["token"] == token:
                return {"flowArn": name, "flowStatus": "Active", "executionId": execution["executionId"]}
        begun.append({"executionId": f"{name}-{len(begun)}", "token": token, "ending": ending, "asked": 0})
        return {"flowArn": name, "flowStatus": "Active", "executionId": begun[-1]["executionId"]}

    def describe(self, name):
        records = []
        for execution in reversed(self.executions[name]):
            execution["asked"] += 1
            record = {"executionId": execution["executionId"], "executionStatus": "InProgress"}
            if execution.get("cancelled"):
                record["executionStatus"] = "Canceled"
            elif execution["asked"] > 1 and name not in self.held:
                record["executionStatus"] = execution["ending"]
                record["executionResult"] = {"recordsProcessed": 7}
                if execution["ending"] == "Error":
                    record["executionResult"] = {"errorInfo": {"executionMessage": "a field is gone"}}
            records.append(record)
        return {"flowExecutions": records}


class StepFunctions(StandIn):
    """Runs the machines of a compiled plan: each execution is a `muster states run` of the machine's file."""

    def __init__(self, muster, folder, environment):
        self.muster, self.folder, self.environment = muster, folder, environment
        self.executions = {}
        super().__init__()

    def action_of(self, handler):
        return handler.headers["X-Amz-Target"].rpartition(".")[2]

    def answer(self, action, request):
        if action == "StartExecution":
            machine = request["stateMachineArn"].rpartition(":")[2]
            arn = request["stateMachineArn"].replace(":stateMachine:", ":execution:") + ":" + request["name"]
            if arn not in self.executions:
                self.executions[arn] = {"executionArn": arn, "stateMachineArn": request["stateMachineArn"],
                                        "name": request["name"], "status": "RUNNING", "startDate": time.time(),
                                        "input": request["input"]}
                threading.Thread(target=self.run, args=(arn, machine), daemon=True).start()
            return {"executionArn": arn, "startDate": self.executions[arn]["startDate"]}
        if request["executionArn"] not in self.executions:
            raise Refusal(400, "ExecutionDoesNotExist", request["executionArn"])
        return self.executions[request["executionArn"]]

    def run(self, arn, machine):
        execution = self.executions[arn]
        rank = machine.rpartition("-rank-")[2]
        files = [name for name in os.listdir(self.folder) if name.endswith(f"rank-{rank}.asl.json")]
        assert len(files) == 1, (machine, files)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(execution["input"])
            file.flush()
            done = subprocess.run([self.muster, "states", "run", os.path.join(self.folder, files[0]), "--input",
                                   file.name, "--json", "--progress=none"], env=self.environment,
                                  capture_output=True, text=True)
        result = json.loads(done.stdout)
        with self.lock:
            execution["stopDate"] = time.time()
            if result["status"] == "SUCCEEDED":
                execution["output"] = json.dumps(result["output"])
            else:
                execution["error"], execution["cause"] = result["error"], result.get("cause", "")
            execution["status"] = result["status"]
