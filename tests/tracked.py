"""W&B runs for tests: records to export, offline runs read back, a planted machine."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import types

from bmg_sweeps import paths
from bmg_sweeps.records import attempts, manifests, store
from bmg_sweeps.sweep import choices

KEY = "d00df00d" * 5  # Of the form of an API key.
SECRET = "planted-secret-value"
HOST = "planted-host-name"
ARGUMENT = "--planted-argument"
UNREACHABLE = "http://127.0.0.1:9"


class Fake:
    """An online run without a server."""

    def __init__(self, keywords):
        self.keywords = keywords
        self.resumed = keywords["resume"] == "allow"
        self.rows = []
        self.summary = {}
        self.log = self.rows.append
        url = "https://server/someone/bmg-sweeps"
        self.settings = types.SimpleNamespace(sync_dir="/none", project_url=url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def define_metric(self, *_, **__):
        """Takes anything."""

    def finish(self, exit_code):
        """Takes anything."""


def plant(folder, monkeypatch):
    """Makes a machine that would be recognized: home, folder, host, secrets."""
    home, here = folder / "planted_home", folder / "planted_cwd"
    home.mkdir()
    here.mkdir()
    for name in [name for name in os.environ if name.startswith(("WANDB_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NETRC", str(home / ".netrc"))
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.setenv("WANDB_BASE_URL", UNREACHABLE)
    monkeypatch.setenv("MY_SECRET", SECRET)
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    monkeypatch.setattr(sys, "argv", [sys.argv[0], ARGUMENT])
    monkeypatch.chdir(here)
    return home


@functools.cache
def figure_2():
    """Figure 2 with Figure 8's smoke points, of which each method has some."""
    chosen = choices.choose("figure_2", choices.Choice(scale="smoke"))
    wider = choices.choose("figure_8", choices.Choice(scale="smoke"))
    sweep = dataclasses.replace(chosen.sweep, scales=wider.sweep.scales)
    return dataclasses.replace(
        chosen, sweep=sweep, points=wider.points, stop=wider.stop
    )


def failure(kind, message):
    return manifests.Failure(kind, store.TRIES, "Type", message)


def steps(number):
    return [10_000 * (i + 1) for i in range(number)]


def commit(
    storage,
    point,
    number,
    *,
    gap=False,
    failure=None,
    progress=None,
    evaluations=0,
    gain=1.5,
    release=True,
):
    """Makes a record of so many rows; with a gap, rewards 2 and the last are none."""
    rewards = [gain * i for i in range(number)]
    if gap:
        rewards[2] = rewards[-1] = None
    rows = {"env_steps": steps(number), "total_reward": rewards}
    record = store.read(storage, point.trainer, point.id)
    attempts.begin(storage, record).commit(
        progress={"env_steps": progress or 10_000 * number},
        rows=rows | {"training_seconds": [0.1 * i for i in range(number)]},
        validation=_evaluation("validation", evaluations),
        test=_evaluation("test", evaluations),
        provenance={},
        failure=failure,
        release=release,
    )


def _evaluation(split, number):
    if not number:
        return None
    values = [len(split) + i for i in range(number)]
    columns = {"env_steps": [25_000 * (i + 1) for i in range(number)]}
    return columns | {f"{split}_reward": values, "training_seconds": values}


def folders(storage):
    """Names what the runs that are offline are of."""
    runs = pathlib.Path(storage.root, "wandb").glob("offline-run-*/run-*.wandb")
    return sorted(key_of(path.stem.removeprefix("run-")) for path in runs)


def key_of(run_id):
    """What a run is of: a point's run has the identity of its storage, too."""
    match = re.fullmatch("([0-9a-f]{12})-[0-9a-f]{6}", run_id)
    return match[1] if match else run_id


def contents(storage):
    """Reads all files but the lease, which each export takes."""
    files = pathlib.Path(storage.root, "wandb").rglob("*")
    return {
        p: (p.is_file() and p.read_bytes(), p.stat().st_mtime_ns)
        for p in files
        if "lease" not in p.parts and p.name != "wandb"
    }


def assert_nothing_of_the_machine(folder, home):
    """Looks for what was planted in every byte, and for what is really there."""
    paths_ = [str(home), "planted_cwd", str(paths.ROOT), str(pathlib.Path.home())]
    for path in pathlib.Path(folder).rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        for text in (KEY, SECRET, HOST, ARGUMENT, *paths_, "runs/wandb"):
            assert text.encode() not in data, f"{text} in {path}"


def wandb(*arguments):
    """Runs W&B's command line, away from the storage."""
    command = pathlib.Path(sys.executable).with_name("wandb")
    done = subprocess.run(
        [command, *arguments],
        env=os.environ | {"WANDB_DIR": os.getcwd(), "WANDB_ERROR_REPORTING": "false"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def inspect(storage, key):
    """Reads a run as `wandb leet inspect` does, without its 2 s of imports."""
    import wandb.util

    (file,) = pathlib.Path(storage.root, "wandb").glob(f"*/run-{key}*.wandb")
    command = [wandb.util.get_core_path(), "leet", "inspect", "--no-observability"]
    command += ["--json", "--run-file", file, file.parent.parent]
    done = subprocess.run(command, capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def everything(exported):
    return [record for records in exported.runs.values() for record in records]


def of_type(records, kind):
    return [record[kind] for record in records if record["type"] == kind]


def summary(records):
    summary = {}
    for one in of_type(records, "summary"):
        summary |= one["update"]
    return summary
