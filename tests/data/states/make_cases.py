#!/usr/bin/env python3
"""make_cases.py > cases.jsonl: the table of cases that tests/states/cases_test runs.

Each case has its expected result, according to the Amazon States Language and the documentation of Step
Functions; nothing is computed by the program under test.
"""
import json

cases = []


def case(name, states, start, given, output=None, error=None, cause=None, events=None, mocks=None, **top):
    definition = {"StartAt": start, "States": states}
    definition.update(top)
    entry = {"name": name, "definition": definition, "input": given}
    if mocks is not None:
        entry["mocks"] = mocks
    if error is not None:
        entry["expected_error"] = {"error": error}
        if cause is not None:
            entry["expected_error"]["cause"] = cause
        else:
            entry["expected_error"]["cause_masked"] = ""
    else:
        entry["expected_output"] = output
    if events is not None:
        entry["expected_events"] = [e if isinstance(e, list) else [e] for e in events]
    cases.append(entry)


def one(name, state, given, output=None, error=None, **rest):
    case(name, {"S": dict(state, End=True) if state["Type"] not in ("Succeed", "Fail") else state}, "S", given,
         output=output, error=error, **rest)


def state_events(kind, name="S"):
    return [[kind + "StateEntered", name], [kind + "StateExited", name]]


# Data flow of a Pass.
document = {"a": {"b": [1, 2, 3]}, "c": "text", "n": None, "t": True, "list": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]}
for path, value in [
    ("$", document), ("$.a", document["a"]), ("$.a.b", [1, 2, 3]), ("$.a.b[0]", 1), ("$.a.b[2]", 3), ("$.a.b[-1]", 3),
    ("$['a']['b']", [1, 2, 3]), ("$.a.b[0:2]", [1, 2]), ("$.a.b[1:]", [2, 3]), ("$.a.b[:1]", [1]), ("$.a.b[-2:]", [2, 3]),
    ("$.a.b[*]", [1, 2, 3]), ("$.a.b[0,2]", [1, 3]), ("$..b", [[1, 2, 3]]), ("$..k", ["x", "y"]), ("$.list[*].v", [1, 2]),
    ("$.list[?(@.v > 1)].k", ["y"]), ("$.list[?(@.k == 'x')]", [{"k": "x", "v": 1}]), ("$.list[?(@.v >= 1 && @.k != 'x')].v", [2]),
    ("$.list[?(@.v == 1 || @.v == 2)].v", [1, 2]), ("$.list[?(@.missing)]", []), ("$.list[?(!(@.v == 1))].v", [2]),
    ("$.list[?(@.k =~ /[xz]/)].v", [1]), ("$.list[?(@.k in ['y', 'z'])].v", [2]), ("$.c", "text"), ("$.n", None), ("$.t", True),
    ("$.a[*]", [[1, 2, 3]]), ("$.nothing[*]", []),
]:
    one("InputPath " + path, {"Type": "Pass", "InputPath": path}, document, output=value,
        events=["ExecutionStarted"] + state_events("Pass") + ["ExecutionSucceeded"])
    one("OutputPath " + path, {"Type": "Pass", "OutputPath": path}, document, output=value)
    one("Parameters " + path, {"Type": "Pass", "Parameters": {"got.$": path}}, document, output={"got": value})
    one("nested Parameters " + path, {"Type": "Pass", "Parameters": {"deep": [{"got.$": path}], "as it is": "$.a"}}, document,
        output={"deep": [{"got": value}], "as it is": "$.a"})
for path, reason in [("$.x", "No results for path: $['x']"), ("$.a.x", "No results for path: $['a']['x']"),
                     ("$.x.y", "Missing property in path $['x']")]:
    one("InputPath without result " + path, {"Type": "Pass", "InputPath": path}, document, error="States.Runtime",
        cause="An error occurred while executing the state 'S' (entered at the event id #2). Invalid path '%s' : %s" % (path, reason),
        events=["ExecutionStarted", ["PassStateEntered", "S"], "ExecutionFailed"])
    one("OutputPath without result " + path, {"Type": "Pass", "OutputPath": path}, document, error="States.Runtime",
        cause="An error occurred while executing the state 'S' (entered at the event id #2). Invalid path '%s' : %s" % (path, reason))
one("InputPath null", {"Type": "Pass", "InputPath": None}, document, output={})
one("OutputPath null", {"Type": "Pass", "OutputPath": None}, document, output={})
one("ResultPath null", {"Type": "Pass", "Result": 1, "ResultPath": None}, {"a": 1}, output={"a": 1})
for path, output in [("$", 7), ("$.r", {"a": 1, "r": 7}), ("$.a", {"a": 7}), ("$.x.y.z", {"a": 1, "x": {"y": {"z": 7}}})]:
    one("ResultPath " + path, {"Type": "Pass", "Result": 7, "ResultPath": path}, {"a": 1}, output=output)
one("ResultPath through a number", {"Type": "Pass", "Result": 7, "ResultPath": "$.a.b"}, {"a": 1}, error="States.ResultPathMatchFailure")
one("ResultPath of an element", {"Type": "Pass", "Result": 7, "ResultPath": "$.a[1]"}, {"a": [1, 2]}, output={"a": [1, 7]})
one("ResultPath beyond an array", {"Type": "Pass", "Result": 7, "ResultPath": "$.a[5]"}, {"a": [1, 2]}, error="States.ResultPathMatchFailure")
one("ResultPath is applied to the raw input", {"Type": "Pass", "InputPath": "$.a", "ResultPath": "$.r"}, {"a": 1}, output={"a": 1, "r": 1})
one("a Result is not a template", {"Type": "Pass", "Result": {"x.$": "$.a"}}, {"a": 1}, output={"x.$": "$.a"})

# The context.
one("the execution's input", {"Type": "Pass", "Parameters": {"v.$": "$$.Execution.Input.a"}}, {"a": 5}, output={"v": 5})
one("the state's name", {"Type": "Pass", "Parameters": {"v.$": "$$.State.Name"}}, {}, output={"v": "S"})
one("the redrives", {"Type": "Pass", "Parameters": {"v.$": "$$.Execution.RedriveCount"}}, {}, output={"v": 0})
one("a missing context path", {"Type": "Pass", "Parameters": {"v.$": "$$.Nothing"}}, {}, error="States.Runtime")

# Intrinsic functions.
given = {"s": "text", "n": 5, "f": 1.5, "list": [1, 2, 3, 2], "o": {"a": 1}, "p": {"b": 2}, "neg": -3, "words": "a-b c"}
for call, value in [
    ("States.Format('{} and {}', $.s, $.n)", "text and 5"), ("States.Format('no braces')", "no braces"),
    ("States.Format('\\{\\} {}', $.s)", "{} text"), ("States.Format('it\\'s {}', $.n)", "it's 5"), ("States.Format('{}', $.o)", "{a=1}"),
    ("States.Format('{}', true)", "true"), ("States.Format('{}', null)", "null"), ("States.Format('{}', $.f)", "1.5"),
    ("States.Array()", []), ("States.Array(1, 'two', $.o, null, true)", [1, "two", {"a": 1}, None, True]),
    ("States.ArrayPartition($.list, 3)", [[1, 2, 3], [2]]), ("States.ArrayPartition($.list, 4)", [[1, 2, 3, 2]]),
    ("States.ArrayContains($.list, 3)", True), ("States.ArrayContains($.list, 'x')", False), ("States.ArrayContains($.list, 3.0)", True),
    ("States.ArrayRange(1, 9, 4)", [1, 5, 9]), ("States.ArrayRange(3, 1, -1)", [3, 2, 1]), ("States.ArrayRange(5, 1, 1)", []),
    ("States.ArrayGetItem($.list, 2)", 3), ("States.ArrayLength($.list)", 4), ("States.ArrayLength(States.Array())", 0),
    ("States.ArrayUnique($.list)", [1, 2, 3]), ("States.Base64Encode('hello')", "aGVsbG8="), ("States.Base64Decode('aGVsbG8=')", "hello"),
    ("States.Base64Decode('aGVsbG8h')", "hello!"), ("States.Base64Decode('YQ==')", "a"),
    ("States.Hash('abc', 'MD5')", "900150983cd24fb0d6963f7d28e17f72"), ("States.Hash('abc', 'SHA-1')", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    ("States.Hash('abc', 'SHA-256')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ("States.JsonMerge($.o, $.p, false)", {"a": 1, "b": 2}), ("States.JsonMerge($.o, $.o, false)", {"a": 1}),
    ("States.MathAdd($.n, $.neg)", 2), ("States.MathAdd(1, -1)", 0), ("States.MathAdd($.f, 0)", 2),
    ("States.StringSplit($.words, '- ')", ["a", "b", "c"]), ("States.StringSplit('abc', ',')", ["abc"]),
    ("States.StringToJson('{\"x\": [1]}')", {"x": [1]}), ("States.StringToJson('true')", True), ("States.JsonToString($.o)", "{\"a\":1}"),
    ("States.JsonToString($.s)", "\"text\""),
    ("States.ArrayGetItem(States.StringSplit($.words, '-'), 0)", "a"),
    ("States.Format('{}', States.ArrayLength(States.ArrayUnique($.list)))", "3"),
]:
    one("intrinsic " + call, {"Type": "Pass", "Parameters": {"v.$": call}}, given, output={"v": value})
for call in ["States.ArrayGetItem($.list, 9)", "States.ArrayGetItem($.list, -1)", "States.ArrayLength($.s)", "States.ArrayPartition($.list, 0)",
             "States.ArrayRange(1, 9, 0)", "States.ArrayRange(1, 2000, 1)", "States.Format('{} {}', 1)", "States.Format('{}', 1, 2)",
             "States.StringToJson('{')", "States.JsonMerge($.o, $.p, true)", "States.JsonMerge($.o, $.s, false)", "States.Hash('abc', 'CRC')",
             "States.Base64Decode('***')", "States.MathAdd($.s, 1)", "States.ArrayContains($.s, 1)", "States.ArrayUnique($.n)",
             "States.MathRandom(5, 5)", "States.StringSplit($.n, ',')"]:
    one("intrinsic that fails " + call, {"Type": "Pass", "Parameters": {"v.$": call}}, given, error="States.IntrinsicFailure")
one("intrinsic of a missing path", {"Type": "Pass", "Parameters": {"v.$": "States.ArrayLength($.x)"}}, {}, error="States.Runtime",
    cause="An error occurred while executing the state 'S' (entered at the event id #2). The function 'States.ArrayLength($.x)' had the "
          "following error: The JsonPath argument for the field '$.x' could not be found in the input '{}'")

# Choices.
def choice(name, rule, given, chosen):
    case("choice " + name, {
        "C": {"Type": "Choice", "Choices": [dict(rule, Next="Yes")], "Default": "No"},
        "Yes": {"Type": "Pass", "Result": True, "End": True}, "No": {"Type": "Pass", "Result": False, "End": True}}, "C", given, output=chosen,
        events=["ExecutionStarted"] + state_events("Choice", "C") + state_events("Pass", "Yes" if chosen else "No") + ["ExecutionSucceeded"])


orders = {"Equals": (False, True, False), "LessThan": (True, False, False), "GreaterThan": (False, False, True),
          "LessThanEquals": (True, True, False), "GreaterThanEquals": (False, True, True)}
samples = {"String": ("a", "b", "c"), "Numeric": (1, 2.5, 3), "Timestamp": ("2024-01-01T00:00:00Z", "2024-06-01T12:00:00Z", "2024-06-01T12:00:00.001Z")}
for kind, (low, middle, high) in samples.items():
    for order, results in orders.items():
        for value, result in zip((low, middle, high), results):
            choice("%s%s %s" % (kind, order, value), {"Variable": "$.v", kind + order: middle}, {"v": value}, result)
            choice("%s%sPath %s" % (kind, order, value), {"Variable": "$.v", kind + order + "Path": "$.w"}, {"v": value, "w": middle}, result)
        choice("%s%s of another type" % (kind, order), {"Variable": "$.v", kind + order: middle}, {"v": [1]}, False)
for value, other, result in [(True, True, True), (True, False, False), (False, False, True), ("true", True, False)]:
    choice("BooleanEquals %s %s" % (value, other), {"Variable": "$.v", "BooleanEquals": other}, {"v": value}, result)
    choice("BooleanEqualsPath %s %s" % (value, other), {"Variable": "$.v", "BooleanEqualsPath": "$.w"}, {"v": value, "w": other}, result)
choice("times in different zones are compared as times", {"Variable": "$.v", "TimestampEquals": "2024-01-01T12:00:00Z"}, {"v": "2024-01-01T13:00:00+01:00"}, True)
for pattern, text, result in [("log-*.txt", "log-1.txt", True), ("log-*.txt", "log-.txt", True), ("*", "", True), ("*a*", "banana", True), ("a*b*c", "axxbyyc", True),
                              ("a*b*c", "axxc", False), ("a\\*b", "a*b", True), ("a\\*b", "axb", False), ("", "x", False), ("x", "x", True)]:
    choice("StringMatches %s %s" % (pattern, text), {"Variable": "$.v", "StringMatches": pattern}, {"v": text}, result)
kinds = {"IsNull": None, "IsNumeric": 1, "IsString": "s", "IsBoolean": False, "IsTimestamp": "2024-01-01T00:00:00Z"}
for operator in kinds:
    for sample_name, value in list(kinds.items()) + [("object", {}), ("array", [])]:
        same = operator == sample_name or (operator == "IsString" and sample_name == "IsTimestamp")
        choice("%s true of %s" % (operator, sample_name), {"Variable": "$.v", operator: True}, {"v": value}, same)
        choice("%s false of %s" % (operator, sample_name), {"Variable": "$.v", operator: False}, {"v": value}, not same)
choice("IsPresent", {"Variable": "$.v", "IsPresent": True}, {"v": None}, True)
choice("IsPresent of nothing", {"Variable": "$.v", "IsPresent": True}, {}, False)
choice("IsPresent false of nothing", {"Variable": "$.v", "IsPresent": False}, {}, True)
for a in (True, False):
    for b in (True, False):
        rules = [{"Variable": "$.a", "BooleanEquals": True}, {"Variable": "$.b", "BooleanEquals": True}]
        choice("And %s %s" % (a, b), {"And": rules}, {"a": a, "b": b}, a and b)
        choice("Or %s %s" % (a, b), {"Or": rules}, {"a": a, "b": b}, a or b)
        choice("Not And %s %s" % (a, b), {"Not": {"And": rules}}, {"a": a, "b": b}, not (a and b))
choice("And looks no further than the first that is false",
       {"And": [{"Variable": "$.v", "IsPresent": True}, {"Variable": "$.v.w", "StringEquals": "x"}]}, {}, False)
one_rule = {"Variable": "$.v", "NumericEquals": 1, "Next": "Yes"}
case("choice of a missing variable", {"C": {"Type": "Choice", "Choices": [one_rule]}, "Yes": {"Type": "Succeed"}}, "C", {}, error="States.Runtime",
     cause="An error occurred while executing the state 'C' (entered at the event id #2). Invalid path '$.v': The choice state's condition path references an invalid value.")
case("no choice matches", {"C": {"Type": "Choice", "Choices": [one_rule]}, "Yes": {"Type": "Succeed"}}, "C", {"v": 2}, error="States.NoChoiceMatched")
case("the first rule that holds is taken", {
    "C": {"Type": "Choice", "Choices": [{"Variable": "$.v", "NumericGreaterThan": 0, "Next": "A"}, {"Variable": "$.v", "NumericGreaterThan": 1, "Next": "B"}]},
    "A": {"Type": "Pass", "Result": "A", "End": True}, "B": {"Type": "Pass", "Result": "B", "End": True}}, "C", {"v": 5}, output="A")

# Variables.
case("a variable is read by later states", {"A": {"Type": "Pass", "Assign": {"x.$": "$.v", "y": 2}, "Next": "B"},
     "B": {"Type": "Pass", "Parameters": {"x.$": "$x", "y.$": "$y"}, "End": True}}, "A", {"v": {"w": 1}}, output={"x": {"w": 1}, "y": 2})
case("a path into a variable", {"A": {"Type": "Pass", "Assign": {"x.$": "$"}, "Next": "B"}, "B": {"Type": "Pass", "Parameters": {"v.$": "$x.a[1]"}, "End": True}},
     "A", {"a": [1, 2]}, output={"v": 2})
case("a state sees variables as they were before its own Assign", {"A": {"Type": "Pass", "Assign": {"x": 1}, "Next": "B"},
     "B": {"Type": "Pass", "Assign": {"x": 2, "old.$": "$x"}, "Parameters": {"x.$": "$x"}, "Next": "C"},
     "C": {"Type": "Pass", "Parameters": {"x.$": "$x", "old.$": "$old", "then.$": "$.x"}, "End": True}}, "A", {}, output={"x": 2, "old": 1, "then": 1})
case("an undefined variable", {"A": {"Type": "Pass", "Parameters": {"v.$": "$nobody"}, "End": True}}, "A", {}, error="States.Runtime")
case("a branch reads outer variables and keeps its own", {"A": {"Type": "Pass", "Assign": {"x": 1}, "Next": "P"},
     "P": {"Type": "Parallel", "Branches": [{"StartAt": "B", "States": {"B": {"Type": "Pass", "Assign": {"inner": 5}, "Next": "B2"},
           "B2": {"Type": "Pass", "Parameters": {"x.$": "$x", "inner.$": "$inner"}, "End": True}}}], "Next": "C"},
     "C": {"Type": "Pass", "Parameters": {"got.$": "$", "inner.$": "$inner"}, "End": True}}, "A", {}, error="States.Runtime")
case("Assign of a choice rule", {"C": {"Type": "Choice", "Choices": [{"Variable": "$.v", "NumericEquals": 1, "Assign": {"x": "rule"}, "Next": "D"}],
     "Assign": {"x": "default"}, "Default": "D"}, "D": {"Type": "Pass", "Parameters": {"x.$": "$x"}, "End": True}}, "C", {"v": 1}, output={"x": "rule"})

# Waits, in virtual time.
for field, value in [("Seconds", 3600), ("Timestamp", "2030-01-01T00:00:00Z"), ("SecondsPath", "$.s"), ("TimestampPath", "$.t")]:
    one("Wait " + field, {"Type": "Wait", field: value}, {"s": 86400, "t": "2031-01-01T00:00:00+02:00"}, output={"s": 86400, "t": "2031-01-01T00:00:00+02:00"},
        events=["ExecutionStarted"] + state_events("Wait") + ["ExecutionSucceeded"])
one("Wait for a text", {"Type": "Wait", "SecondsPath": "$.s"}, {"s": "x"}, error="States.Runtime")
one("Wait for nothing", {"Type": "Wait", "SecondsPath": "$.s"}, {}, error="States.Runtime")
one("Wait until no time", {"Type": "Wait", "TimestampPath": "$.t"}, {"t": "tomorrow"}, error="States.Runtime")

# Fail and Succeed.
one("Fail", {"Type": "Fail", "Error": "E", "Cause": "C"}, {}, error="E", cause="C", events=["ExecutionStarted", ["FailStateEntered", "S"], "ExecutionFailed"])
one("Fail without reasons", {"Type": "Fail"}, {}, error="", cause="")
one("Fail with paths", {"Type": "Fail", "ErrorPath": "$.e", "CausePath": "$.c"}, {"e": "E2", "c": "C2"}, error="E2", cause="C2")
one("Fail with an intrinsic", {"Type": "Fail", "Error": "E", "CausePath": "States.Format('{} is wrong', $.v)"}, {"v": "this"}, error="E", cause="this is wrong")
one("Succeed", {"Type": "Succeed", "InputPath": "$.a"}, {"a": 1}, output=1, events=["ExecutionStarted"] + state_events("Succeed") + ["ExecutionSucceeded"])

# Tasks.
task = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage"}
task_events = ["TaskScheduled", "TaskStarted"]
one("Task", task, {}, output={"ok": 1}, mocks={"S": {"0": {"Return": {"ok": 1}}}},
    events=["ExecutionStarted", ["TaskStateEntered", "S"]] + task_events + ["TaskSucceeded", ["TaskStateExited", "S"], "ExecutionSucceeded"])
one("Lambda", dict(task, Resource="arn:aws:lambda:us-east-1:123456789012:function:f"), {}, output=1, mocks={"S": {"0": {"Return": 1}}},
    events=["ExecutionStarted", ["TaskStateEntered", "S"], "LambdaFunctionScheduled", "LambdaFunctionStarted", "LambdaFunctionSucceeded", ["TaskStateExited", "S"], "ExecutionSucceeded"])
one("Activity", dict(task, Resource="arn:aws:states:us-east-1:123456789012:activity:a"), {}, output=1, mocks={"S": {"0": {"Return": 1}}},
    events=["ExecutionStarted", ["TaskStateEntered", "S"], "ActivityScheduled", "ActivityStarted", "ActivitySucceeded", ["TaskStateExited", "S"], "ExecutionSucceeded"])
for suffix in (".sync", ".sync:2", ".waitForTaskToken"):
    one("Task " + suffix, dict(task, Resource="arn:aws:states:::states:startExecution" + suffix), {}, output=1, mocks={"S": {"0": {"Return": 1}}},
        events=["ExecutionStarted", ["TaskStateEntered", "S"]] + task_events + ["TaskSubmitted", "TaskSucceeded", ["TaskStateExited", "S"], "ExecutionSucceeded"])
one("ResultSelector", dict(task, ResultSelector={"v.$": "$.a.b", "k": 1}, ResultPath="$.r"), {"i": 1}, output={"i": 1, "r": {"v": 2, "k": 1}},
    mocks={"S": {"0": {"Return": {"a": {"b": 2}, "c": 3}}}})
one("Task fails", task, {}, error="Boom", cause="why", mocks={"S": {"0": {"Throw": {"Error": "Boom", "Cause": "why"}}}},
    events=["ExecutionStarted", ["TaskStateEntered", "S"]] + task_events + ["TaskFailed", "ExecutionFailed"])
one("Task times out", task, {}, error="States.Timeout", mocks={"S": {"0": {"Throw": {"Error": "States.Timeout"}}}},
    events=["ExecutionStarted", ["TaskStateEntered", "S"]] + task_events + ["TaskTimedOut", "ExecutionFailed"])
one("Parameters of a Task without result", dict(task, Parameters={"v.$": "$.x"}), {"a": 1}, error="States.Runtime",
    cause="An error occurred while executing the state 'S' (entered at the event id #2). The JSONPath '$.x' specified for the field 'v.$' could not be found in the input '{\"a\":1}'",
    mocks={}, events=["ExecutionStarted", ["TaskStateEntered", "S"], "ExecutionFailed"])


def retried(name, retry, throws, output=None, error=None, calls=None):
    mocks = {"S": {str(i): {"Throw": {"Error": e, "Cause": ""}} for i, e in enumerate(throws)}}
    mocks["S"][str(len(throws)) + "-99"] = {"Return": "done"}
    events = ["ExecutionStarted", ["TaskStateEntered", "S"]]
    for i in range(calls):
        failed = i < len(throws)
        events += task_events + (["TaskFailed"] if failed else ["TaskSucceeded"])
    events += ["ExecutionFailed"] if error else [["TaskStateExited", "S"], "ExecutionSucceeded"]
    one("Retry " + name, dict(task, Retry=retry), {}, output=output, error=error, mocks=mocks, events=events)


retried("until it works", [{"ErrorEquals": ["A"]}], ["A", "A"], output="done", calls=3)
retried("at most three times by default", [{"ErrorEquals": ["A"]}], ["A"] * 9, error="A", calls=4)
retried("as often as MaxAttempts says", [{"ErrorEquals": ["A"], "MaxAttempts": 1}], ["A"] * 9, error="A", calls=2)
retried("never", [{"ErrorEquals": ["A"], "MaxAttempts": 0}], ["A"], error="A", calls=1)
retried("not of another error", [{"ErrorEquals": ["B"]}], ["A"], error="A", calls=1)
retried("of any error", [{"ErrorEquals": ["States.ALL"]}], ["A", "B"], output="done", calls=3)
retried("of a failed task", [{"ErrorEquals": ["States.TaskFailed"]}], ["A"], output="done", calls=2)
retried("counted for each retrier", [{"ErrorEquals": ["A"], "MaxAttempts": 1}, {"ErrorEquals": ["B"], "MaxAttempts": 1}], ["A", "B"], output="done", calls=3)
retried("with all that can be said", [{"ErrorEquals": ["A"], "IntervalSeconds": 2, "MaxAttempts": 5, "BackoffRate": 1.5, "MaxDelaySeconds": 9, "JitterStrategy": "FULL"}],
        ["A"] * 4, output="done", calls=5)
one("TaskFailed is not a time-out", dict(task, Retry=[{"ErrorEquals": ["States.TaskFailed"]}]), {}, error="States.Timeout", mocks={"S": {"0-9": {"Throw": {"Error": "States.Timeout"}}}})
case("the context shows the retries", {"S": dict(task, Parameters={"n.$": "$$.State.RetryCount"}, Retry=[{"ErrorEquals": ["A"]}], Next="E"),
     "E": {"Type": "Pass", "End": True}}, "S", {}, output=1, mocks={"S": {"0": {"Throw": {"Error": "A"}}, "1": {"Return": 1}}})


def caught(name, catch, throws, output=None, error=None):
    states = {"S": dict(task, Catch=[dict(c, Next="H") for c in catch], Next="T"), "T": {"Type": "Pass", "Result": "not caught", "End": True},
              "H": {"Type": "Pass", "End": True}}
    case("Catch " + name, states, "S", {"i": 1}, output=output, error=error, mocks={"S": {"0": {"Throw": throws}}})


thrown = {"Error": "A", "Cause": "why"}
caught("by name", [{"ErrorEquals": ["A"]}], thrown, output=thrown)
caught("with ResultPath", [{"ErrorEquals": ["A"], "ResultPath": "$.e"}], thrown, output={"i": 1, "e": thrown})
caught("with ResultPath null", [{"ErrorEquals": ["A"], "ResultPath": None}], thrown, output={"i": 1})
caught("any", [{"ErrorEquals": ["States.ALL"]}], thrown, output=thrown)
caught("the second", [{"ErrorEquals": ["B"]}, {"ErrorEquals": ["A"], "ResultPath": "$.e"}], thrown, output={"i": 1, "e": thrown})
caught("nothing", [{"ErrorEquals": ["B"]}], thrown, error="A")
caught("a time-out", [{"ErrorEquals": ["States.Timeout"]}], {"Error": "States.Timeout"}, output={"Error": "States.Timeout", "Cause": ""})
caught("a time-out by its heartbeat", [{"ErrorEquals": ["States.HeartbeatTimeout"]}], {"Error": "States.HeartbeatTimeout"}, output={"Error": "States.HeartbeatTimeout", "Cause": ""})
case("Catch comes after Retry", {"S": dict(task, Retry=[{"ErrorEquals": ["A"], "MaxAttempts": 1}], Catch=[{"ErrorEquals": ["A"], "Next": "H"}], End=True),
     "H": {"Type": "Pass", "Result": "caught", "End": True}}, "S", {}, output="caught", mocks={"S": {"0-1": {"Throw": thrown}}},
     events=["ExecutionStarted", ["TaskStateEntered", "S"]] + (task_events + ["TaskFailed"]) * 2 + [["TaskStateExited", "S"]] + state_events("Pass", "H") + ["ExecutionSucceeded"])
case("Catch assigns", {"S": dict(task, Catch=[{"ErrorEquals": ["A"], "Assign": {"e.$": "$.Error"}, "Next": "H"}], End=True),
     "H": {"Type": "Pass", "Parameters": {"v.$": "$e"}, "End": True}}, "S", {}, output={"v": "A"}, mocks={"S": {"0": {"Throw": thrown}}})

# Parallel.
def branch(name, state):
    return {"StartAt": name, "States": {name: dict(state, End=True)}}


two = [branch("A", {"Type": "Pass", "Result": 1}), branch("B", {"Type": "Pass", "InputPath": "$.v"})]
one("Parallel", {"Type": "Parallel", "Branches": two}, {"v": 2}, output=[1, 2],
    events=["ExecutionStarted", ["ParallelStateEntered", "S"], "ParallelStateStarted"] + state_events("Pass", "A") + state_events("Pass", "B") +
           ["ParallelStateSucceeded", ["ParallelStateExited", "S"], "ExecutionSucceeded"])
one("Parallel with everything", {"Type": "Parallel", "InputPath": "$.in", "Parameters": {"v.$": "$.w"}, "Branches": two, "ResultSelector": {"all.$": "$"},
    "ResultPath": "$.out", "OutputPath": "$.out"}, {"in": {"w": 9}}, output={"all": [1, 9]})
failing = [branch("A", {"Type": "Fail", "Error": "E", "Cause": "C"}), branch("B", {"Type": "Wait", "Seconds": 60})]
for b in failing:
    b["States"].get("A", {}).pop("End", None)
one("a branch that fails", {"Type": "Parallel", "Branches": failing}, {}, error="E", cause="C")
case("a branch that fails is caught", {"S": {"Type": "Parallel", "Branches": failing, "Catch": [{"ErrorEquals": ["E"], "Next": "H"}], "End": True},
     "H": {"Type": "Pass", "End": True}}, "S", {}, output={"Error": "E", "Cause": "C"})
case("a Parallel inside a Parallel", {"S": {"Type": "Parallel", "Branches": [branch("P", {"Type": "Parallel", "Branches": two})], "End": True}}, "S", {"v": 3}, output=[[1, 3]])
case("a Parallel is retried as a whole", {"S": {"Type": "Parallel", "Branches": [branch("T", task), branch("U", {"Type": "Pass", "Result": 1})],
     "Retry": [{"ErrorEquals": ["A"]}], "End": True}}, "S", {}, output=["ok", 1], mocks={"T": {"0": {"Throw": {"Error": "A"}}, "1": {"Return": "ok"}}})

# Map.
def mapped(name, fields, given, output=None, error=None, state=None, mode="INLINE", **rest):
    processor = {"ProcessorConfig": {"Mode": mode}, "StartAt": "I", "States": {"I": state or {"Type": "Pass", "End": True}}}
    if mode == "DISTRIBUTED":
        processor["ProcessorConfig"]["ExecutionType"] = "STANDARD"
    one("Map " + name, dict({"Type": "Map", "ItemProcessor": processor}, **fields), given, output=output, error=error, **rest)


iteration = ["MapIterationStarted"] + state_events("Pass", "I") + ["MapIterationSucceeded"]
mapped("over the input", {"MaxConcurrency": 1}, [1, 2], output=[1, 2],
       events=["ExecutionStarted", ["MapStateEntered", "S"], "MapStateStarted"] + iteration * 2 + ["MapStateSucceeded", ["MapStateExited", "S"], "ExecutionSucceeded"])
mapped("over nothing", {}, [], output=[], events=["ExecutionStarted", ["MapStateEntered", "S"], "MapStateStarted", "MapStateSucceeded", ["MapStateExited", "S"], "ExecutionSucceeded"])
mapped("ItemsPath", {"ItemsPath": "$.l"}, {"l": ["a", "b"]}, output=["a", "b"])
mapped("ItemSelector", {"ItemsPath": "$.l", "ItemSelector": {"i.$": "$$.Map.Item.Index", "v.$": "$$.Map.Item.Value", "all.$": "$.k"}}, {"l": ["a", "b"], "k": 7},
       output=[{"i": 0, "v": "a", "all": 7}, {"i": 1, "v": "b", "all": 7}])
mapped("Parameters, the old ItemSelector", {"ItemsPath": "$.l", "Parameters": {"v.$": "$$.Map.Item.Value"}}, {"l": [1]}, output=[{"v": 1}])
mapped("ResultPath", {"ItemsPath": "$.l", "ResultPath": "$.r"}, {"l": [1]}, output={"l": [1], "r": [1]})
mapped("not an array", {"ItemsPath": "$.l"}, {"l": 1}, error="States.Runtime",
       cause="An error occurred while executing the state 'S' (entered at the event id #2). Reference path \"$.l\" must point to array.")
mapped("no such path", {"ItemsPath": "$.l"}, {}, error="States.Runtime")
mapped("MaxConcurrencyPath", {"MaxConcurrencyPath": "$.n", "ItemsPath": "$.l"}, {"n": 2, "l": [1, 2, 3]}, output=[1, 2, 3])
mapped("MaxConcurrencyPath to no number", {"MaxConcurrencyPath": "$.n", "ItemsPath": "$.l"}, {"n": "x", "l": []}, error="States.Runtime",
       cause="An error occurred while executing the state 'S' (entered at the event id #2). The MaxConcurrencyPath field refers to value \"x\" which is not a valid integer: $.n")
failing_item = {"Type": "Choice", "Choices": [{"Variable": "$", "NumericEquals": 2, "Next": "F"}], "Default": "G"}
more = {"F": {"Type": "Fail", "Error": "E2", "Cause": "two"}, "G": {"Type": "Pass", "End": True}}
for mode, error in (("INLINE", "E2"), ("DISTRIBUTED", "States.ExceedToleratedFailureThreshold")):
    processor = {"ProcessorConfig": dict({"Mode": mode}, **({"ExecutionType": "STANDARD"} if mode == "DISTRIBUTED" else {})), "StartAt": "I", "States": dict({"I": failing_item}, **more)}
    one("Map an iteration fails " + mode, {"Type": "Map", "MaxConcurrency": 1, "ItemProcessor": processor}, [1, 2, 3], error=error)
    if mode == "DISTRIBUTED":
        for field, value in (("ToleratedFailureCount", 1), ("ToleratedFailurePercentage", 34)):
            one("Map tolerates by " + field, {"Type": "Map", "MaxConcurrency": 1, "ItemProcessor": processor, field: value}, [1, 2, 3], output=[1, 3])
        one("Map tolerates too little", {"Type": "Map", "MaxConcurrency": 1, "ItemProcessor": processor, "ToleratedFailurePercentage": 10}, [1, 2, 3], error=error)
mapped("distributed", {}, [1, 2], output=[1, 2], mode="DISTRIBUTED",
       events=["ExecutionStarted", ["MapStateEntered", "S"], "MapStateStarted", "MapRunStarted", "MapRunSucceeded", "MapStateSucceeded", ["MapStateExited", "S"], "ExecutionSucceeded"])
mapped("in batches", {"ItemBatcher": {"MaxItemsPerBatch": 2, "BatchInput": {"k": 1}}}, [1, 2, 3], mode="DISTRIBUTED",
       output=[{"BatchInput": {"k": 1}, "Items": [1, 2]}, {"BatchInput": {"k": 1}, "Items": [3]}])
mapped("in batches of selected items", {"ItemBatcher": {"MaxItemsPerBatch": 3}, "ItemSelector": {"v.$": "$$.Map.Item.Value"}}, [1, 2], mode="DISTRIBUTED",
       output=[{"Items": [{"v": 1}, {"v": 2}]}])
mapped("in batches by bytes", {"ItemBatcher": {"MaxInputBytesPerBatch": 40}}, ["x" * 20, "y" * 20], mode="DISTRIBUTED", output=[{"Items": ["x" * 20]}, {"Items": ["y" * 20]}])
mapped("FLATTEN", {"ResultWriter": {"WriterConfig": {"Transformation": "FLATTEN"}}}, [[1, 2], [3]], mode="DISTRIBUTED", output=[1, 2, 3])
reader = {"Resource": "arn:aws:states:::s3:getObject", "Parameters": {"Bucket": "b", "Key": "k"}}
for kind, body, extra, items in [
    ("JSON", "[{\"a\": 1}, 2]", {}, [{"a": 1}, 2]), ("JSONL", "{\"a\": 1}\n\n{\"a\": 2}\n", {}, [{"a": 1}, {"a": 2}]),
    ("CSV", "a,b\n1,\"x,y\"\n2,\"say \"\"hi\"\"\"\n", {"CSVHeaderLocation": "FIRST_ROW"}, [{"a": "1", "b": "x,y"}, {"a": "2", "b": "say \"hi\""}]),
    ("CSV", "1;2\r\n3\r\n", {"CSVHeaderLocation": "GIVEN", "CSVHeaders": ["p", "q"], "CSVDelimiter": "SEMICOLON"}, [{"p": "1", "q": "2"}, {"p": "3", "q": ""}]),
    ("JSON", "[1, 2, 3]", {"MaxItems": 2}, [1, 2]), ("MANIFEST", "[{\"Key\": \"a\"}]", {}, [{"Key": "a"}]),
]:
    mapped("ItemReader %s %s" % (kind, extra), {"ItemReader": dict(reader, ReaderConfig=dict({"InputType": kind}, **extra))}, {}, mode="DISTRIBUTED", output=items,
           mocks={"S": {"0": {"Return": {"Body": body}}}})
mapped("ItemReader of a list", {"ItemReader": {"Resource": "arn:aws:states:::s3:listObjectsV2", "Parameters": {"Bucket": "b"}}}, {}, mode="DISTRIBUTED", output=[{"Key": "x"}],
       mocks={"S": {"0": {"Return": {"Contents": [{"Key": "x"}]}}}})
for body in ("{", "{}"):
    mapped("ItemReader of bad JSON " + body, {"ItemReader": dict(reader, ReaderConfig={"InputType": "JSON"})}, {}, mode="DISTRIBUTED", error="States.ItemReaderFailed",
           mocks={"S": {"0": {"Return": {"Body": body}}}})
mapped("ItemReader that fails", {"ItemReader": dict(reader, ReaderConfig={"InputType": "JSON"})}, {}, mode="DISTRIBUTED", error="States.ItemReaderFailed",
       mocks={"S": {"0": {"Throw": {"Error": "S3.NoSuchKey", "Cause": "gone"}}}})

# JSONata.
def jsonata(name, state, given, output=None, error=None, **rest):
    one("JSONata " + name, state, given, output=output, error=error, QueryLanguage="JSONata", **rest)


for text, value in [("$states.input.a", 1), ("$states.input.list[1]", 20), ("$sum($states.input.list)", 30), ("{'k': $states.input.a + 1}", {"k": 2}),
                    ("$states.context.State.Name", "S"), ("$map($states.input.list, function($v) { $v * 2 })", [20, 40]), ("'text'", "text"), ("null", None),
                    ("$partition([1,2,3], 2)", [[1, 2], [3]]), ("$range(1, 5, 2)", [1, 3, 5]), ("$hash('abc', 'MD5')", "900150983cd24fb0d6963f7d28e17f72"),
                    ("$parse('[1]')", [1]), ("$states.context.Execution.Input.a", 1)]:
    jsonata("Output " + text, {"Type": "Pass", "Output": {"v": "{% " + text + " %}"}}, {"a": 1, "list": [10, 20]}, output={"v": value})
jsonata("no Output", {"Type": "Pass"}, {"a": 1}, output={"a": 1})
jsonata("strings without marks", {"Type": "Pass", "Output": {"v": "$states.input", "l": ["{% 1 %}", 2]}}, {}, output={"v": "$states.input", "l": [1, 2]})
jsonata("undefined", {"Type": "Pass", "Output": {"v": "{% $states.input.x %}"}}, {}, error="States.QueryEvaluationError",
        cause="An error occurred while executing the state 'S' (entered at the event id #2). The JSONata expression '$states.input.x' specified for the field 'Output/v' returned nothing (undefined).",
        events=["ExecutionStarted", ["PassStateEntered", "S"], "EvaluationFailed", "ExecutionFailed"])
jsonata("an error", {"Type": "Pass", "Output": "{% $number('x') %}"}, {}, error="States.QueryEvaluationError")
jsonata("a Task", dict(task, Arguments={"n": "{% $states.input.a %}"}, Output="{% $states.result.r + $states.input.a %}"), {"a": 1}, output=3, mocks={"S": {"0": {"Return": {"r": 2}}}})
jsonata("Seconds", {"Type": "Wait", "Seconds": "{% $states.input.s %}"}, {"s": 5}, output={"s": 5})
case("JSONata Condition", {"C": {"Type": "Choice", "Choices": [{"Condition": "{% $states.input.a > 1 %}", "Output": "{% $states.input.a %}", "Next": "E"}], "Default": "F"},
     "E": {"Type": "Succeed"}, "F": {"Type": "Fail"}}, "C", {"a": 2}, output=2, QueryLanguage="JSONata")
case("JSONata Condition that is no boolean", {"C": {"Type": "Choice", "Choices": [{"Condition": "{% 'x' %}", "Next": "E"}]}, "E": {"Type": "Succeed"}}, "C", {},
     error="States.QueryEvaluationError", QueryLanguage="JSONata")
case("JSONata Catch", {"S": dict(task, Catch=[{"ErrorEquals": ["States.ALL"], "Output": "{% $states.errorOutput.Error & $states.input.a %}", "Assign": {"e": "{% $states.errorOutput.Cause %}"}, "Next": "H"}], End=True),
     "H": {"Type": "Pass", "Output": {"in": "{% $states.input %}", "e": "{% $e %}"}, "End": True}}, "S", {"a": "!"}, output={"in": "A!", "e": "why"}, mocks={"S": {"0": {"Throw": thrown}}}, QueryLanguage="JSONata")
case("JSONata Map", {"M": {"Type": "Map", "Items": "{% $states.input.l %}", "ItemSelector": {"v": "{% $states.context.Map.Item.Value %}", "i": "{% $states.context.Map.Item.Index %}"},
     "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Pass", "Output": "{% $states.input.v * 10 + $states.input.i %}", "End": True}}}, "Output": {"r": "{% $states.result %}"}, "End": True}},
     "M", {"l": [1, 2]}, output={"r": [10, 21]}, QueryLanguage="JSONata")
case("JSONata Fail", {"F": {"Type": "Fail", "Error": "{% 'E' & $states.input.n %}", "Cause": "{% 'because' %}"}}, "F", {"n": 1}, error="E1", cause="because", QueryLanguage="JSONata")
case("one JSONata state in a JSONPath machine", {"A": {"Type": "Pass", "QueryLanguage": "JSONata", "Output": {"n": "{% 1 + 1 %}"}, "Next": "B"},
     "B": {"Type": "Pass", "Parameters": {"m.$": "$.n"}, "End": True}}, "A", {}, output={"m": 2})

# Time limits of the whole execution.
case("TimeoutSeconds of the machine", {"W": {"Type": "Wait", "Seconds": 100, "End": True}}, "W", {}, error="States.Timeout", TimeoutSeconds=50,
     events=["ExecutionStarted", ["WaitStateEntered", "W"], "WaitStateAborted", "ExecutionTimedOut"])

# Path forms, and fields that have one.
batched = {"Type": "Map", "ItemsPath": "$.l"}
for fields, expected in [
    ({"ItemBatcher": {"MaxItemsPerBatchPath": "$.n"}}, [{"Items": [1, 2]}, {"Items": [3]}]),
    ({"ItemBatcher": {"MaxItemsPerBatch": 1, "BatchInput": {"k.$": "$.n"}}}, [{"BatchInput": {"k": 2}, "Items": [i]} for i in (1, 2, 3)]),
    ({"ItemBatcher": {"MaxItemsPerBatch": 3, "MaxInputBytesPerBatchPath": "$.b"}}, [{"Items": [1, 2, 3]}]),
]:
    mapped("batches %s" % json.dumps(fields), dict(fields, ItemsPath="$.l"), {"l": [1, 2, 3], "n": 2, "b": 1000}, mode="DISTRIBUTED", output=expected)
picky = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, "StartAt": "I", "States": dict({"I": failing_item}, **more)}
for field, value, fine in [("ToleratedFailureCountPath", 1, True), ("ToleratedFailureCountPath", 0, False),
                           ("ToleratedFailureCountPath", "1", True), ("ToleratedFailurePercentagePath", "50.5", True), ("ToleratedFailurePercentagePath", "20", False),
                           ("ToleratedFailurePercentagePath", 50, True), ("ToleratedFailurePercentagePath", 20.5, False)]:
    one("Map %s to %s" % (field, json.dumps(value)), {"Type": "Map", "ItemsPath": "$.l", "MaxConcurrency": 1, "ItemProcessor": picky, field: "$.t"}, {"l": [1, 2, 3], "t": value},
        **({"output": [1, 3]} if fine else {"error": "States.ExceedToleratedFailureThreshold"}))
for bad in (-1, "x"):
    one("Map ToleratedFailureCountPath to %s" % bad, {"Type": "Map", "ItemsPath": "$.l", "ItemProcessor": picky, "ToleratedFailureCountPath": "$.t"}, {"l": [1], "t": bad}, error="States.Runtime")
for bad in (101, "101", "nan", "5x", ""):
    one("Map ToleratedFailurePercentagePath to %s" % json.dumps(bad), {"Type": "Map", "ItemsPath": "$.l", "ItemProcessor": picky, "ToleratedFailurePercentagePath": "$.t"}, {"l": [1], "t": bad}, error="States.Runtime")
one("Map both tolerances, one too small", {"Type": "Map", "ItemProcessor": picky, "MaxConcurrency": 1, "ToleratedFailureCount": 0, "ToleratedFailurePercentage": 50}, [1, 2, 3], error="States.ExceedToleratedFailureThreshold")
for most, items in ((2, [1, 2]), (9, [1, 2, 3])):
    mapped("ItemReader MaxItemsPath %d" % most, {"ItemReader": dict(reader, ReaderConfig={"InputType": "JSON", "MaxItemsPath": "$.n"})}, {"n": most}, mode="DISTRIBUTED", output=items,
           mocks={"S": {"0": {"Return": {"Body": "[1,2,3]"}}}})
mapped("ItemReader MaxItemsPath 0", {"ItemReader": dict(reader, ReaderConfig={"InputType": "JSON", "MaxItemsPath": "$.n"})}, {"n": 0}, mode="DISTRIBUTED", error="States.ItemReaderFailed",
       mocks={"S": {"0": {"Return": {"Body": "[1,2,3]"}}}})
for delimiter, sign in (("COMMA", ","), ("PIPE", "|"), ("SEMICOLON", ";"), ("SPACE", " "), ("TAB", "\t")):
    mapped("ItemReader CSV by " + delimiter, {"ItemReader": dict(reader, ReaderConfig={"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "CSVDelimiter": delimiter})}, {}, mode="DISTRIBUTED",
           output=[{"a": "1", "b": "2"}], mocks={"S": {"0": {"Return": {"Body": "a%sb\n1%s2\n" % (sign, sign)}}}})
mapped("ItemReader CSV with a header twice", {"ItemReader": dict(reader, ReaderConfig={"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"})}, {}, mode="DISTRIBUTED", error="States.ItemReaderFailed",
       mocks={"S": {"0": {"Return": {"Body": "a,a\n1,2\n"}}}})
mapped("ItemReader CSV with an open quote", {"ItemReader": dict(reader, ReaderConfig={"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"})}, {}, mode="DISTRIBUTED", error="States.ItemReaderFailed",
       mocks={"S": {"0": {"Return": {"Body": "a\n\"1\n"}}}})
mapped("ItemReader JSONL with a bad line", {"ItemReader": dict(reader, ReaderConfig={"InputType": "JSONL"})}, {}, mode="DISTRIBUTED", error="States.ItemReaderFailed",
       mocks={"S": {"0": {"Return": {"Body": "{}\n{\n"}}}})
mapped("ItemReader of an empty file", {"ItemReader": dict(reader, ReaderConfig={"InputType": "JSONL"})}, {}, mode="DISTRIBUTED", output=[], mocks={"S": {"0": {"Return": {"Body": ""}}}})
mapped("ItemReader and ItemSelector", {"ItemReader": dict(reader, ReaderConfig={"InputType": "JSON"}), "ItemSelector": {"v.$": "$$.Map.Item.Value", "k.$": "$.k"}}, {"k": 7}, mode="DISTRIBUTED",
       output=[{"v": 1, "k": 7}], mocks={"S": {"0": {"Return": {"Body": "[1]"}}}})
one("Map with Iterator, the old ItemProcessor", {"Type": "Map", "Iterator": {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}}}, [1, 2], output=[1, 2])
mapped("Label", {"Label": "Each"}, [1], mode="DISTRIBUTED", output=[1])
mapped("an iteration of a distributed Map is an execution of its own", {"ItemSelector": {"v.$": "$$.Map.Item.Value"}}, [5], mode="DISTRIBUTED",
       state={"Type": "Pass", "Parameters": {"in.$": "$$.Execution.Input"}, "End": True}, output=[{"in": {"v": 5}}])
mapped("variables are not seen by a distributed Map's iterations", {}, [5], mode="DISTRIBUTED", state={"Type": "Pass", "Assign": {"inner": 1}, "End": True}, output=[5])

# ResultWriter.
writer = {"Resource": "arn:aws:states:::s3:putObject", "Parameters": {"Bucket": "b", "Prefix": "p"}}
written = {"S": {"0-9": {"Return": {}}}}
run_events = ["ExecutionStarted", ["MapStateEntered", "S"], "MapStateStarted", "MapRunStarted", "MapRunSucceeded", "MapStateSucceeded", ["MapStateExited", "S"], "ExecutionSucceeded"]
mapped("ResultWriter", {"ResultWriter": writer, "ResultSelector": {"bucket.$": "$.ResultWriterDetails.Bucket"}}, [1, 2], mode="DISTRIBUTED", output={"bucket": "b"}, mocks=written, events=run_events)
mapped("ResultWriter over nothing", {"ResultWriter": writer, "ResultSelector": {"bucket.$": "$.ResultWriterDetails.Bucket"}}, [], mode="DISTRIBUTED", output={"bucket": "b"}, mocks=written, events=run_events)
mapped("ResultWriter with a computed bucket", {"ItemsPath": "$.l", "ResultWriter": {"Resource": writer["Resource"], "Parameters": {"Bucket.$": "$.b"}}, "ResultSelector": {"bucket.$": "$.ResultWriterDetails.Bucket"}},
       {"l": [1], "b": "mine"}, mode="DISTRIBUTED", output={"bucket": "mine"}, mocks=written)
for transformation in ("NONE", "COMPACT", "FLATTEN"):
    for kind in ("JSON", "JSONL"):
        mapped("ResultWriter %s as %s" % (transformation, kind), {"ResultWriter": dict(writer, WriterConfig={"OutputType": kind, "Transformation": transformation}), "ResultSelector": {"b.$": "$.ResultWriterDetails.Bucket"}},
               [[1], [2]], mode="DISTRIBUTED", output={"b": "b"}, mocks=written)
mapped("ResultWriter that fails", {"ResultWriter": writer}, [1], mode="DISTRIBUTED", error="States.ResultWriterFailed", mocks={"S": {"0": {"Throw": {"Error": "S3.NoSuchBucket", "Cause": "gone"}}}})
case("ResultWriter that fails is caught", {"S": {"Type": "Map", "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, "StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}},
     "ResultWriter": writer, "Catch": [{"ErrorEquals": ["States.ResultWriterFailed"], "Next": "H"}], "End": True}, "H": {"Type": "Pass", "Result": "caught", "End": True}}, "S", [1], output="caught",
     mocks={"S": {"0": {"Throw": {"Error": "S3.NoSuchBucket", "Cause": "gone"}}}})
for parameters in ({"Prefix": "p"}, {"Bucket": 1}):
    mapped("ResultWriter without a bucket %s" % parameters, {"ResultWriter": dict(writer, Parameters=parameters)}, [1], mode="DISTRIBUTED", error="States.Runtime", mocks=written)
one("ResultWriter of a Map that fails", {"Type": "Map", "MaxConcurrency": 1, "ItemProcessor": picky, "ResultWriter": writer}, [2, 1], error="States.ExceedToleratedFailureThreshold", mocks=written)
mapped("COMPACT", {"ResultWriter": {"WriterConfig": {"Transformation": "COMPACT"}}}, [[1, 2], 3], mode="DISTRIBUTED", output=[[1, 2], 3])
mapped("NONE shows children whole", {"ResultWriter": {"WriterConfig": {"Transformation": "NONE"}}, "ResultSelector": {"in.$": "$[*].Input", "out.$": "$[*].Output", "as.$": "$[*].Status"}}, [{"a": 1}], mode="DISTRIBUTED",
       output={"in": ["{\"a\":1}"], "out": ["{\"a\":1}"], "as": ["SUCCEEDED"]})

# Time limits of tasks, and what else a task has.
answered = {"S": {"0": {"Return": 1}}}
one("TimeoutSecondsPath", dict(task, TimeoutSecondsPath="$.t", HeartbeatSecondsPath="$.h"), {"t": 60, "h": 10}, output=1, mocks=answered)
for field, value in (("TimeoutSecondsPath", "x"), ("TimeoutSecondsPath", 0), ("HeartbeatSecondsPath", -1), ("HeartbeatSecondsPath", None)):
    one("%s to %s" % (field, value), dict(task, **{field: "$.v"}), {"v": value}, error="States.Runtime", mocks=answered)
one("HeartbeatSeconds", dict(task, TimeoutSeconds=60, HeartbeatSeconds=10), {}, output=1, mocks=answered)
one("Credentials", dict(task, Credentials={"RoleArn": "arn:aws:iam::111111111111:role/other"}), {}, output=1, mocks=answered)
one("Credentials by path", dict(task, Credentials={"RoleArn.$": "$.role"}), {"role": "arn:aws:iam::111111111111:role/other"}, output=1, mocks=answered)
sdk = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:dynamodb:describeTable", "Parameters": {"TableName": "t"}}
one("aws-sdk", sdk, {}, output={"Table": {}}, mocks={"S": {"0": {"Return": {"Table": {}}}}})
one("aws-sdk with an error", sdk, {}, error="DynamoDb.ResourceNotFoundException", cause="none such", mocks={"S": {"0": {"Throw": {"Error": "DynamoDb.ResourceNotFoundException", "Cause": "none such"}}}})
case("Version and Comment", {"S": {"Type": "Pass", "Comment": "a state", "End": True}}, "S", 1, output=1, Version="1.0", Comment="a machine")
for names in (["States.Permissions"], ["States.TaskFailed"], ["States.ALL"], ["Other", "States.Permissions"]):
    case("States.Permissions is caught by %s" % names, {"S": dict(task, Catch=[{"ErrorEquals": names, "Next": "H"}], End=True), "H": {"Type": "Pass", "Result": "caught", "End": True}}, "S", {}, output="caught",
         mocks={"S": {"0": {"Throw": {"Error": "States.Permissions", "Cause": "not allowed"}}}})

# Beyond the limit of a payload.
doubled = {"D%d" % i: {"Type": "Pass", "Parameters": {"t.$": "States.Format('{}{}', $.t, $.t)"}, "Next": "D%d" % (i + 1)} for i in range(15)}
doubled["D15"] = {"Type": "Succeed"}
case("a value that grows beyond the limit", doubled, "D0", {"t": "x" * 16}, error="States.DataLimitExceeded")

# Values that differ every time.
for function in ("States.UUID()", "States.Format('{}', States.UUID())"):
    case(function, {"A": {"Type": "Pass", "Parameters": {"u.$": function}, "Next": "C"}, "C": {"Type": "Choice", "Choices": [{"Variable": "$.u", "StringMatches": "*-*-4*-*-*", "Next": "E"}], "Default": "F"},
         "E": {"Type": "Pass", "Result": "a UUID", "End": True}, "F": {"Type": "Fail"}}, "A", {}, output="a UUID")
jsonata("$uuid", {"Type": "Pass", "Output": "{% $length($uuid()) %}"}, {}, output=36)
jsonata("$random", {"Type": "Pass", "Output": "{% $random() < 1 %}"}, {}, output=True)
jsonata("$random with a seed", {"Type": "Pass", "Output": "{% $random(7) = $random(7) %}"}, {}, output=True)
jsonata("$eval is not there", {"Type": "Pass", "Output": "{% $eval('1') %}"}, {}, error="States.QueryEvaluationError")
jsonata("Arguments of a task", dict(task, Arguments="{% {'a': $states.input.a} %}"), {"a": 1}, output={"r": 1}, mocks={"S": {"0": {"Return": {"r": 1}}}})
jsonata("TimeoutSeconds", dict(task, TimeoutSeconds="{% $states.input.t %}"), {"t": 5}, output=1, mocks=answered)
jsonata("TimeoutSeconds that is no number", dict(task, TimeoutSeconds="{% 'x' %}"), {}, error="States.QueryEvaluationError", mocks=answered)
jsonata("MaxConcurrency", {"Type": "Map", "Items": [1, 2], "MaxConcurrency": "{% 1 %}", "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}}}, {}, output=[1, 2])
jsonata("Items that are no array", {"Type": "Map", "Items": "{% 1 %}", "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}}}, {}, error="States.QueryEvaluationError")
jsonata("a Parallel", {"Type": "Parallel", "Branches": [branch("A", {"Type": "Pass", "Output": 1}), branch("B", {"Type": "Pass"})], "Output": "{% $sum($states.result) %}"}, 4, output=5)

for entry in cases:
    print(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
