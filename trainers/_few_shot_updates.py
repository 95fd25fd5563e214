"""The update kinds of few-shot classification: what asks for another initialization.

Each is a function of a config, the meta-parameters w and an episode that returns a
meta-loss, whose gradient in w is the task's meta-gradient, and the adapted learner.
"""

import functools
from typing import Any

import haiku as hk
import jax

from bmg_sweeps.core import gradient_descent, matching, meta_gradient, targets
from bmg_sweeps.tasks import episodes
from trainers import _few_shot_learner


def maml(
    config: Any, meta_params: hk.Params, episode: episodes.Episode
) -> tuple[jax.Array, _few_shot_learner.Learner]:
    """Scores the adapted learner on the query images, f(x⁽ᴷ⁾(w)).

    Source: Finn et al. (2017), Eq. 1; Flennerhag et al. (2022), Eq. 1.

    Args:
        config: the point's values.
        meta_params: w.
        episode: the task.

    Returns:
        The meta-loss [], and the adapted learner.

    Gradient: reaches w through all K steps.
    """
    return _after_adaptation(config, meta_params, episode, gradient_descent.descend)


def fomaml(
    config: Any, meta_params: hk.Params, episode: episodes.Episode
) -> tuple[jax.Array, _few_shot_learner.Learner]:
    """Scores the same learner, as if its steps did not depend on w.

    Source: Finn et al. (2017), Section 5.2.

    Args:
        config: the point's values.
        meta_params: w.
        episode: the task.

    Returns:
        The meta-loss [], and the adapted learner.

    Gradient: reaches w as if x⁽ᴷ⁾ were w plus a constant.
    """
    return _after_adaptation(
        config, meta_params, episode, gradient_descent.descend_first_order
    )


def bmg(
    config: Any, meta_params: hk.Params, episode: episodes.Episode
) -> tuple[jax.Array, _few_shot_learner.Learner]:
    """Measures how far the adapted learner is from one that saw the query images.

        μ(x̃, x⁽ᴷ⁾(w)), x̃ by L steps from x⁽ᴷ⁾ on the query images

    Source: Flennerhag et al. (2022), Section 6, Algorithm 7.

    Args:
        config: the point's values.
        meta_params: w.
        episode: the task.

    Returns:
        The meta-loss [], and the adapted learner.

    Gradient: reaches w through the K steps, and through none of the L.
    """
    query = _few_shot_learner.query(episode)

    def target_bootstrap(
        _: hk.Params, learner: _few_shot_learner.Learner
    ) -> tuple[_few_shot_learner.Learner, _few_shot_learner.Learner]:
        def step(learning_rate):
            return lambda learner: _few_shot_learner.descend_on(
                config, learner, query, learning_rate
            )

        target, _ = TARGET_BOOTSTRAPS[config.target_bootstrap](
            learner,
            step(config.learning_rate),
            step(config.target_learning_rate),
            config.target_steps,
        )
        return target, learner  # No learner goes on: the next task starts from w.

    distance = MATCHING_FUNCTIONS[config.matching_function]
    return meta_gradient.bootstrapped_meta_loss(
        meta_params,
        episode,
        inner_loop=functools.partial(_inner_loop, config),
        target_bootstrap=target_bootstrap,
        matching_function=functools.partial(distance, config, query[0]),
    )


UPDATE_KINDS = {f.__name__: f for f in (maml, fomaml, bmg)}
TARGET_BOOTSTRAPS = {
    "objective_step": targets.objective_step,
    "update_rule": lambda learner, update, final_step, num_steps: targets.update_rule(
        learner, update, num_steps
    ),
}


def _of_predictions(divergence):
    """Matches what target and learner say of the query images."""
    return lambda config, images, target, learner: divergence(
        _few_shot_learner.logits(config, target, images),
        _few_shot_learner.logits(config, learner, images),
    )


def _of_params(distance):
    """Matches the variables that tasks change."""
    return lambda config, images, target, learner: distance(
        target.params, learner.params
    )


MATCHING_FUNCTIONS = {
    "policy_kl": _of_predictions(matching.policy_kl),
    "reverse_policy_kl": _of_predictions(matching.reverse_policy_kl),
    "symmetric_policy_kl": _of_predictions(matching.symmetric_policy_kl),
    "squared_euclidean": _of_params(matching.squared_euclidean),
}


def _inner_loop(config, meta_params, episode, descend=gradient_descent.descend):
    """x⁽ᴷ⁾(w)."""
    support = _few_shot_learner.support(episode)
    return _few_shot_learner.adapt(
        config, meta_params, support, config.inner_steps, descend
    )


def _after_adaptation(config, meta_params, episode, descend):
    """The loss of the query images after adaptation, differentiated as `descend` is."""
    query = _few_shot_learner.query(episode)
    return meta_gradient.standard_meta_loss(
        meta_params,
        episode,
        inner_loop=functools.partial(_inner_loop, config, descend=descend),
        objective=lambda learner: _few_shot_learner.loss(config, learner, query),
    )
