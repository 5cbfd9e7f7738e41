#!/usr/bin/python3
"""states_peers.py MOTO DEFINITION TRANSITIONS: microseconds that moto's interpreter takes for one
transition of a state machine, the reading of its definition not counted."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "states"))
import moto_interpreter  # noqa: E402


def main():
    moto, definition, transitions = sys.argv[1:]
    moto_interpreter.load(moto)
    from moto.stepfunctions.parser.asl.parse import asl_parser

    with open(definition, encoding="utf-8") as file:
        machine = json.load(file)
    parsed = asl_parser.AmazonStateLanguageParser.parse(json.dumps(machine))
    asl_parser.AmazonStateLanguageParser.parse = staticmethod(lambda text: parsed)
    start = time.perf_counter()
    result = moto_interpreter.run(machine, {"a": 1})
    taken = time.perf_counter() - start
    if result["status"] != "SUCCEEDED":
        sys.exit(f"moto: {result}")
    print(taken * 1e6 / int(transitions))


main()
