"""As much of a W&B server as it takes to receive runs, for tests without a network.

It keeps what it is sent: rows by run and line, and the texts of artifacts. It answers
the requests of the W&B version that the project pins; another one may ask for more.
"""

import contextlib
import gzip
import http.server
import json
import re
import threading


class Server:
    """What has been received, and a lever that cuts the network."""

    def __init__(self):
        self.runs = {}  # Variables of the last upsert, by run id.
        self.lines = {}  # History by run id and line.
        self.files = {}  # Of artifacts, by name.
        self.dies_with = (
            None  # A run of which the first part is received and not answered.
        )
        self.is_dead = False
        self.deleted = set()  # Ids of runs that were; they cannot be used again.
        self.refused = {}  # Status by the beginning of a run's id.
        self.url = None

    def ids(self, key):
        """Lists the runs of a point, by the beginning of their ids."""
        return [run_id for run_id in self.runs if run_id.startswith(key)]

    def delete(self, key):
        """Deletes the runs of a point, as somebody does on the page of a project."""
        for run_id in self.ids(key):
            self.deleted.add(run_id)
            del self.runs[run_id]
            self.lines.pop(run_id, None)

    def status(self, operation, v):
        """Says how an operation is answered: with 409 where an id was deleted."""
        if operation != "UpsertBucket" or not v.get("name"):
            return 200
        refused = [s for key, s in self.refused.items() if v["name"].startswith(key)]
        return 409 if v["name"] in self.deleted else (refused or [200])[0]

    def rows(self, key):
        """Returns the received rows in their order, without W&B's own columns."""
        (run_id,) = self.ids(key)
        lines = self.lines.get(run_id, {})
        assert sorted(lines) == list(range(len(lines)))
        rows = [json.loads(lines[i]) for i in range(len(lines))]
        return [{k: v for k, v in r.items() if not k.startswith("_")} for r in rows]

    def stream(self, run_id, sent):
        """Receives a part of a run's files."""
        history = sent.get("files", {}).get("wandb-history.jsonl")
        if history:
            self.is_dead = bool(self.dies_with) and run_id.startswith(self.dies_with)
            lines = self.lines.setdefault(run_id, {})
            if history["offset"] == 0:
                lines.clear()
            for i, line in enumerate(history["content"]):
                lines[history["offset"] + i] = line

    def answer(self, operation, v):
        """Answers one GraphQL operation."""
        entity = {"id": "e", "name": "someone"}
        project = {"id": "p", "name": "bmg-sweeps", "entity": entity}
        manifest = {"id": "m", "file": self._file("manifest") | {"id": "f"}}
        if operation == "UpsertBucket":
            self.runs[v["name"]] = self.runs.get(v["name"], {}) | {
                key: value for key, value in v.items() if value is not None
            }
            bucket = {"id": "b", "config": "{}", "historyLineCount": 0}
            bucket |= {"name": v["name"], "displayName": v["name"], "project": project}
            return {"upsertBucket": {"bucket": bucket, "inserted": True}}
        if operation == "RunResumeStatus":
            return {"model": project | {"bucket": self._resumed(v["name"])}}
        if operation == "CreateRunFiles":
            files = [self._file(name) | {"name": name} for name in v["files"]]
            return {
                "createRunFiles": {"runID": "b", "uploadHeaders": [], "files": files}
            }
        if operation == "CreateArtifact":
            artifact = {"id": "QQ==", "state": "PENDING"}
            artifact["artifactSequence"] = {"latestArtifact": None}
            return {"createArtifact": {"artifact": artifact}}
        if operation in ("CreateArtifactManifest", "UpdateArtifactManifest"):
            key = operation[0].lower() + operation[1:]
            return {key: {"artifactManifest": manifest}}
        if operation == "CreateArtifactFiles":
            files = v["input"]["artifactFiles"]
            nodes = [self._file(f"artifact/{f['name']}") for f in files]
            more = {"uploadMultipartUrls": None, "artifact": {"id": "QQ=="}}
            edges = [{"node": node | more} for node in nodes]
            return {"createArtifactFiles": {"files": {"edges": edges}}}
        if operation == "CommitArtifact":
            return {"commitArtifact": {"artifact": {"id": "QQ==", "digest": ""}}}
        if operation == "Viewer":
            viewer = {"id": "v", "entity": "someone", "username": "someone"}
            teams = {"edges": []}
            return {"viewer": viewer | {"flags": "{}", "email": "", "teams": teams}}
        if operation == "ServerFeaturesQuery":
            return {"serverInfo": {"features": []}}
        return {"project": {"artifact": None}}

    def _file(self, name):
        url = f"{self.url}/upload/{name}"
        return {"uploadUrl": url, "uploadHeaders": [], "storagePath": name}

    def _resumed(self, run_id):
        if run_id not in self.runs:
            return None
        lines = self.lines.get(run_id, {})
        tail = json.dumps([lines[max(lines)]] if lines else [])
        counts = {"historyLineCount": len(lines), "eventsLineCount": 0}
        texts = {"historyTail": tail, "eventsTail": "[]", "summaryMetrics": "{}"}
        bucket = {"id": "b", "name": run_id, "displayName": run_id, "config": "{}"}
        more = {"logLineCount": 0, "tags": [], "notes": "", "wandbConfig": '{"t": 1}'}
        return bucket | counts | texts | more


@contextlib.contextmanager
def running():
    """Runs a server on this machine while the context is open."""
    server = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self._reply({})

        def do_PUT(self):
            kind, _, name = self.path.removeprefix("/upload/").partition("/")
            if kind == "artifact":
                server.files[name] = self._body().decode()
            self._reply({})

        def do_POST(self):
            sent = json.loads(self._body())
            if self.path.endswith("/file_stream"):
                server.stream(self.path.split("/")[-2], sent)
                self._reply({})
            else:
                operation = re.search(r"(?:query|mutation)\s+(\w+)", sent["query"])[1]
                status = server.status(operation, sent.get("variables"))
                if status != 200:
                    message = "run was previously created and deleted; try a new run id"
                    self._reply({"errors": [{"message": message}]}, status)
                    return
                data = server.answer(operation, sent.get("variables"))
                self._reply({"data": data})

        def _body(self):
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_packed = self.headers.get("Content-Encoding") == "gzip"
            return gzip.decompress(data) if is_packed else data

        def _reply(self, value, status=200):
            if server.is_dead:
                self.close_connection = True
                return  # Without an answer, as when the network is gone.
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server.url = f"http://127.0.0.1:{listening.server_port}"
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield server
        listening.shutdown()
