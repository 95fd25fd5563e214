"""The L-th step of the actor-critic's target: on which rollout, under which weight.

The two choices are looked up by name, so that the list of choices is this module.

Source: Flennerhag et al. (2022), Appendix B.2, "BMG" and "Ablation: target bootstrap".
"""

from typing import Any, NamedTuple

import chex
import jax

from trainers import _two_colors_agent


class Target(NamedTuple):
    """x̃, and the states where it is compared with the learner."""

    policy: chex.ArrayTree
    observations: jax.Array  # [N, 30].


def last_rollout(
    config: Any,
    entropy_weight: _two_colors_agent.EntropyWeight,
    learner: _two_colors_agent.Learner,
) -> tuple[Target, _two_colors_agent.Learner]:
    """Steps from x⁽ᵀ⁾ on the rollout of the last update; costs one gradient.

    Source: Flennerhag et al. (2022), Algorithm 3.

    Args:
        config: the point's values.
        entropy_weight: ε_w(t), the meta-learned one.
        learner: after T = K + L − 1 updates.

    Returns:
        The target, and the learner as it was.
    """
    weight = WEIGHTS[config.target_weight](config, entropy_weight, learner)
    policy = _two_colors_agent.stepped_policy(config, weight, learner)
    return Target(policy, learner.rollout.observations[:-1]), learner


def next_rollout(
    config: Any,
    entropy_weight: _two_colors_agent.EntropyWeight,
    learner: _two_colors_agent.Learner,
) -> tuple[Target, _two_colors_agent.Learner]:
    """Steps from x⁽ᵀ⁾ on the rollout of the next update, whose gradients it shares.

    Source: Flennerhag et al. (2022), Appendix B.2, "without an extra gradient
    computation".

    Args:
        config: the point's values.
        entropy_weight: ε_w(t), the meta-learned one.
        learner: after T = K + L − 1 updates.

    Returns:
        The target, and the learner with that rollout's gradients pending.
    """
    learner = _two_colors_agent.look_ahead(config, learner)
    weight = WEIGHTS[config.target_weight](config, entropy_weight, learner)
    policy = _two_colors_agent.pending_policy(config, weight, learner)
    return Target(policy, learner.rollout.observations[:-1]), learner


def meta_entropy_weight(
    config: Any,
    entropy_weight: _two_colors_agent.EntropyWeight,
    learner: _two_colors_agent.Learner,
) -> jax.Array:
    """Returns the fixed ε_meta: the step is on the objective."""
    del entropy_weight, learner
    return config.meta_entropy_weight


def meta_learned_weight(
    config: Any,
    entropy_weight: _two_colors_agent.EntropyWeight,
    learner: _two_colors_agent.Learner,
) -> jax.Array:
    """Returns ε_w(t): the step is one of the update rule; the target degenerates."""
    return entropy_weight(_two_colors_agent.meta_input(config, learner))


ROLLOUTS = {f.__name__: f for f in (last_rollout, next_rollout)}
WEIGHTS = {f.__name__: f for f in (meta_entropy_weight, meta_learned_weight)}
