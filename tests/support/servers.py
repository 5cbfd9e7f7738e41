"""Private servers for tests in Python, each with a folder and a port of its own, that can be restarted."""

import glob
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

SKIPPED = 77


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.1)
    raise RuntimeError(f"{what}: not within {seconds} s")


class Server:
    """One process. Servers refuse to run as root, so they run as nobody where we are root."""

    def __init__(self, folder, name):
        self.port = free_port()
        self.folder = os.path.join(folder, f"{name}-{self.port}")
        os.makedirs(self.folder)
        self.log = os.path.join(self.folder, "server.log")

    def give_folder(self):
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "nobody", self.folder], check=True)

    def as_server(self, command):
        if os.geteuid() != 0:
            return command
        pwd.getpwnam("nobody")
        return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] + command

    def launch(self, command, ready, seconds, **env):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.as_server(command), env=dict(os.environ, **env),
                                            stdout=log, stderr=log, cwd=self.folder,
                                            start_new_session=True)

        def is_ready():
            if self.process.poll() is not None:
                with open(self.log, errors="replace") as log:
                    raise RuntimeError(f"{command[0]} ended: {log.read()[-2000:]}")
            return ready()

        wait_for(command[0], is_ready, seconds)

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait()

    def restart(self):
        self.stop(signal.SIGKILL)
        self.start()


class Postgres(Server):
    def __init__(self, folder, _third_party):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not found:
            skip("PostgreSQL is not installed")
        self.bin = found[-1]
        super().__init__(folder, "postgres")
        self.give_folder()
        self.data = os.path.join(self.folder, "data")
        subprocess.run(self.as_server([f"{self.bin}/initdb", f"--pgdata={self.data}",
                                       "--username=muster", "--auth=trust", "--no-sync"]),
                       check=True, stdout=subprocess.DEVNULL, cwd=self.folder)
        self.url = f"postgresql://muster@127.0.0.1:{self.port}/postgres"
        self.store = self.url
        self.start()

    def start(self):
        self.launch([f"{self.bin}/postgres", "-D", self.data, "-p", str(self.port), "-k",
                     self.folder, "-h", "127.0.0.1", "-c", "max_connections=300"], lambda: self.query("SELECT 1") == "1", 60)

    def query(self, sql):
        done = subprocess.run([f"{self.bin}/psql", "-X", "-A", "-t", "-q", self.url, "-c", sql],
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

    def restart(self):
        self.stop()
        self.start()

    def stop(self, how=signal.SIGINT):  # fast: open transactions are cut off
        super().stop(how)


class OpenSearch(Server):
    def __init__(self, folder, third_party):
        homes = sorted(glob.glob(os.path.join(third_party, "opensearch-2*")))
        homes = [h for h in homes if os.path.exists(h + "/bin/opensearch")]
        javas = sorted(glob.glob("/usr/lib/jvm/*-17-*"))
        if not homes or not javas:
            skip("OpenSearch or Java 17 is not there; see scripts/fetch")
        self.home, self.java = homes[-1], javas[0]
        super().__init__(folder, "opensearch")
        for name in ("config/jvm.options.d", "repository", "tmp"):
            os.makedirs(f"{self.folder}/{name}")
        with open(self.folder + "/config/opensearch.yml", "w") as config:
            config.write(f"cluster.name: muster-test\nhttp.port: {self.port}\ntransport.port: 0\n"
                         "network.host: 127.0.0.1\ndiscovery.type: single-node\n"
                         "cluster.routing.allocation.disk.threshold_enabled: false\n"
                         f"path.data: {self.folder}/data\npath.logs: {self.folder}/logs\n"
                         f"path.repo: {self.folder}/repository\n")
        shutil.copy(self.home + "/config/log4j2.properties", self.folder + "/config")
        with open(self.home + "/config/jvm.options") as given, \
                open(self.folder + "/config/jvm.options", "w") as options:
            # Without those that write below the distribution's folder.
            options.writelines(line for line in given if "logs/" not in line)
        with open(self.folder + "/config/jvm.options.d/test.options", "w") as options:
            options.write("-Xms768m\n-Xmx768m\n-XX:-UseG1GC\n-XX:+UseSerialGC\n"
                          "-XX:TieredStopAtLevel=1\n")
        self.give_folder()
        self.base = f"http://127.0.0.1:{self.port}"
        self.url = self.store = "opensearch+" + self.base
        self.start()

    def start(self):
        self.launch([self.home + "/bin/opensearch"],
                    lambda: self.call("GET", "/_cluster/health?wait_for_status=yellow"), 300,
                    OPENSEARCH_PATH_CONF=self.folder + "/config",
                    OPENSEARCH_TMPDIR=self.folder + "/tmp", OPENSEARCH_JAVA_HOME=self.java,
                    JAVA_HOME=self.java)

    def call(self, method, path, body=None):
        """The answer; None: the server did not give one."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        request = urllib.request.Request(self.base + path, body and body.encode(),
                                         {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return json.load(reply)
        except OSError:
            return None


class DynamoDb(Server):
    """DynamoDB Local, on disk."""

    def __init__(self, folder, third_party):
        homes = sorted(glob.glob(os.path.join(third_party, "dynamodb-local-*")))
        if not homes or not shutil.which("javac"):
            skip("DynamoDB Local or a Java compiler is not there; see scripts/fetch")
        self.home = homes[-1]
        super().__init__(folder, "dynamodb")
        os.mkdir(self.folder + "/data")
        self.give_folder()
        os.environ.setdefault("AWS_ACCESS_KEY_ID", "test")
        os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "not-a-secret")
        self.store = f"dynamodb://local/test?create=true&endpoint=http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "DynamoDbLocal.java")
        self.launch(["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                     f"-Duser.home={self.folder}", f"-Djava.library.path={self.home}", "-cp",
                     f"{self.home}/*", program, "-port", str(self.port), "-sharedDb",
                     "-disableTelemetry", "-dbPath", self.folder + "/data"], self.is_there, 120)

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
