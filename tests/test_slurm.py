"""The Slurm script under a real Slurm, of two nodes on this machine.

`deploy/slurm_on_one_machine.sh` says what that needs.
"""

import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest
import toy_checkout

from bmg_sweeps import paths
from bmg_sweeps.records import files, store

TRAINER = "two_colors_actor_critic"
ENV_STEPS = 40_000_000  # More than a job can do in a minute on its two nodes.
SWEEP = f"""
from bmg_sweeps.sweep import Method, Scale, Select, Sweep, product

POINTS = product(
    update_kind=("fixed_entropy_weight",), inner_steps=(1,), target_steps=(1,),
    hidden_sizes=((8,),), meta_hidden_sizes=((4,),), entropy_weight=(0.1, 0.2),
    seed=range(2),
)
SWEEP = Sweep(
    title="Small",
    trainer="{TRAINER}",
    scales={{"smoke": Scale(POINTS, stop={{"env_steps": {ENV_STEPS}}})}},
    select=Select(metric="total_reward", mode="max", budgets={{"env_steps": 1}}),
    methods={{"all": Method({{}}, tuned={{"entropy_weight": "entropy_weight"}})}},
)
"""
MISSING = [p for p in ("munged", "slurmctld", "slurmd", "ip") if not shutil.which(p)]

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(3000),  # Slurm waits two minutes before it runs a job again.
    pytest.mark.skipif(
        bool(MISSING) or os.geteuid() != 0,
        reason="needs root, and Debian's slurm-wlm, munge and iproute2",
    ),
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    folder = toy_checkout.make(tmp_path_factory.mktemp("slurm") / "checkout")
    shutil.copytree(paths.ROOT / "deploy", folder / "deploy")
    (folder / ".venv").symlink_to(paths.ROOT / ".venv")
    (folder / "sweeps" / "small.py").write_text(SWEEP)
    return folder


@pytest.fixture
def slurm(checkout):
    """Runs commands of Slurm, in the checkout."""
    shell = subprocess.Popen(
        [checkout / "deploy" / "slurm_on_one_machine.sh", "bash"],
        cwd=checkout,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run(command):
        shell.stdin.write(f"{command}\necho END OF OUTPUT\n")
        shell.stdin.flush()
        return "".join(iter(shell.stdout.readline, "END OF OUTPUT\n")).strip()

    yield run
    shell.stdin.close()
    shell.wait(timeout=90)


def state(slurm, job):
    return re.search(r"JobState=(\w+)", slurm(f"scontrol show job {job}"))[1]


def wait_for(slurm, job, states, seconds=400):
    deadline = time.monotonic() + seconds
    while (now := state(slurm, job)) not in states:
        assert time.monotonic() < deadline, (job, now)
        time.sleep(0.5)
    return now


def log(checkout, job):
    return (checkout / f"bmg_sweeps-{job}.log").read_text()


def submit(slurm, storage, minutes):
    """The job is sent SIGTERM a minute before its time limit."""
    return slurm(
        f"sbatch --parsable --time={minutes} --signal=B:TERM@60 --cpus-per-task=1"
        f" deploy/slurm.sh small --storage {storage} --wandb off"
    )


def test_jobs_are_queued_again_until_all_is_done_and_a_canceled_one_is_not(
    checkout, slurm
):
    before = set(pathlib.Path("/tmp").glob("bmg_*"))
    limited = submit(slurm, "limited", minutes=2)
    wait_for(slurm, limited, ["RUNNING"])
    wait_for(slurm, limited, ["PENDING"], 250)  # For two minutes, as Slurm has it.
    assert "the same command goes on from here" in log(checkout, limited)
    assert "not done: queued again" in log(checkout, limited)
    slurm(f"scontrol update JobId={limited} TimeLimit=60")  # Now it may end.

    canceled = submit(slurm, "canceled", minutes=10)
    deadline = time.monotonic() + 90
    while not list((checkout / "canceled").glob(f"{TRAINER}/*/rows-*")):
        assert time.monotonic() < deadline, log(checkout, canceled)
        time.sleep(0.5)
    slurm(f"scancel {canceled}")
    assert wait_for(slurm, canceled, ["CANCELLED"], 90) == "CANCELLED"
    assert "queued again" not in log(checkout, canceled)
    opened = files.open_storage(str(checkout / "canceled"))

    ended = wait_for(slurm, limited, ["COMPLETED", "FAILED", "TIMEOUT"], 2400)
    assert ended == "COMPLETED", log(checkout, limited)
    assert state(slurm, canceled) == "CANCELLED"
    ids = [path.name for path in (checkout / "canceled" / TRAINER).iterdir()]
    found = [store.read(opened, TRAINER, i) for i in ids]
    assert not any(record.is_leased() for record in found)
    steps = [record.progress.get("env_steps", 0) for record in found]
    assert 0 < max(steps) < ENV_STEPS
    assert set(pathlib.Path("/tmp").glob("bmg_*")) - before <= {
        pathlib.Path(slurm("dirname $SLURM_CONF"))
    }

    words = ("launch", "small", "--storage", "calm", "--wandb", "off")
    status, output = toy_checkout.run(checkout, *words, timeout=900)
    assert status == 0, output
    toy_checkout.assert_undisturbed(
        *(
            toy_checkout.records(checkout / storage, TRAINER, ENV_STEPS)
            for storage in ("limited", "calm")
        )
    )
