#!/usr/bin/env python3
"""Writes sigv4.jsonl: requests signed by botocore, the signer of AWS's own tools.

Run it where botocore is installed (pip install botocore): make_sigv4.py > sigv4.jsonl
"""
import datetime
import json
from unittest import mock
from urllib.parse import unquote, urlsplit

from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

TIME = datetime.datetime(2026, 2, 28, 23, 59, 59)
KEY = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TOKEN = "IQoJb3JpZ2luX2VjEXAMPLE//////////wEaDGV1LWNlbnRyYWwtMSJ+token=="

HOST = "https://search-x.eu-central-1.es.amazonaws.com"
JSON = [["Content-Type", "application/json"]]
NDJSON = [["Content-Type", "application/x-ndjson"]]
JSON10 = [["Content-Type", "application/x-amz-json-1.0"]]

# name, service, method, url, headers, body, session token
CASES = [
    ("root without a path", "es", "GET", HOST, [], "", None),
    ("empty body of a post", "es", "POST", HOST + "/a/_refresh", [], "", None),
    ("json body", "es", "PUT", HOST + "/a/_doc/1", JSON, '{"a":1.0}', None),
    ("bulk", "es", "POST", HOST + "/_bulk", NDJSON, '{"index":{}}\n{"a":"ü"}\n', None),
    ("session token", "es", "GET", HOST + "/_cat/indices", [], "", TOKEN),
    ("empty and dot segments", "es", "GET", HOST + "//a/./b//../c/", [], "", None),
    ("dots above the root", "es", "GET", HOST + "/../../a/..", [], "", None),
    ("dots that are a name", "es", "GET", HOST + "/.kibana/...", [], "", None),
    ("encoded path", "es", "GET", HOST + "/a%20b/%C3%A9t%c3%a9/x%2Fy", [], "", None),
    ("reserved characters in the path", "es", "GET",
     HOST + "/a:b@c!$&'()*+,;=d/_doc/~x-._", [], "", None),
    ("date math in an index", "es", "GET", HOST + "/%3Clogs-%7Bnow%2Fd%7D%3E/_count", [], "", None),
    ("list and wildcard", "es", "GET", HOST + "/a,b*,-c/_search", [], "", None),
    ("unsorted query", "es", "GET", HOST + "/_search?size=5&from=0&q=x", [], "", None),
    ("one name twice, unsorted", "es", "GET", HOST + "/?b=2&a=z&a=A&a=&b=10", [], "", None),
    ("one name is another's prefix", "es", "GET", HOST + "/?a-b=1&a=2&a.b=3&a%21=4&A=5&_=6",
     [], "", None),
    ("name without value", "es", "POST", HOST + "/_bulk?refresh&pretty=&timeout=5s", [], "", None),
    ("value with equals signs", "es", "GET", HOST + "/?token=a%3D%3Db=", [], "", None),
    ("bare reserved characters in a query", "es", "GET",
     HOST + "/_search?filter_path=hits.hits._id,took&q=a:b*(c)/d@e!'$;", [], "", None),
    ("lower-case hex in a query", "es", "GET", HOST + "/?q=%e2%82%ac%2f%20x", [], "", None),
    ("needlessly encoded query", "es", "GET", HOST + "/?%71=%61%2D%7E%5f", [], "", None),
    ("unicode in a query", "es", "GET", HOST + "/?%E1%88%B4=%F0%9F%A6%8A&a=%C3%BC", [], "", None),
    ("encoded plus, percent and ampersand", "es", "GET", HOST + "/?q=a%2Bb%25%26c", [], "", None),
    ("spaces in headers", "es", "GET", HOST + "/",
     [["My-Header", "  a   b\t\tc  "], ["Other", '"x   y"']], "", None),
    ("headers in any order and case", "es", "GET", HOST + "/",
     [["zulu", "Z"], ["ALPHA", "a"], ["X-Opaque-Id", "7"], ["Mike", "m"]], "", None),
    ("one header twice", "es", "GET", HOST + "/", [["A", " 2 "], ["a", "1"], ["A", "2"]], "", None),
    ("empty header", "es", "GET", HOST + "/", [["X-Empty", ""]], "", None),
    ("unicode header", "es", "GET", HOST + "/", [["X-Name", "Jörg  Müller"]], "", None),
    ("headers that stay unsigned", "es", "GET", HOST + "/",
     [["User-Agent", "muster"], ["Expect", "100-continue"], ["X-Amzn-Trace-Id", "1"]], "", None),
    ("port of its own", "es", "GET", "http://localhost:9200/_cluster/health", [], "", None),
    ("implied port of https", "es", "GET", "https://example.com:443/", [], "", None),
    ("implied port of http", "es", "GET", "http://example.com:80/", [], "", None),
    ("other scheme's port", "es", "GET", "https://example.com:80/", [], "", None),
    ("delete", "es", "DELETE", HOST + "/a/_doc/1?if_seq_no=3&if_primary_term=1", [], "", None),
    ("head", "es", "HEAD", HOST + "/a", [], "", None),
    ("serverless", "aoss", "POST", "https://x.eu-west-1.aoss.amazonaws.com/a/_search?size=1",
     JSON, '{"query":{"match_all":{}}}', TOKEN),
    ("serverless without a body", "aoss", "GET",
     "https://x.eu-west-1.aoss.amazonaws.com/a/_doc/x%20y", [], "", None),
    ("dynamodb", "dynamodb", "POST", "https://dynamodb.eu-central-1.amazonaws.com/",
     JSON10 + [["X-Amz-Target", "DynamoDB_20120810.PutItem"]], '{"TableName":"t"}', TOKEN),
    ("dynamodb local", "dynamodb", "POST", "http://127.0.0.1:8000",
     JSON10 + [["X-Amz-Target", "DynamoDB_20120810.ListTables"]], "{}", None),
    ("glue", "glue", "POST", "https://glue.eu-central-1.amazonaws.com/",
     [["Content-Type", "application/x-amz-json-1.1"], ["X-Amz-Target", "AWSGlue.GetJobRun"]],
     '{"JobName":"j"}', None),
    ("sns form", "sns", "POST", "https://sns.eu-central-1.amazonaws.com/",
     [["Content-Type", "application/x-www-form-urlencoded; charset=utf-8"]],
     "Action=Publish&Version=2010-03-31&Message=a%20b", None),
    ("s3 list", "s3", "GET",
     "https://s3.eu-central-1.amazonaws.com/bucket?prefix=a%2Fb%20c&list-type=2&max-keys=3",
     [], "", None),
    ("s3 keeps its path", "s3", "GET",
     "https://b.s3.eu-central-1.amazonaws.com/a//b/./c/../d%20e/%C3%BC%2B", [], "", TOKEN),
    ("s3 upload", "s3", "PUT", "https://b.s3.eu-central-1.amazonaws.com/k~-._",
     [["x-amz-meta-note", " a  b "], ["Content-Type", "text/plain"]], "hello", None),
    ("s3 subresource", "s3", "POST", "https://b.s3.eu-central-1.amazonaws.com/k?uploads",
     [], "", None),
]


def sign(name, service, method, url, headers, body, token):
    parts = urlsplit(url)
    # botocore encodes decoded parameters itself.
    params = [tuple(unquote(text) for text in pair.partition("=")[::2])
              for pair in parts.query.split("&") if pair]
    request = AWSRequest(method, parts._replace(query="").geturl(), params=params,
                         data=body.encode())
    for key, value in headers:
        request.headers.add_header(key, value)
    signer = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
    signer = signer(Credentials(KEY, SECRET, token), service, "eu-central-1")
    if service == "aoss":
        request.headers["X-Amz-Content-SHA256"] = signer.payload(request)
    with mock.patch("botocore.auth.get_current_datetime", lambda: TIME):
        signer.add_auth(request)
    authorization = request.headers["Authorization"]
    del request.headers["Authorization"]
    canonical = signer.canonical_request(request)
    return {"name": name, "service": service, "method": method, "url": url, "headers": headers,
            "body": body, "token": token or "", "canonical_request": canonical,
            "string_to_sign": signer.string_to_sign(request, canonical),
            "authorization": authorization}


for case in CASES:
    print(json.dumps(sign(*case), ensure_ascii=False))
