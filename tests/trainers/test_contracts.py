"""Every trainer keeps to the contract; see contract_tests."""

import re

import pytest
import small_atari
import small_few_shot
import small_q_lambda
import small_two_colors
import toy_points
import toy_variants
from contract_tests import Contract

from bmg_sweeps import paths
from trainers import _two_colors_meta, _two_colors_statistics, few_shot

ROW, CHUNK = 100, 200  # Environment steps.
EVALUATED, SOURCED = {"evaluation_interval": 10}, {"slope": 2}
# One step compiles fastest; more of them run the same lines.
SHALLOW = {"inner_steps": 1, "target_steps": 2}


def shown_names(trainer):
    """The axes and columns of a trainer in docs/sweeps.md."""
    page = (paths.ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {trainer} \| (`.*) \|$", page, re.MULTILINE)
    return set(re.findall(r"`(\w+[a-z0-9])`", row))


class Shipped(Contract):
    """A trainer of this project, whose network has ReLUs."""

    def test_its_axes_and_columns_are_on_the_page(self, outline, config):
        """All of them; an agent that meta-learns nothing has fewer."""
        names = {*outline.axes, *outline.rows, *outline.evaluations}
        found = {re.sub(r"_\d$", "_i", name) for name in names}
        shown = shown_names(self.trainer)
        assert found <= shown if config.update_kind == "impala" else found == shown

    def test_rows_say_how_many_units_are_dead_and_what_rank_features_have(self, runs):
        """Shares, and numbers of directions."""
        rows = runs.first.tables[0]
        assert all(0 <= share < 1 for share in rows["dead_units"])
        assert all(rank >= 1 for rank in rows["feature_rank"])


class TwoColors(Shipped):
    """Short chunks, with two rows in each."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def surroundings(cls):
        """Steps between rows, and those of a chunk."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_two_colors_statistics, "RECORD_EVERY", ROW)
            patch.setattr(_two_colors_meta, "CHUNK_ENV_STEPS", CHUNK)
            yield


class TestActorCritic(TwoColors):
    """BMG that looks ahead, which has the largest state."""

    trainer = "two_colors_actor_critic"
    values = small_two_colors.VALUES | {
        "inner_steps": 2,
        "target_steps": 2,
        "matching_function": "symmetric_policy_kl",
        "target_weight": "meta_learned_weight",
        "target_rollout": "next_rollout",
        "meta_input": "normalized_mean_rewards",
    }


class TestQLambda(TwoColors):
    """BMG with the largest state."""

    trainer = "two_colors_q_lambda"
    values = small_q_lambda.VALUES | {"meta_input": "normalized_recent_rewards"}


class TestFewShot(Shipped):
    """BMG; chunks are as long as the interval between rows, on any machine."""

    trainer = "few_shot"
    values = small_few_shot.VALUES | small_few_shot.BMG | SHALLOW

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def surroundings(cls):
        """Seconds that a chunk may take."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(few_shot, "_CHUNK_SECONDS", 1e9)
            yield


class TestMinAtar(Shipped):
    """BMG with auxiliary tasks, and the longest row."""

    trainer = "atari"
    values = small_atari.MINATAR | small_atari.BMG


@pytest.mark.slow
class TestMinAtarsFurtherSteps(Contract):
    """K and L above 1, whose batches are more."""

    trainer = "atari"
    values = small_atari.MINATAR | small_atari.LARGEST


class TestAtari(Shipped):
    """A game whose world is a live source; a round is a call, and two make a row."""

    trainer = "atari"
    values = small_atari.PONG | {"game": "freeway"} | small_atari.IMPALA


class Toy(Contract):
    """Trainers of tests, which have no .gin."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def surroundings(cls):
        """Where trainers are looked for."""
        with toy_points.importable():
            yield

    @classmethod
    def gin_text(cls):
        """Binds every field."""
        return toy_variants.gin_text(cls.trainer, **cls.values)


class TestToy(Toy):
    """The smallest trainer."""

    trainer = "toy_trainer"


class TestToyEvaluated(Toy):
    """One that evaluates."""

    trainer = "toy_evaluated"
    values = EVALUATED


class TestToySourced(Toy):
    """One with a source."""

    trainer = "toy_sourced"
    values = SOURCED


class TestToyLive(Toy):
    """One with a world outside JAX."""

    trainer = "toy_live"
