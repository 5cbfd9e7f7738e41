#!/usr/bin/env python3
"""Writes aws_services.inc from the service descriptions that botocore carries.

    python3 make_aws_services.py > aws_services.inc

One line a service that speaks JSON 1.0, JSON 1.1 or the query protocol. See aws_service.h for the
columns. Names are made as the AWS SDK for Java 2 makes them, since Step Functions uses those.
"""
import re

import botocore
import botocore.session

# Errors that any service may give. One that a service does not declare has no class of its own in
# the SDK, and Step Functions then names the service's general exception.
COMMON = ["AccessDeniedException", "ThrottlingException", "ValidationException"]


def words(service_id):
    text = re.sub(r"[^A-Za-z0-9]+", " ", service_id)
    text = re.sub(r"([^a-z]{2,})v([0-9]+)", r"\1 v\2 ", text)
    text = re.sub(r"([^A-Z]{2,})V([0-9]+)", r"\1 V\2 ", text)
    text = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", text)
    text = re.sub(r"([0-9])([a-zA-Z])", r"\1 \2", text)
    return text.split()


def quoted(text):
    return '"' + text + '"'


session = botocore.session.get_session()
print(f"// Written by make_aws_services.py from botocore {botocore.__version__}.")
for name in session.get_available_services():
    model = session.get_service_model(name)
    data = model.metadata
    spoken = data.get("protocols", [data["protocol"]])
    protocol = next((p for p in ("json", "query") if p in spoken), None)
    if protocol is None or (protocol == "json" and "targetPrefix" not in data):
        continue
    inputs = [(o, model.operation_model(o).input_shape) for o in model.operation_names]
    members = [m for _, shape in inputs if shape for m in shape.members]
    camel = sum(m[0].islower() for m in members) * 2 > len(members)
    tokens = [f"{operation}={member}" for operation, shape in inputs if shape
              for member, kind in shape.members.items() if kind.metadata.get("idempotencyToken")]
    declared = {shape.metadata.get("error", {}).get("code", shape.name)
                for shape in model.error_shapes}
    kind = "kQuery" if protocol == "query" else (
        "kJson10" if data.get("jsonVersion") == "1.0" else "kJson11")
    version = data["apiVersion"] if protocol == "query" else data["targetPrefix"]
    service_id = data["serviceId"]
    line = ", ".join([
        quoted(re.sub(r"[^a-z0-9]", "", service_id.lower())),
        quoted("".join(w.capitalize() for w in words(service_id))),
        quoted(data["endpointPrefix"]),
        quoted(data.get("signingName") or data["endpointPrefix"]),
        kind, quoted(version), "true" if camel else "false",
        quoted("".join(e[0] for e in COMMON if e in declared)),
    ])
    if not tokens:
        print("{" + line + ', ""},')
        continue
    print("{" + line + ",")
    row = ""
    for token in tokens:
        if len(row) + len(token) > 85:
            print(f' "{row}"')
            row = ""
        row += token + " "
    print(f' "{row}"' + "},")
