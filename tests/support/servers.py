"""Servers for tests in Python.

Private ones have a folder and a port of their own, and can be restarted. Tests that do not stop
theirs use `postgres` or `opensearch` for the one that the whole test run shares: see shared_servers.
"""

import glob
import json
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

SKIPPED = 77
SUPPORT = os.path.dirname(os.path.abspath(__file__))
THIRD_PARTY = os.path.join(SUPPORT, "..", "..", "build", "third_party")


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


def free_port():
    """A port that no client gets while a server is still starting."""
    while True:
        port = random.randrange(15000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def wait_for(what, condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.1)
    raise RuntimeError(f"{what}: not within {seconds} s")


def unique_prefix():
    """Prefix of this process's names on a shared server."""
    return f"t{os.getpid()}x{secrets.randbelow(100000)}_"


class Server:
    """One process. Servers refuse to run as root, so they run as the user nobody if we are root.

    They end with the thread that started them, even if it crashes.
    """

    SECONDS = 60  # to start

    def __init__(self, folder, name):
        self.port = free_port()
        self.folder = os.path.join(folder, f"{name}-{self.port}")
        os.makedirs(self.folder)
        self.log = os.path.join(self.folder, "server.log")
        self.process = None

    def give_folder(self):
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "nobody", self.folder], check=True)

    def as_server(self, command):
        drop = ["setpriv", "--pdeathsig=KILL"]
        if os.geteuid() == 0:
            pwd.getpwnam("nobody")
            drop += ["--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        return drop + command

    def launch(self):
        """Does not wait until it is ready."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.as_server(self.command()), env=self.environment(),
                                            stdout=log, stderr=log, cwd=self.folder,
                                            start_new_session=True)

    def environment(self):
        return os.environ

    def answers(self):
        """Whether it is ready; an exception says why it never will be."""
        if self.process.poll() is not None:
            with open(self.log, errors="replace") as log:
                raise RuntimeError(f"{self.command()[0]} ended: {log.read()[-2000:]}")
        return self.is_there()

    def start(self):
        self.launch()
        wait_for(self.command()[0], self.answers, self.SECONDS)
        return self

    def stop(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()

    def restart(self):
        self.stop(signal.SIGKILL)
        self.start()

    def discard(self):
        """Stops it at once, without regard to its data."""
        self.stop(signal.SIGKILL)


def postgres_bin():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found:
        skip("PostgreSQL is not installed")
    return found[-1]


class Database:
    """A database queried with psql. `bin`, `port` and `database` locate it."""

    def url_of(self, database):
        return f"postgresql://muster@127.0.0.1:{self.port}/{database}"

    @property
    def url(self):
        return self.url_of(self.database)

    @property
    def store(self):
        return self.url

    def query(self, sql, database=None):
        """None: it failed."""
        done = subprocess.run([f"{self.bin}/psql", "-X", "-A", "-t", "-q",
                               self.url_of(database or self.database), "-c", sql],
                              capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    def rows(self, sql):
        """One row after the other, however many there are."""
        with subprocess.Popen([f"{self.bin}/psql", "-X", "-q", self.url, "-c",
                               f"COPY ({sql}) TO STDOUT"],
                              stdout=subprocess.PIPE, text=True) as reading:
            for line in reading.stdout:
                yield line.rstrip("\n")
        if reading.returncode != 0:
            raise RuntimeError(f"psql: {sql}")


class Postgres(Server, Database):
    """With a role `muster`, a superuser without a password."""

    def __init__(self, folder, _third_party=None):
        self.bin = postgres_bin()
        self.database = "postgres"
        self.settings = ["max_connections=300"]
        super().__init__(folder, "postgres")
        self.give_folder()
        self.data = os.path.join(self.folder, "data")
        template = os.environ.get("MUSTER_TEST_POSTGRES_TEMPLATE")
        if template:
            shutil.copytree(template, self.data)
            self.give_folder()
            return
        subprocess.run(self.as_server([f"{self.bin}/initdb", f"--pgdata={self.data}",
                                       "--username=muster", "--auth=trust", "--encoding=UTF8",
                                       "--locale=C", "--no-sync", "--no-instructions"]),
                       check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def command(self):
        return [f"{self.bin}/postgres", "-D", self.data, "-p", str(self.port), "-k", self.folder,
                "-h", "127.0.0.1"] + [word for setting in self.settings for word in ("-c", setting)]

    def is_there(self):
        return self.query("SELECT 1") == "1"

    def restart(self):
        self.stop()
        self.start()

    def stop(self, how=signal.SIGINT):  # fast: open transactions are cut off
        super().stop(how)

    def discard(self):
        self.stop(signal.SIGQUIT)  # its children end, too


class SharedPostgres(Database):
    """A private database on the shared server. Further ones have names that begin with its name."""

    def __init__(self, port):
        self.bin, self.port = postgres_bin(), port
        self.database = unique_prefix() + "db"
        made = self.query(f"CREATE DATABASE {self.database} TEMPLATE template0", "postgres")
        if made is None:
            raise RuntimeError(f"the shared PostgreSQL at port {port} gives no database")

    def stop(self):
        names = self.query("SELECT datname FROM pg_database WHERE"
                           f" starts_with(datname, '{self.database}')", "postgres")
        for name in (names or "").splitlines():
            self.query(f"DROP DATABASE {name} WITH (FORCE)", "postgres")


def postgres(folder):
    """A private database, which the caller stops at the end: on the shared server if there is one."""
    port = os.environ.get("MUSTER_TEST_POSTGRES")
    return SharedPostgres(port) if port else Postgres(folder).start()


class Cluster:
    """OpenSearch's API; `port` says where."""

    @property
    def base(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self):
        return "opensearch+" + self.base

    @property
    def store(self):
        return self.url

    def call(self, method, path, body=None):
        """The response; None: there was none."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        request = urllib.request.Request(self.base + path, body and body.encode(),
                                         {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return json.load(reply)
        except OSError:
            return None


class OpenSearch(Server, Cluster):
    SECONDS = 300
    prefix = ""

    def __init__(self, folder, third_party=THIRD_PARTY):
        homes = sorted(glob.glob(os.path.join(third_party, "opensearch-2*")))
        homes = [h for h in homes if os.path.exists(h + "/bin/opensearch")]
        javas = sorted(glob.glob("/usr/lib/jvm/*-17-*"))
        if not homes or not javas:
            skip("OpenSearch or Java 17 is not there; see scripts/fetch")
        self.home, self.java = homes[-1], javas[0]
        super().__init__(folder, "opensearch")
        self.repository = self.folder + "/repository"
        for name in ("config/jvm.options.d", "repository", "tmp"):
            os.makedirs(f"{self.folder}/{name}")
        with open(self.folder + "/config/opensearch.yml", "w") as config:
            config.write(f"cluster.name: muster-test\nhttp.port: {self.port}\ntransport.port: 0\n"
                         "network.host: 127.0.0.1\ndiscovery.type: single-node\n"
                         "cluster.routing.allocation.disk.threshold_enabled: false\n"
                         "cluster.max_shards_per_node: 10000\n"
                         f"path.data: {self.folder}/data\npath.logs: {self.folder}/logs\n"
                         f"path.repo: {self.repository}\n")
        shutil.copy(self.home + "/config/log4j2.properties", self.folder + "/config")
        with open(self.home + "/config/jvm.options") as given, \
                open(self.folder + "/config/jvm.options", "w") as options:
            # Without those that write below the distribution's folder.
            options.writelines(line for line in given if "logs/" not in line)
        with open(self.folder + "/config/jvm.options.d/test.options", "w") as options:
            options.write("-Xms768m\n-Xmx768m\n-XX:-UseG1GC\n-XX:+UseSerialGC\n"
                          "-XX:TieredStopAtLevel=1\n-XX:+UnlockDiagnosticVMOptions\n"
                          "-XX:-BytecodeVerificationRemote\n")  # a quarter of its start
        self.give_folder()

    def command(self):
        return [self.home + "/bin/opensearch"]

    def environment(self):
        return dict(os.environ, OPENSEARCH_PATH_CONF=self.folder + "/config",
                    OPENSEARCH_TMPDIR=self.folder + "/tmp", OPENSEARCH_JAVA_HOME=self.java,
                    JAVA_HOME=self.java)

    def is_there(self):
        return self.call("GET", "/_cluster/health?wait_for_status=yellow")


class SharedOpenSearch(Cluster):
    """The shared server. Indices and repositories have names that begin with `prefix`."""

    def __init__(self, port, repository):
        self.port, self.prefix = port, unique_prefix()
        self.repository = os.path.join(repository, self.prefix)

    def stop(self):
        """Removes everything except files written by snapshots."""
        self.call("DELETE", f"/{self.prefix}*")
        self.call("DELETE", f"/_snapshot/{self.prefix}*")


def opensearch(folder, third_party=THIRD_PARTY):
    """Stopped by the caller at the end. The shared server if there is one."""
    port = os.environ.get("MUSTER_TEST_OPENSEARCH")
    if port:
        return SharedOpenSearch(port, os.environ["MUSTER_TEST_OPENSEARCH_REPOSITORY"])
    return OpenSearch(folder, third_party).start()


class DynamoDb(Server):
    """DynamoDB Local, on disk by default."""

    SECONDS = 120

    def __init__(self, folder, third_party=THIRD_PARTY, in_memory=False):
        homes = sorted(glob.glob(os.path.join(third_party, "dynamodb-local-*")))
        if not homes or not shutil.which("javac"):
            skip("DynamoDB Local or a Java compiler is not there; see scripts/fetch")
        self.home = homes[-1]
        super().__init__(folder, "dynamodb")
        os.mkdir(self.folder + "/data")
        self.give_folder()
        self.place = ["-inMemory"] if in_memory else ["-dbPath", self.folder + "/data"]
        os.environ.setdefault("AWS_ACCESS_KEY_ID", "test")
        os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "not-a-secret")
        self.store = f"dynamodb://local/test?create=true&endpoint=http://127.0.0.1:{self.port}"

    def command(self):
        return ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                f"-Duser.home={self.folder}", f"-Djava.library.path={self.home}", "-cp",
                f"{self.home}/*", f"{SUPPORT}/DynamoDbLocal.java", "-port", str(self.port),
                "-sharedDb", "-disableTelemetry"] + self.place

    def is_there(self):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/", b"{}",
            {"X-Amz-Target": "DynamoDB_20120810.ListTables",
             "Content-Type": "application/x-amz-json-1.0",
             "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/local/dynamodb/"
                              "aws4_request, SignedHeaders=host, Signature=none"})
        try:
            with urllib.request.urlopen(request, timeout=10):
                return True
        except OSError:
            return False


KINDS = {"postgresql": Postgres, "opensearch": OpenSearch, "dynamodb": DynamoDb}
