"""`rerun --until-decided`, from the command to what `report` says of it.

Runs are made up: a run's reward is drawn from its method and seed. Nothing is trained.
"""

import json
import pathlib
import re

import msgspec
import numpy as np
import pytest
import tracked
from scipy import stats

import bmg_sweeps
from bmg_sweeps import __main__, tracking
from bmg_sweeps.analysis import claims, deciding, planned, sequential
from bmg_sweeps.analysis.verdicts import Verdict
from bmg_sweeps.launching import checking, revision, trials
from bmg_sweeps.records import attempts, files, manifests, plans, store
from bmg_sweeps.reporting import decision_table
from bmg_sweeps.sweep import choices
from bmg_sweeps.tracking import points, sweeps

SWEEP = """
from bmg_sweeps.sweep import Claim, Method, Quantity, Scale, Select, Sweep, Tasks, arm

MG, BMG = {{"update_kind": "meta_gradient"}}, {{"update_kind": "bmg"}}
SWEEP = Sweep(
    title="Mine",
    trainer="two_colors_actor_critic",
    scales={{
        "smoke": Scale(
            arm(MG, inner_steps=(1, 7), seed=range(3) {axes})
            + arm(BMG, inner_steps=(3,), seed=range(3) {axes}),
            stop={{"env_steps": 100}},
        ),
        "more": Scale(arm(MG, seed=range(6)), stop={{"env_steps": 9}}),
    }},
    select=Select(
        metric="total_reward", mode="max", budgets={{"env_steps": 1}} {select}
    ),
    methods={{
        "MG": Method(MG, tuned={{"inner_steps": "K"}}),
        "BMG": Method(BMG, tuned={{"inner_steps": "K"}}),
    }},
    claims=({claims},),
    tasks={tasks},
)
"""
CLAIM = 'Claim(text="BMG earns more", more="BMG", less="MG")'
LOSS = 'Quantity(method="BMG", metric="loss")'
PAIRED = f'Claim(text="Its loss is less", more="BMG", less={LOSS})'
NOTHING = 'Quantity(method="BMG", metric="loss", minus="loss")'
VAIN = f'Claim(text="Nothing is more", more={NOTHING}, less={NOTHING})'
OLD = (0, 2, -1)  # What seeds that choose have, beside the method's mean.
LOOKS = (5, 10, 15, 20, 25)
DIVERGED, FAILED = "diverged", "failed"


class House:
    """A storage in which the sweep has been trained, and a trainer of made-up runs."""

    def __init__(self, folder, storage, capsys):
        self.path = folder / "mine.py"
        self.storage = storage
        self.effect, self.draw, self.special = 0.0, 0, {}
        self.devices = {}  # By seed; all others are on the CPU.
        self.left = np.inf  # Runs until the process is killed.
        self.launched = []  # Numbers of runs.
        self._capsys = capsys

    def write(self, *claims, select="", axes="", tasks=None):
        """Writes the sweep."""
        parts = {"select": select, "axes": axes, "tasks": tasks}
        text = SWEEP.format(claims=", ".join(claims or [CLAIM]), **parts)
        self.path.write_text(text)

    def chosen(self, **choice):
        """The sweep's points, at their scale."""
        return choices.choose(str(self.path), choices.Choice(**choice))

    def reward(self, values):
        """K = 7 is the better MG; of fresh seeds normal numbers."""
        is_bmg, seed = values["update_kind"] == "bmg", values["seed"]
        if seed < len(OLD):
            return OLD[seed] + (0 if is_bmg else values["inner_steps"] / 100)
        random = np.random.default_rng([self.draw, seed, is_bmg])
        return float(random.normal()) + self.effect * is_bmg

    def commit(self, p):
        """Makes up a run, or how it ends."""
        special = self.special.get((p.values["update_kind"], p.values["seed"]))
        store.declare(self.storage, p.trainer, p.id, p.gin_text())
        attempt = attempts.begin(
            self.storage, store.read(self.storage, p.trainer, p.id)
        )
        if special:
            failure = manifests.Failure(special, store.TRIES, "ValueError", "no")
            code = revision.fingerprints([p.trainer])[p.trainer]
            noted = {"code": code}
            attempt.commit(failure=failure, provenance=noted, release=True)
            return
        axes = {"env_steps": [100], "training_seconds": [1.0]}
        reward = self.reward(p.values)
        attempt.commit(
            progress={"env_steps": 100},
            rows=axes | {"total_reward": [reward], "loss": [reward / 2 - 0.1]},
            test=axes | {"test_reward": [p.values["rollout_length"] * reward]},
            provenance={"device": self.devices.get(p.values["seed"], "cpu")},
            release=True,
        )

    def train(self, storage, plan, resources, **_):
        """Stands in for a launch by Ray."""
        self.launched.append(len(plan.to_run))
        for p in plan.to_run:
            if not self.left:
                raise Killed
            self.left -= 1
            self.commit(p)
        return trials.Outcome(False, ())

    def run(self, *words):
        """Runs a command; gives its status, output and errors."""
        words = (words[0], str(self.path), *words[1:], "--storage", self.storage.uri)
        status = __main__.main(words)
        return status, *self._capsys.readouterr()

    def rerun(self, *words):
        """Runs the command that this file is about."""
        return self.run("rerun", "--until-decided", *words, "--wandb", "off")

    def plans(self):
        """The files of the plans."""
        return sorted(pathlib.Path(self.storage.root, plans.FOLDER).glob("*"))

    def attempts(self):
        """How often each run was begun."""
        ids = self.storage.folders("two_colors_actor_critic")
        records = store.scan(
            self.storage, [("two_colors_actor_critic", i) for i in ids]
        )
        return {i: record.manifest.attempt for i, record in records.items()}

    def outcomes(self):
        """What the only plan says of its claims."""
        (decision,) = deciding.load(self.storage, self.chosen())
        return decision.outcomes


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture
def make(tmp_path, capsys, monkeypatch):
    """Makes a house of its own."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(checking, "check", lambda *_, **__: {})

    def make_(name="runs"):
        house = House(tmp_path, files.open_storage(str(tmp_path / name)), capsys)
        house.write()
        monkeypatch.setattr(trials, "run", house.train)
        for p in house.chosen().points:
            house.commit(p)
        return house

    return make_


@pytest.fixture
def house(make):
    return make()


def expected(house, looks, level):
    """The first look that decides by Welch, or the last one; and its interval."""
    for number in looks:
        sides = [
            [
                house.reward({"update_kind": kind, "seed": seed, "inner_steps": 7})
                for seed in range(6, 6 + number)
            ]
            for kind in ("bmg", "meta_gradient")
        ]
        found = stats.ttest_ind(*sides, equal_var=False)
        if found.pvalue < level:
            break
    return number, found.pvalue < level, found.confidence_interval(1 - level)


@pytest.mark.parametrize("effect", [0.0, 1.0, 2.0, -1.5])
@pytest.mark.parametrize("draw", range(3))
def test_it_looks_until_a_look_decides(house, effect, draw):
    """By Welch at Pocock's level; seeds 0 to 5 are some scale's, so 6 is the first."""
    house.effect, house.draw = effect, draw
    status, said, _ = house.rerun()
    assert status == 0
    level = sequential.level(5, 0.05)
    number, is_decided, interval = expected(house, LOOKS, level)
    (one,) = house.outcomes()
    assert one.seeds == number
    assert one.verdict.is_decided == is_decided
    assert one.difference[1:] == pytest.approx((interval.low, interval.high))
    if is_decided:
        sign = one.difference.estimate > 0
        assert one.verdict == (Verdict.CONTRADICTED, Verdict.SUPPORTED)[sign]
    assert house.launched == [10] * (number // 5)
    assert "1 claim, seeds 6–30, looked at after 5, 10, 15, 20 and 25 of them" in said
    assert "at the level 0.016 (Pocock's" in said
    assert f" {number} " in next(x for x in said.splitlines() if "earns more" in x)


def test_the_plan_is_there_before_the_first_run(house):
    """With all that is decided by it; nothing of the user's folders is in it."""
    house.left = 0
    with pytest.raises(Killed):
        house.rerun("--by", "2", "--at-most", "6")
    (path,) = house.plans()
    plan = json.loads(path.read_text())
    assert plan["seeds"] == [6, 7, 8, 9, 10, 11]
    assert plan["looks"] == [2, 4, 6]
    assert plan["level"] == sequential.level(3, 0.05)
    assert [claim["text"] for claim in plan["claims"]] == ["BMG earns more"]
    runs = [one["runs"] for one in plan["configurations"]]
    assert [len(of_one) for of_one in runs] == [1, 1]
    assert [of_one[0]["inner_steps"] for of_one in runs] == [3, 7]
    assert not any("seed" in of_one[0] for of_one in runs)
    assert str(house.path.parent) not in path.read_text()


@pytest.mark.parametrize("kills", [(0,), (1,), (9,), (10,), (4, 6, 0, 13, 7)])
def test_killed_within_or_between_looks_it_decides_the_same(make, kills):
    """The table is the same, and no run is made twice: a look is of ten runs."""
    found = []
    for name, lives in (("undisturbed", ()), ("killed", kills)):
        house = make(name)
        house.effect = 0.4
        for runs in lives:
            house.left = runs
            with pytest.raises(Killed):
                house.rerun()
        house.left = np.inf
        status, said, _ = house.rerun()
        assert status == 0
        table = said[said.index("Claims by fresh") :]
        records = house.storage.folders("two_colors_actor_critic")
        found.append((table, house.outcomes(), records))
    assert found[0] == found[1]
    assert found[0][1][0].seeds > 15
    assert max(house.attempts().values()) == 1


def test_a_stored_plan_holds_when_the_sweep_would_choose_otherwise(house):
    """K = 1 is ahead on more seeds by then; the plan has K = 7."""
    house.left = 0
    with pytest.raises(Killed):
        house.rerun()
    text = house.path.read_text().replace("inner_steps=(1, 7)", "inner_steps=(1, 5)")
    house.path.write_text(text.replace("BMG earns more", "In other words"))
    house.left = np.inf
    assert house.rerun()[0] == 0
    (one,) = house.outcomes()
    assert one.less.configuration.values["inner_steps"] == 7
    assert len(house.plans()) == 1


def test_a_second_plan_for_the_same_claims_is_refused(house):
    """In one line; the command without numbers goes on with the first one."""
    assert house.rerun("--by", "5", "--at-most", "10")[0] == 0
    launched = list(house.launched)
    for numbers in (("--by", "2"), ("--at-most", "25"), ("--by", "10")):
        status, said, error = house.rerun(*numbers)
        assert (status, said) == (2, "")
        assert error.count("\n") == 1
        assert "these claims have a plan already, .plans/" in error
        assert "expected --by 5 --at-most 10" in error
    assert house.rerun()[0] == 0
    assert house.launched == launched


def test_of_two_that_plan_at_once_the_first_one_holds(house, monkeypatch):
    """The other one goes on with what was stored."""
    create = plans.create

    def second(storage, plan):
        create(storage, msgspec.structs.replace(plan, level=0.001))
        create(storage, plan)

    monkeypatch.setattr(plans, "create", second)
    status, said, _ = house.rerun()
    assert status == 0
    assert "at the level 0.001" in said
    (plan,) = planned.find(house.storage, house.chosen())
    assert plan.level == 0.001


def test_seeds_with_any_record_are_not_taken(house):
    """Somebody has run BMG on seed 7, half of the way."""
    (p,) = [
        p for p in house.chosen(seeds=(7,)).points if p.values["update_kind"] == "bmg"
    ]
    store.declare(house.storage, p.trainer, p.id, p.gin_text())
    house.rerun("--by", "2", "--at-most", "4")
    (decision,) = deciding.load(house.storage, house.chosen())
    assert decision.plan.seeds == (6, 8, 9, 10)


def test_two_claims_share_the_level(house):
    """Numbers of the same runs are compared in pairs, by Student: r − (r/2 − 0.1)."""
    house.write(CLAIM, PAIRED)
    house.effect = 3.0
    assert house.rerun()[0] == 0
    level = sequential.level(5, 0.05 / 2)
    first, second = house.outcomes()
    number, is_decided, interval = expected(house, LOOKS, level)
    assert (first.seeds, first.verdict.is_decided) == (number, is_decided)
    assert first.difference[1:] == pytest.approx((interval.low, interval.high))
    rewards = [
        house.reward({"update_kind": "bmg", "seed": seed})
        for seed in range(6, 6 + second.seeds)
    ]
    pairs = np.array(rewards) / 2 + 0.1
    found = stats.ttest_1samp(pairs, 0).confidence_interval(1 - level)
    assert second.difference[1:] == pytest.approx((found.low, found.high))


def test_a_claim_that_was_added_later_is_said_to_be_in_no_plan(house):
    """In one line; the first plan goes on without it."""
    assert "In no plan" not in house.rerun("--by", "2", "--at-most", "4")[1]
    assert "In no plan" not in house.rerun()[1]
    house.write(CLAIM, PAIRED)
    status, said, _ = house.rerun()
    assert status == 0
    (line,) = [line for line in said.splitlines() if "In no plan" in line]
    assert line.endswith(": Its loss is less")
    assert len(house.plans()) == 1


def test_of_a_claim_that_is_decided_no_more_seeds_run(house):
    """Beside one without any spread, which is of BMG alone and never decided."""
    house.write(CLAIM, VAIN)
    house.effect = 9.0
    assert house.rerun()[0] == 0
    first, second = house.outcomes()
    assert (first.seeds, first.verdict) == (5, Verdict.SUPPORTED)
    assert (second.seeds, second.reason) == (25, "no spread between seeds")
    assert house.launched == [10, 5, 5, 5, 5]


TASKS = 'Tasks(field="rollout_length", score="test_reward", normalized="test_reward")'


@pytest.mark.parametrize("statistic", [None, "median"])
def test_tasks_of_a_seed_count_together(house, statistic):
    """Of tests, which are 8 and 16 times the reward: both means are 12 times it."""
    house.write(
        CLAIM.replace(")", f", over_tasks={statistic!r})"),
        select=', over=("seed", "rollout_length"), test="test_reward"',
        axes=", rollout_length=(8, 16)",
        tasks=statistic and TASKS,
    )
    for p in house.chosen().points:
        house.commit(p)
    house.effect = 2.0
    assert house.rerun()[0] == 0
    number, _, interval = expected(house, LOOKS, sequential.level(5, 0.05))
    (one,) = house.outcomes()
    assert one.seeds == number
    bounds = 12 * interval.low, 12 * interval.high
    assert one.difference[1:] == pytest.approx(bounds)
    assert house.launched[0] == 20


def test_a_field_that_was_added_since_has_its_old_value(house):
    """The points keep their ids, as a plan of older code lacks the field."""
    house.left = 0
    with pytest.raises(Killed):
        house.rerun()
    chosen, was = house.chosen(), "initial_entropy_weight"
    (plan,) = planned.find(house.storage, chosen)
    assert all(one.runs[0][was] == 0.5 for one in plan.configurations)
    older = tuple(
        plans.Configuration(({k: v for k, v in one.runs[0].items() if k != was},))
        for one in plan.configurations
    )
    changed = msgspec.structs.replace(plan, configurations=older)
    assert planned.by_seed(changed, chosen) == planned.by_seed(plan, chosen)


def test_what_diverged_has_no_number_without_a_floor(house):
    """The claim is open, and no further seed is run for it."""
    house.special["bmg", 7] = DIVERGED
    assert house.rerun()[0] == 0
    (one,) = house.outcomes()
    assert (one.verdict, one.reason) == (Verdict.OPEN, "BMG: diverged in 1 of 5 seeds")
    assert house.launched == [10]


SPEEDS = ", ".join(
    f'{side}=Quantity(method="{method}", metric="env_steps_per_second")'
    for side, method in (("more", "BMG"), ("less", "MG"))
)


def test_speeds_of_two_devices_decide_nothing(house):
    """The other claim is decided on them all the same."""
    house.write(CLAIM, f'Claim(text="BMG is faster", {SPEEDS})')
    house.effect, house.devices = 9.0, {7: "H100"}
    assert house.rerun()[0] == 0
    reward, speed = house.outcomes()
    assert reward.verdict == Verdict.SUPPORTED
    reason = "env_steps_per_second on H100 and cpu cannot be compared"
    assert (speed.verdict, speed.reason) == (Verdict.OPEN, reason)


NAMED = CLAIM.replace(
    'more="BMG"', 'more=Quantity(method="BMG", metric="total_reward")'
)


@pytest.mark.parametrize("claim", [CLAIM, NAMED])
def test_what_diverged_counts_as_the_floor_that_the_plan_has(house, claim):
    """Another floor in the sweep's file changes nothing afterwards."""
    house.write(claim, select=", floor=-3.0")
    house.special["bmg", 7] = DIVERGED
    house.rerun("--by", "5", "--at-most", "5")
    house.write(claim, select=", floor=-9.0")
    rewards = [
        house.reward({"update_kind": "bmg", "seed": seed}) for seed in range(6, 11)
    ]
    rewards[1] = -3.0
    (one,) = house.outcomes()
    assert one.more.estimate.mean == pytest.approx(np.mean(rewards))


def test_a_run_that_failed_is_waited_for(house):
    """The look is not made without it, and the same command goes on."""
    house.special["bmg", 7] = FAILED
    status, said, _ = house.rerun()
    assert status == 1
    assert "open: the look at 5 seeds lacks runs" in said
    assert house.outcomes()[0].seeds == 0
    house.special.clear()
    assert house.rerun("--retry")[0] == 0
    assert house.outcomes()[0].seeds >= 5


def test_the_table_says_what_its_numbers_are_numbers_of(house):
    """As every other one: of fresh seeds, at which scale and on which devices."""
    house.devices = {7: "H100"}
    house.rerun("--by", "2", "--at-most", "2")
    (table,) = decision_table.make(house.storage, house.chosen())
    about = "scale smoke; seeds 6–7; trained to 100 env_steps; H100; cpu"
    assert table.about == about


def test_a_dry_run_stores_nothing(house):
    status, said, _ = house.rerun("--dry-run")
    assert status == 0
    assert "seeds 6–30" in said
    assert "10 points: 10 missing" in said
    assert house.plans() == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--by", "1"], "--by 1: expected at least 2"),
        (["--by", "4", "--at-most", "25"], "--at-most 25: expected a multiple of"),
        (["--by", "2", "--at-most", "300"], "--at-most 300: expected a multiple of"),
        (["--seeds", "10-14"], "--seeds: expected none with --until-decided"),
        (["--budget", "env_steps=9"], "--budget: expected none with --until-decided"),
    ],
)
def test_what_makes_no_plan_is_refused(house, words, error):
    status, said, errors = house.rerun(*words)
    assert (status, said) == (2, "")
    assert errors.startswith(f"error: {error}")
    assert errors.count("\n") == 1
    assert house.plans() == []


def test_looks_without_a_plan_are_refused(house):
    status, _, errors = house.run("rerun", "--by", "5")
    assert (status, errors) == (
        2,
        "error: --by, --at-most: expected --until-decided as well\n",
    )


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (CLAIM.replace(")", ", are_equal=True)"), claims.NO_MARGIN),
        (CLAIM.replace(")", ", equal_within=50.0)"), "supported"),
        (PAIRED.replace("loss", "no"), "BMG: no is no column of its rows"),
    ],
)
def test_claims_that_seeds_cannot_decide_are_not_planned(house, claim, reason):
    """That two are equal without a margin, what is decided, what has no numbers."""
    house.write(claim)
    status, _, errors = house.rerun()
    assert status == 2
    assert errors.startswith("error: --until-decided: expected a claim of ")
    assert errors.endswith(f"its claims are: {reason}\n")
    assert house.plans() == []


@pytest.mark.parametrize(
    ("effect", "verdict"), [(0.0, Verdict.SUPPORTED), (9.0, Verdict.CONTRADICTED)]
)
def test_that_two_are_equal_is_decided_by_its_margin(house, effect, verdict):
    house.write(CLAIM.replace(")", ", equal_within=1.5)"))
    house.effect = effect
    assert house.rerun()[0] == 0
    assert house.outcomes()[0].verdict == verdict


def test_a_report_shows_the_decision(house):
    house.effect = 2.0
    assert "Claims by fresh seeds" not in house.run("report")[1]
    assert house.rerun()[0] == 0
    for form in ("text", "markdown"):
        said = house.run("report", "--format", form)[1]
        assert "Claims by fresh seeds, at 100 env_steps" in said
        assert "Planned before the first of these runs" in said
    house.run("report", "--format", "html")
    pages = pathlib.Path(house.storage.root, "reports").glob("*.html")
    assert "Claims by fresh seeds" in next(pages).read_text()


def damage(house):
    """Changes what the only plan says; returns the line that tells it."""
    (path,) = house.plans()
    path.write_text(path.read_text().replace('"level": 0.0', '"level": 0.00'))
    return f"plan .plans/{path.name}: not the content that was written"


def test_frames_have_the_decisions(house):
    """One row for each claim of a plan, of these seeds alone; nothing is held out."""
    house.write(CLAIM, VAIN)
    house.effect = 9.0
    house.rerun("--by", "5", "--at-most", "10")
    made = bmg_sweeps.load(str(house.path), storage=house.storage.uri).decisions
    (plan,) = planned.find(house.storage, house.chosen())
    first, second = made.to_dict("records")
    (one, other) = house.outcomes()
    assert (first["claim"], first["verdict"]) == ("BMG earns more", "supported")
    assert (first["seeds"], second["seeds"]) == (5, 10)
    assert tuple(first[n] for n in ("difference", "low", "high")) == one.difference
    assert (first["more"], first["less"]) == ("BMG K=3", "MG K=7")
    for side in ("more", "less"):
        estimate = getattr(one, side).estimate
        assert first[f"{side}_mean"] == estimate.mean
        assert first[f"{side}_deviation"] == estimate.deviation
    assert first["level"] == plan.level == sequential.level(2, 0.05 / 2)
    assert first["plan"] == second["plan"] == plan.name
    assert (second["verdict"], second["reason"]) == ("open", "no spread between seeds")
    assert second["difference"] == other.difference == 0
    assert made.loc[1, ["low", "high"]].isna().all()
    assert made["reason"].isna().tolist() == [True, False]
    types = made.dtypes.astype(str)
    assert (types["verdict"], types["seeds"]) == ("category", "int64")
    assert "2 claims, seeds 6–15, looked at after 5 and 10" in made.attrs["about"]


def test_frames_say_what_a_look_lacks(house):
    house.special["bmg", 7] = FAILED
    house.rerun("--by", "5", "--at-most", "10")
    made = bmg_sweeps.load(str(house.path), storage=house.storage.uri).decisions
    (one,) = made.to_dict("records")
    assert (one["verdict"], one["seeds"]) == ("open", 0)
    assert one["reason"] == "the look at 5 seeds lacks runs"
    assert made[["difference", "more_mean"]].isna().all(axis=None)


def test_frames_of_a_damaged_plan_say_so(house):
    """The other frames are there, and a warning says why this one has no row."""
    house.rerun("--by", "2", "--at-most", "2")
    line = damage(house)
    with pytest.warns(UserWarning, match=re.escape(line)) as warned:
        made = bmg_sweeps.load(str(house.path), storage=house.storage.uri)
    assert len(warned) == 1
    assert pathlib.Path(warned[0].filename) == pathlib.Path(__file__)
    assert len(made.decisions) == 0
    assert made.decisions.attrs["problem"].startswith(line)
    assert len(made.claims) == 1


@pytest.fixture
def exported(house, tmp_path, monkeypatch):
    """Exports the sweep's run offline, and gives what it has."""
    tracked.plant(tmp_path, monkeypatch)

    def exported_():
        chosen = house.chosen()
        line = tracking.export(house.storage, [chosen], "offline").line
        assert "not exported" not in line
        run_id = sweeps.run_id(house.storage, chosen)
        return tracked.summary(tracked.inspect(house.storage, run_id))

    return exported_


def digest(house):
    """That of the sweep's W&B run."""
    chosen = house.chosen()
    records = points.read(house.storage, [chosen])
    return sweeps.describe(house.storage, chosen, records).digest


def test_the_wandb_run_has_a_table_of_each_plan(house, exported):
    """Named for it, with numbers where the report has numbers."""
    assert not [key for key in exported() if "decision" in key]
    house.effect = 9.0
    house.rerun("--by", "5", "--at-most", "10")
    summary = exported()
    (plan,) = planned.find(house.storage, house.chosen())
    key = f"tables/decision_{plan.name.replace('.', '_')}"
    path = summary[f"{key}.path"]
    (file,) = pathlib.Path(house.storage.root, "wandb").glob(f"*/files/{path}")
    table = json.loads(file.read_text())
    ((one,), (row,)) = house.outcomes(), table["data"]
    cells = dict(zip(table["columns"], row, strict=True))
    assert (cells["claim"], cells["seeds"]) == ("BMG earns more", 5)
    assert cells["by fresh seeds"] == "supported"
    assert cells["difference low"] == one.difference.low


def test_the_wandb_run_is_another_when_a_plan_or_its_runs_are(house):
    """And the same as long as nothing has changed."""
    found = [digest(house)]
    house.left = 0
    with pytest.raises(Killed):
        house.rerun("--by", "2", "--at-most", "2")
    found.append(digest(house))
    house.left = 1
    with pytest.raises(Killed):
        house.rerun()
    found.append(digest(house))
    house.left = np.inf
    house.rerun()
    found.append(digest(house))
    assert digest(house) == found[-1]
    damage(house)
    found.append(digest(house))
    assert len(set(found)) == 5


def test_a_damaged_plan_ends_no_export(house, exported):
    """The run says what the report says; its other tables are there."""
    house.rerun("--by", "2", "--at-most", "2")
    line = damage(house)
    summary = exported()
    assert summary["refused/plans"].startswith(line)
    assert "tables/claims.path" in summary
    assert not [key for key in summary if "decision" in key]


def test_a_damaged_plan_is_one_line(house):
    """`report` has it in place of the table, and `rerun` makes no second one."""
    house.rerun("--by", "2", "--at-most", "2")
    line = damage(house)
    status, said, _ = house.run("report")
    assert status == 0
    assert line in said
    status, _, error = house.rerun()
    assert status == 2
    assert error.startswith(f"error: {line}")
    assert error.count("\n") == 1


def test_fresh_seeds_stand_beside_the_others(house):
    """Their own numbers and claims, of what was selected."""
    house.effect = 4.0
    for p in house.chosen(seeds=(10, 11, 12)).points:
        house.commit(p)
    status, said, _ = house.run("report", "--fresh", "10-12")
    assert status == 0
    assert "fresh seeds 10–12" in said
    assert "Claims, by the fresh seeds 10–12 alone" in said
    rewards = [
        house.reward({"update_kind": "bmg", "seed": seed}) for seed in (10, 11, 12)
    ]
    assert f"{np.mean(rewards):.3g} ± " in said
    assert "--fresh 10,11,12" in said


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--fresh", "2-10"], "--fresh: seed 2 was used in the selection"),
        (["--fresh", "x"], "x"),
        (["--fresh", "10", "--format", "csv"], "--fresh: expected another --format"),
    ],
)
def test_fresh_seeds_that_are_none_are_refused(house, words, error):
    status, _, errors = house.run("report", *words)
    assert status == 2
    assert error in errors
    assert errors.count("\n") == 1
