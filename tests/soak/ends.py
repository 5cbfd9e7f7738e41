"""Sources and sinks of the soak, written and read without Muster's code."""

import contextlib
import glob
import json
import os
import sqlite3

TABLE = "CREATE TABLE documents (id text, number bigint, name text, text text)"
COLUMNS = "'id', id, 'number', number, 'name', name, 'text', text"


def document(number):
    return {"id": f"d{number:08d}", "number": number, "name": f"name of {number}",
            "text": "x" * (number * 7919 % 200)}


def shape_of(server, index):
    found = server.call("GET", "/" + index)[index]
    return found["mappings"], found["aliases"], found["settings"]["index"]["number_of_shards"]


class JsonlSource:
    index = "documents"  # in OpenSearch

    def __init__(self, folder):
        self.path = os.path.join(folder, "documents.jsonl")
        self.url = f"jsonl:{self.path}?id=id"

    def fill(self, documents, one_shard):
        with open(self.path, "w") as out:
            for number in range(documents):
                out.write(json.dumps(document(number)) + "\n")
        if not one_shard:
            self.url += f"&partition_bytes={max(65536, os.path.getsize(self.path) // 24)}"


class OpenSearchSource:
    SHAPE = {}

    def __init__(self, server):
        self.server = server
        self.index = server.prefix + "documents"
        self.url = f"{server.url}/{self.index}"

    def fill(self, documents, one_shard):
        made = self.server.call("PUT", "/" + self.index, dict(self.SHAPE, settings={
            "number_of_shards": 1 if one_shard else 4, "number_of_replicas": 0}))
        assert made, "the index cannot be made"
        for start in range(0, documents, 2000):
            lines = []
            for n in range(start, min(documents, start + 2000)):
                lines.append(json.dumps({"index": {"_index": self.index,
                                                   "_id": document(n)["id"]}}))
                lines.append(json.dumps(document(n)))
            answer = None
            for _ in range(10):  # a busy server may time out; the ids make a repeat harmless
                answer = answer or self.server.call("POST", "/_bulk", "\n".join(lines) + "\n")
            assert answer and not answer["errors"], answer
        self.server.call("POST", f"/{self.index}/_refresh")


class SnapshotSource(OpenSearchSource):
    """A snapshot of the index, read from its files. The index is deleted before that."""

    # Nothing that a server would derive from the documents.
    SHAPE = {
        "mappings": {"dynamic": "strict", "_meta": {"made": "by hand"}, "properties": {
            "id": {"type": "keyword"}, "number": {"type": "integer"},
            "name": {"type": "text", "analyzer": "whitespace"},
            "text": {"type": "keyword", "index": False, "doc_values": False}}},
        "aliases": {"by-another-name": {}}}

    def fill(self, documents, one_shard):
        super().fill(documents, one_shard)
        folder = self.server.repository + "/backup"
        backup = f"/_snapshot/{self.server.prefix}backup"
        assert self.server.call("PUT", backup, {"type": "fs", "settings": {"location": folder}})
        taken = self.server.call("PUT", backup + "/one?wait_for_completion=true",
                                 {"indices": self.index})
        assert taken and taken["snapshot"]["state"] == "SUCCESS", taken
        self.url = f"snapshot+file://{folder}#{self.index}"
        self.shape = shape_of(self.server, self.index)
        self.server.stop()


class JsonlSink:
    def __init__(self, folder):
        self.path = os.path.join(folder, "target")
        self.url = f"jsonl:{self.path}/"

    def rows(self):
        for name in glob.glob(self.path + "/**/*.jsonl", recursive=True):
            with open(name) as lines:
                for line in lines:
                    yield json.loads(line)


class SqliteSink:
    def __init__(self, folder):
        self.path = os.path.join(folder, "target.db")
        self.url = f"sqlite:{self.path}#documents"
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.execute(TABLE)

    def rows(self):
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            for row in db.execute(f"SELECT json_object({COLUMNS}) FROM documents"):
                yield json.loads(row[0])


class PostgresSink:
    """Also checks writers: only the session that last opened an item may update it."""

    WATCH = """
        CREATE TABLE late (item text);
        CREATE FUNCTION note_late() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            IF NEW.holder_pid <> pg_backend_pid() THEN INSERT INTO late VALUES (NEW.item); END IF;
            RETURN NEW;
          END $$;
        CREATE TRIGGER late BEFORE UPDATE ON muster_progress
          FOR EACH ROW EXECUTE FUNCTION note_late()"""

    def __init__(self, server):
        self.server = server
        self.url = server.url + "#documents"
        self.watched = False
        assert server.query(TABLE) is not None, "the table cannot be made"

    def watch(self):
        if not self.watched and self.server.query(
                "SELECT to_regclass('muster_progress') IS NOT NULL") == "t":
            assert self.server.query(self.WATCH) is not None, "the trigger cannot be made"
            self.watched = True

    def late_writes(self):
        assert self.watched, "watch() was not called"
        return int(self.server.query("SELECT count(*) FROM late"))

    def rows(self):
        # COPY doubles backslashes; the documents have none.
        for line in self.server.rows(f"SELECT json_build_object({COLUMNS}) FROM documents"):
            yield json.loads(line)


class OpenSearchSink:
    def __init__(self, server, index):
        self.server = server
        self.index = index
        self.url = server.url

    def writes(self):
        """The number of writes to the index: each took a sequence number of its shard."""
        stats = self.server.call("GET", f"/{self.index}/_stats/docs?level=shards")
        shards = stats["indices"][self.index]["shards"].values()
        return sum(copy["seq_no"]["max_seq_no"] + 1 for copies in shards for copy in copies
                   if copy["routing"]["primary"])

    def rows(self):
        self.server.call("POST", f"/{self.index}/_refresh")
        page = self.server.call("POST", f"/{self.index}/_search?scroll=5m",
                                {"size": 5000, "sort": ["_doc"]})
        while page["hits"]["hits"]:
            for hit in page["hits"]["hits"]:
                yield hit["_source"]
            page = self.server.call("POST", "/_search/scroll",
                                    {"scroll": "5m", "scroll_id": page["_scroll_id"]})

    def has_shape(self, shape):
        own = shape_of(self.server, self.index)
        print("mappings, aliases and shards: "
              + ("equal" if own == shape else f"{shape} became {own}"))
        return own == shape
