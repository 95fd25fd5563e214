"""The cluster files, as far as they can be tried without a cluster.

The Slurm script is run for real, between programs that pretend to be a scheduler's and
write down how they were called.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

import command_words
import pytest
import yaml

from bmg_sweeps.records import files, store
from bmg_sweeps.sweep import choices

ROOT = pathlib.Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
RAY_VERSION = re.search(r"^ray==(\S+)", (ROOT / "requirements.txt").read_text(), re.M)[
    1
]


def load(name):
    return yaml.safe_load((DEPLOY / name).read_text())


def parsed(command):
    """What our parser makes of a command line, from `python -m bmg_sweeps` on."""
    return command_words.parsed(
        shlex.split(command.partition("python -m bmg_sweeps ")[2])
    )


def ray_start(arguments):
    """What Ray's parser makes of the arguments of `ray start`; it starts nothing."""
    from ray.scripts import scripts

    return scripts.start.make_context("ray start", list(arguments)).params


# The commands of all files.


def test_every_command_in_the_readme_parses():
    """Each `python -m bmg_sweeps …` and what `sbatch deploy/slurm.sh` hands to one."""
    blocks = re.findall(r"```\n(.*?)```", (DEPLOY / "README.md").read_text(), re.S)
    found = re.findall(r"python -m bmg_sweeps [^'\n]*", "".join(blocks))
    slurm = re.findall(r"(.*)sbatch .*?deploy/slurm\.sh (.*)", "".join(blocks))
    here = [arguments for before, arguments in slurm if "one_machine.sh" in before]
    (tried,) = (parsed(f"python -m bmg_sweeps launch {words}") for words in here)
    assert (tried.scale, tried.storage) == ("smoke", "runs")
    for arguments in (words for _, words in slurm if words not in here):
        found.append(f"python -m bmg_sweeps launch {arguments}")
    assert len(found) == 4
    for command in found:
        options = parsed(command)
        assert options.scale == "paper"
        assert options.storage != "runs"
    on_aws = parsed(next(command for command in found if "--address" in command))
    assert on_aws.autoscaling  # There is nothing but a head that trains nothing.


def test_the_readme_names_every_file():
    """Each file that a user would apply is linked."""
    text = (DEPLOY / "README.md").read_text()
    for name in (
        "ray_cluster.yaml",
        "kuberay_rayjob.yaml",
        "slurm.sh",
        "slurm_on_one_machine.sh",
    ):
        assert f"]({name})" in text
    assert "deploy/Dockerfile" in text


def test_what_is_secret_is_in_no_commit_and_no_image():
    """The page says so; and its own command reads a file outside of the checkout."""
    assert "*.env" in (ROOT / ".gitignore").read_text().splitlines()
    left_out = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert "**/*.env" in left_out
    asked = re.search(
        r'--from-env-file="?(\S+?)"?\n', (DEPLOY / "README.md").read_text()
    )
    assert asked[1].startswith("$HOME/")


# AWS.


def test_the_aws_file_passes_rays_own_preparation():
    """Ray's schema knows every field, and head and workers have their limits."""
    from ray.autoscaler._private import util

    config = util.prepare_config(load("ray_cluster.yaml"))
    util.validate_config(config)
    worker = config["available_node_types"]["spot_gpu"]
    assert (worker["min_workers"], worker["max_workers"]) == (0, 8)
    assert config["max_workers"] >= worker["max_workers"]
    assert worker["node_config"]["InstanceMarketOptions"] == {"MarketType": "spot"}
    head = config["available_node_types"][config["head_node_type"]]
    assert head["resources"] == {"CPU": 0, "GPU": 0}
    assert "InstanceMarketOptions" not in head["node_config"]


def test_the_aws_file_opens_nothing_but_ssh():
    """No rule beyond Ray's own two, a local dashboard, and a token on every node."""
    config = load("ray_cluster.yaml")
    assert list(config["provider"]["security_group"]) == ["GroupName"]
    commands = config["head_start_ray_commands"] + config["worker_start_ray_commands"]
    starts = [c.partition("ray start ")[2] for c in commands if "ray start" in c]
    head, worker = (ray_start(shlex.split(start)) for start in starts)
    assert head["dashboard_host"] == "127.0.0.1"
    assert head["autoscaling_config"].endswith("ray_bootstrap_config.yaml")
    assert worker["address"].endswith(f":{head['port']}")
    assert "RAY_AUTH_MODE=token" in " ".join(config["setup_commands"])
    assert "~/.ray/auth_token" in config["file_mounts"]


def test_the_aws_file_installs_as_the_makefile_does():
    """The environment is made by make; what is added has what the autoscaler needs."""
    commands = load("ray_cluster.yaml")["setup_commands"]
    assert "cd bmg_sweeps && make .venv/installed" in commands
    assert ".venv/installed:" in (ROOT / "Makefile").read_text()
    (pip,) = [c for c in commands if "pip install" in c]
    assert commands.index(pip) > commands.index("cd bmg_sweeps && make .venv/installed")
    assert {"ray[default]", "boto3", "s3fs"} < set(shlex.split(pip))
    for command in commands:
        subprocess.run(["bash", "-n", "-c", command], check=True)


# Kubernetes.

_POD = {"spec": {"containers": None, "tolerations": None, "serviceAccountName": None}}
_RAY_JOB = {  # The fields of ray.io/v1 that we use, and some that one may come to use.
    "apiVersion": None,
    "kind": None,
    "metadata": {"name": None, "namespace": None, "labels": None},
    "spec": {
        "entrypoint": str,
        "shutdownAfterJobFinishes": bool,
        "ttlSecondsAfterFinished": int,
        "activeDeadlineSeconds": int,
        "backoffLimit": int,
        "runtimeEnvYAML": str,
        "submissionMode": str,
        "suspend": bool,
        "rayClusterSpec": {
            "rayVersion": str,
            "authOptions": {"mode": str, "secretName": str},
            "enableInTreeAutoscaling": bool,
            "autoscalerOptions": {"idleTimeoutSeconds": int, "upscalingMode": str},
            "headGroupSpec": {
                "serviceType": str,
                "rayStartParams": dict,
                "template": _POD,
            },
            "workerGroupSpecs": [
                {
                    "groupName": str,
                    "replicas": int,
                    "minReplicas": int,
                    "maxReplicas": int,
                    "rayStartParams": dict,
                    "template": _POD,
                }
            ],
        },
    },
}


def misfits(value, fields, path=""):
    """Names what a resource has and its definition does not, or of another type."""
    if isinstance(fields, dict):
        for name, child in value.items():
            if name in fields:
                yield from misfits(child, fields[name], f"{path}.{name}")
            else:
                yield f"{path}.{name}"
    elif isinstance(fields, list):
        for i, child in enumerate(value):
            yield from misfits(child, fields[0], f"{path}[{i}]")
    elif fields is not None and type(value) is not fields:
        yield path


def test_the_ray_job_has_the_fields_of_its_definition():
    """No field is unknown, of a wrong type or, among those that must be, missing."""
    job = load("kuberay_rayjob.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert list(misfits(job, _RAY_JOB)) == []
    cluster = job["spec"]["rayClusterSpec"]
    (workers,) = cluster["workerGroupSpecs"]
    for group in (cluster["headGroupSpec"], workers):
        assert all(isinstance(v, str) for v in group["rayStartParams"].values())
        (container,) = group["template"]["spec"]["containers"]
        resources = container["resources"]
        assert resources["requests"] == resources["limits"]
        # As Kubernetes does, KubeRay takes quantities as text.
        assert all(isinstance(v, str) for v in resources["limits"].values())
    assert workers["minReplicas"] == 0 < workers["maxReplicas"]
    assert "nvidia.com/gpu" in resources["limits"]  # The worker's.


def test_the_ray_job_cleans_up_and_keeps_its_secrets_elsewhere():
    """It ends with its launch, is closed, and takes secrets by reference only."""
    spec = load("kuberay_rayjob.yaml")["spec"]
    assert spec["shutdownAfterJobFinishes"]
    assert spec["ttlSecondsAfterFinished"] > 0
    cluster = spec["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    assert cluster["headGroupSpec"]["serviceType"] == "ClusterIP"
    assert cluster["enableInTreeAutoscaling"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        assert [list(source) for source in container["envFrom"]] == [["secretRef"]]
        for variable in container["env"]:
            assert not re.search("KEY|SECRET|TOKEN|PASSWORD", variable["name"])


def test_the_ray_jobs_entrypoint_is_a_launch_that_parses():
    """On the job's own Ray, into object storage, from where the image has the code."""
    entrypoint = load("kuberay_rayjob.yaml")["spec"]["entrypoint"]
    options = parsed(entrypoint)
    assert options.command == "launch"
    assert (options.sweeps, options.scale) == (("figure_2",), "paper")
    assert options.address == "auto"
    assert options.autoscaling  # The group of workers begins empty.
    assert options.storage.startswith("s3://")
    (folder,) = re.findall(r"--chdir=(\S+)", entrypoint)
    assert f"WORKDIR {folder}\n" in (DEPLOY / "Dockerfile").read_text()


def test_ray_has_one_version_everywhere():
    """The image's base, the job and requirements.txt agree."""
    (base,) = re.findall(r"^FROM (\S+)", (DEPLOY / "Dockerfile").read_text(), re.M)
    assert base.startswith(f"rayproject/ray:{RAY_VERSION}-py3")
    job = load("kuberay_rayjob.yaml")
    assert job["spec"]["rayClusterSpec"]["rayVersion"] == RAY_VERSION


# Slurm.

_FAKE = """
import json, os, pathlib, signal, subprocess, sys, time

name, arguments = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
log = pathlib.Path(os.environ["LOG"])


def note(*words):
    secret = os.environ.get("RAY_AUTH_TOKEN")
    with log.open("a") as file:
        file.write(json.dumps([*words, {"token": secret}]) + "\\n")


def until_terminated(status):
    def stop(*_):
        time.sleep(0.2)  # Those that are to wait for it must.
        note(name, "TERM")
        sys.exit(status)

    signal.signal(signal.SIGTERM, stop)
    note(name, *arguments)
    while True:
        time.sleep(0.01)


if name == "ray":
    until_terminated(0)
if name == "python" and "ray.nodes" in arguments[1]:
    if os.environ["NODES"] == "are missing":
        until_terminated(143)
    while log.read_text().count('["ray", ') < int(arguments[3]):
        time.sleep(0.01)
    if os.environ["NODES"] == "fail":
        sys.exit(1)
if name == "python" and arguments[:2] == ["-m", "bmg_sweeps"]:
    if os.environ["LAUNCH"] == "waits":
        until_terminated(1)
note(name, *arguments)
if name == "srun":  # It hands SIGUSR1 on to all; asked to end, it kills.
    command = next(i for i, a in enumerate(arguments) if not a.startswith("--"))
    child = subprocess.Popen(arguments[command:], start_new_session=True)
    signal.signal(signal.SIGUSR1, lambda *_: os.killpg(child.pid, signal.SIGUSR1))
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(child.pid, signal.SIGKILL))
    sys.exit(child.wait())
if name == "getent":
    print(os.environ["IP"], "STREAM", arguments[1])
if name == "scontrol" and "hostnames" in arguments:
    print("n1", "n2", sep="\\n")
if name == "scontrol" and "job" in arguments:
    print(f"JobId=7 JobState={os.environ['STATE']} TimeLimit=1-02:00:00 Reason=None")
if name == "scontrol" and "requeue" in arguments:
    sys.exit(int(os.environ["REQUEUE"]))
if name == "python" and "secrets" in arguments[1]:
    print("a-token")
if name == "python" and arguments[0] == "-m":
    sys.exit(int(os.environ["LAUNCH"]))
"""


class Job:
    """A run of slurm.sh in a folder of its own."""

    def __init__(self, folder, *arguments, is_real=False, **environment):
        self.log = folder / "log"
        self.log.touch()
        programs, submitted = folder / "bin", folder / "checkout"
        programs.mkdir()
        submitted.mkdir()
        if is_real:
            (submitted / ".venv").symlink_to(sys.prefix)
            (submitted / "bmg_sweeps").symlink_to(ROOT / "bmg_sweeps")
        fake = programs / "srun"
        fake.write_text(f"#!{sys.executable}\n{_FAKE}")
        fake.chmod(0o755)
        for name in (
            "scontrol",
            "sbatch",
            "getent",
            *(() if is_real else ("python", "ray")),
        ):
            (programs / name).symlink_to(fake)
        self.process = subprocess.Popen(
            [DEPLOY / "slurm.sh", *arguments],
            env={
                "PATH": f"{programs}:{os.environ['PATH']}",
                "HOME": str(folder),
                "LOG": str(self.log),
                "SLURM_SUBMIT_DIR": str(submitted),
                "SLURM_JOB_ID": "10007",
                "SLURM_JOB_NODELIST": "n[1-2]",
                "SLURM_CPUS_PER_TASK": "3",
                "IP": "192.0.2.1",
                "STATE": "RUNNING",
                "REQUEUE": "0",
                "SECONDS_TO_NAME_HOSTS": "0",
                "NODES": "come",
                "LAUNCH": "0",
            }
            | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def notes(self, *words):
        """How the programs were called, in order; those that begin with `words`."""
        lines = [json.loads(line)[:-1] for line in self.log.read_text().splitlines()]
        return [line for line in lines if line[: len(words)] == list(words)]

    def await_note(self, *words, seconds=20):
        """Waits until a program has been called so."""
        deadline = time.monotonic() + seconds
        while not self.notes(*words):
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def end(self, seconds=20):
        """Exit status and output of the script, once it has ended."""
        output, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, output


LAUNCH = ("python", "-m", "bmg_sweeps", "launch")
AWAIT = re.search(
    r"^await_nodes='(.*?)'$", (DEPLOY / "slurm.sh").read_text(), re.M | re.S
)[1]
REQUEUE = ("scontrol", "requeue", "10007")


@pytest.fixture
def submit(tmp_path):
    """Starts the script, and ends what a failed test leaves of it."""
    jobs = []

    def start(*arguments, **keywords):
        folder = tmp_path / f"job_{len(jobs)}"
        folder.mkdir()
        jobs.append(Job(folder, *arguments, **keywords))
        return jobs[-1]

    yield start
    for job in jobs:
        job.process.terminate()
        job.process.wait(timeout=20)


@pytest.mark.parametrize("name", ["slurm.sh", "slurm_on_one_machine.sh"])
def test_scripts_are_sound(name):
    """Bash parses them, and shellcheck, where there is one, finds nothing."""
    subprocess.run(["bash", "-n", DEPLOY / name], check=True)
    assert os.access(DEPLOY / name, os.X_OK)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", DEPLOY / name], check=True)


def test_slurm_is_asked_for_a_signal_to_the_script_and_a_requeue():
    """Only with B: does the script itself get the signal, in time to commit."""
    text = (DEPLOY / "slurm.sh").read_text()
    asked = re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", text, re.M)
    assert len(asked) == text.count("#SBATCH")
    assert ("signal", "B:TERM@300") in asked
    assert ("requeue", "") in asked
    assert ("ntasks-per-node", "1") in asked
    before_code = text[: text.index("set -uo")]
    assert before_code.count("#SBATCH") == len(asked)  # Slurm reads no further.


def test_head_workers_and_launch_start_in_this_order(submit):
    """Each after the one before it has come up, with one address and one secret."""
    job = submit("figure_2", "--scale", "paper", "--storage", "/shared/my runs")
    assert job.end()[0] == 0
    calls = [n for n in job.notes() if n[0] not in ("scontrol", "getent")]
    kinds = [n[0] if n[0] != "python" else n[1] for n in calls]
    assert kinds == ["-c", "srun", "ray", "-c", "srun", "ray", "-c", "-m"] + ["ray"] * 2
    _, head, on_head, one_up, workers, on_worker, all_up, launch, *ends = calls
    address = "192.0.2.1:20007"
    assert {"--nodes=1", "--ntasks=1", "--nodelist=n1"} < set(head)
    assert {"--nodes=1", "--ntasks=1", "--exclude=n1"} < set(workers)
    assert one_up[-2:] == [address, "1"]
    assert all_up[-2:] == [address, "2"]
    started, joined = ray_start(on_head[2:]), ray_start(on_worker[2:])
    assert started["head"]
    assert f"{started['node_ip_address']}:{started['port']}" == address
    assert joined["address"] == address
    for node in (started, joined):
        assert node["block"]
        assert node["num_cpus"] == 3
        assert node["min_worker_port"] == node["max_worker_port"] == 0
        assert not pathlib.Path(node["temp_dir"]).parent.exists()  # It was its own.
    assert started["temp_dir"] != joined["temp_dir"]
    options = command_words.parsed(launch[3:])
    assert (options.sweeps, options.scale) == (("figure_2",), "paper")
    assert (options.storage, options.address) == ("/shared/my runs", address)
    assert ends == [["ray", "TERM"]] * 2
    tokens = {
        json.loads(line)[-1]["token"] for line in job.log.open() if '"ray"' in line
    }
    assert tokens == {"a-token"}
    assert not any("a-token" in word for note in job.notes() for word in note)


def test_a_launch_that_ends_by_itself_gives_its_status_and_is_not_queued_again(submit):
    """Failed points are failed points, in the next job too."""
    job = submit("figure_2", LAUNCH="3")
    assert job.end()[0] == 3
    assert job.notes("ray", "TERM") == [["ray", "TERM"]] * 2
    assert not job.notes(*REQUEUE)
    assert not job.notes("sbatch")


def test_the_time_limits_signal_reaches_the_launch_and_queues_the_job_again(submit):
    """The launch commits first; then Ray ends; then the job is queued again."""
    job = submit("figure_2", LAUNCH="waits")
    job.await_note(*LAUNCH)
    job.process.send_signal(signal.SIGTERM)
    status, output = job.end()
    assert status == 1, output  # The launch's own, not 143.
    told = [n for n in job.notes() if n[1:] == ["TERM"] or n[:2] == [*REQUEUE[:2]]]
    assert told == [["python", "TERM"], ["ray", "TERM"], ["ray", "TERM"], [*REQUEUE]]
    assert not job.notes("sbatch")


def test_a_signal_while_nodes_are_awaited_queues_the_job_again(submit):
    """No launch is started that would have no time left."""
    job = submit("figure_2", NODES="are missing")
    job.await_note("python", "-c", AWAIT)
    job.await_note("ray")
    job.process.send_signal(signal.SIGTERM)
    assert job.end()[0] == 143
    assert not job.notes(*LAUNCH)
    assert job.notes("ray", "TERM")
    assert job.notes(*REQUEUE)


def test_a_signal_before_anything_has_started_queues_the_job_again(submit):
    """Nor is a node waited for."""
    job = submit("figure_2", SECONDS_TO_NAME_HOSTS="0.5")
    job.await_note("scontrol", "show", "hostnames")
    job.process.send_signal(signal.SIGTERM)
    assert job.end()[0] == 143
    assert not job.notes("python", "-c", AWAIT)
    assert not job.notes(*LAUNCH)
    assert job.notes(*REQUEUE)


def test_where_nodes_do_not_come_up_nothing_is_launched(submit):
    """What is wrong with them would be wrong in the next job."""
    job = submit("figure_2", NODES="fail")
    assert job.end()[0] == 1
    assert len(job.notes("srun")) == 1
    assert not job.notes(*LAUNCH)
    assert not job.notes(*REQUEUE)


def test_a_canceled_job_is_not_queued_again(submit):
    """`scancel` sends the same signal."""
    job = submit("figure_2", LAUNCH="waits", STATE="CANCELLED")
    job.await_note(*LAUNCH)
    job.process.send_signal(signal.SIGTERM)
    assert job.end()[0] == 1
    assert job.notes("python", "TERM")
    assert not job.notes(*REQUEUE)
    assert not job.notes("sbatch")


def test_where_jobs_may_not_be_requeued_a_new_one_is_submitted(submit):
    """With the same arguments, and the same nodes, GPUs and time."""
    words = ["rerun", "figure_2", "--storage", "my runs"]
    asked = {"SLURM_GPUS_PER_NODE": "4", "SLURM_JOB_PARTITION": "long"}
    job = submit(*words, LAUNCH="waits", REQUEUE="1", **asked)
    job.await_note(*LAUNCH[:-1], "rerun", "figure_2")
    job.process.send_signal(signal.SIGTERM)
    job.end()
    (again,) = job.notes("sbatch")
    script = next(i for i, word in enumerate(again) if word.endswith("deploy/slurm.sh"))
    assert set(again[1:script]) == {
        "--nodes=2",
        "--cpus-per-task=3",
        "--gpus-per-node=4",
        "--partition=long",
        "--time=1-02:00:00",
    }
    assert again[script + 1 :] == words


TINY = """
from bmg_sweeps.sweep import Method, Scale, Select, Sweep, product

POINTS = product(
    update_kind=("fixed_entropy_weight",), inner_steps=(1,), target_steps=(1,),
    hidden_sizes=((8,),), meta_hidden_sizes=((4,),), entropy_weight=(0.1, 0.2),
)
SWEEP = Sweep(
    title="Tiny",
    trainer="two_colors_actor_critic",
    scales={"smoke": Scale(POINTS, stop={"env_steps": 2e9})},
    select=Select(metric="total_reward", mode="max", budgets={"env_steps": 1}),
    methods={"all": Method({}, tuned={"entropy_weight": "entropy_weight"})},
)
"""


def own_address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.9", 9))  # Sends nothing, and picks an interface.
        return probe.getsockname()[0]


def steps_done(sweep, storage):
    """How far each point of a sweep has come, by its records."""
    storage = files.open_storage(storage)
    points = choices.choose(sweep, choices.Choice()).points
    found = [store.read(storage, point.trainer, point.id) for point in points]
    rows = [store.rows(storage, record) for record in found if record]
    return [r["env_steps"][-1] if r.get("env_steps") else 0 for r in rows]


@pytest.mark.slow
def test_a_second_job_with_a_real_ray_ends_what_the_first_began(tmp_path, submit):
    """Two nodes (here, two raylets), a point on each, and a signal to the first job."""
    sweep, storage = str(tmp_path / "tiny.py"), str(tmp_path / "runs")
    pathlib.Path(sweep).write_text(TINY)
    arguments = (sweep, "--storage", storage, "--wandb", "off")
    real = {"is_real": True, "IP": own_address(), "SLURM_CPUS_PER_TASK": "1"}
    first = submit(*arguments, **real)
    deadline = time.monotonic() + 120
    while len(begun := steps_done(sweep, storage)) < 2 or min(begun) == 0:
        assert first.process.poll() is None, first.end()[1]
        assert time.monotonic() < deadline
        time.sleep(0.5)
    first.process.send_signal(signal.SIGTERM)
    status, output = first.end(seconds=60)
    assert status == 1, output
    assert first.notes(*REQUEUE)

    enough = max(steps_done(sweep, storage)) + 100_000
    second = submit(*arguments, "--stop", f"env_steps={enough}", **real)
    status, output = second.end(seconds=240)
    assert status == 0, output
    assert min(steps_done(sweep, storage)) >= enough
    assert not second.notes(*REQUEUE)
