"""Target bootstraps ξ: the learner's own future, held up as the learner's goal.

Both unroll the meta-learned update rule from x⁽ᴷ⁾. They differ in the L-th step: a
gradient step on the objective carries information that the update rule does not have;
one more step of the rule itself only confirms it, and derails meta-learning in the
paper's ablation, which is why it is here.
"""

from collections.abc import Callable

import chex
import jax

Step = Callable[[chex.ArrayTree], chex.ArrayTree]


def objective_step(
    params: chex.ArrayTree, update: Step, final_step: Step, num_steps: int
) -> tuple[chex.ArrayTree, chex.ArrayTree]:
    """Takes L − 1 updates of the learner and one gradient step on the objective.

        x̃ = x⁽ᴷ⁺ᴸ⁻¹⁾ − α ∇f(x⁽ᴷ⁺ᴸ⁻¹⁾)

    Source: Flennerhag et al. (2022), Section 3, "Target Bootstrap".

    Args:
        params: x⁽ᴷ⁾, the learner after the inner loop, any pytree.
        update: one update under the current meta-parameters.
        final_step: one gradient step on f; may return only the part of the learner
            that is matched, with whatever the matching function needs beside it.
        num_steps: L, at least 1; L = 1 is a single step on f.

    Returns:
        x̃, as `final_step` gives it, and x⁽ᴷ⁺ᴸ⁻¹⁾, shaped like `params`.

    Raises:
        ValueError: num_steps < 1.

    Gradient: whatever `update` and `final_step` pass on; the meta-loss stops it.
    """
    latest = _repeat(update, num_steps, params)
    return final_step(latest), latest


def update_rule(
    params: chex.ArrayTree, update: Step, num_steps: int
) -> tuple[chex.ArrayTree, chex.ArrayTree]:
    """Takes L updates of the learner and nothing else, x̃ = x⁽ᴷ⁺ᴸ⁾.

    Source: Flennerhag et al. (2022), Appendix B.2, "Ablation: target bootstrap".

    Args:
        params: x⁽ᴷ⁾, the learner after the inner loop, any pytree.
        update: one update under the current meta-parameters.
        num_steps: L, at least 1.

    Returns:
        x̃ and x⁽ᴷ⁺ᴸ⁻¹⁾, both shaped like `params`.

    Raises:
        ValueError: num_steps < 1.

    Gradient: whatever `update` passes on; the meta-loss stops it.
    """
    return objective_step(params, update, update, num_steps)


def _repeat(update: Step, num_steps: int, params: chex.ArrayTree) -> chex.ArrayTree:
    if num_steps < 1:
        raise ValueError(f"num_steps is L and must be at least 1, got {num_steps}")
    return jax.lax.fori_loop(0, num_steps - 1, lambda _, latest: update(latest), params)
