"""Leaky V-trace: returns and advantages of rollouts that another policy collected.

Ratios of probabilities correct for the other policy, and grow without bound. V-trace
truncates them. The leaky form mixes the full ratio back in, by 1 − α: α then trades
bias against variance, and can be meta-learned. `trust_region` says which states are too
far from the other policy to be corrected; `losses` takes what comes out here.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp


class VTrace(NamedTuple):
    """What a rollout says of its states and actions, in units of return."""

    targets: jax.Array  # G_t, [T, ...], what v(s_t) is to become.
    advantages: jax.Array  # [T, ...], of a_t; ρ_t is in it.


def leaky_v_trace(
    values: jax.Array,
    rewards: jax.Array,
    discounts: jax.Array,
    ratios: jax.Array,
    relevant: jax.Array,
    leak: jax.Array,
    trace_decay: jax.Array,
    max_rho: jax.Array,
    max_c: jax.Array,
) -> VTrace:
    """Computes the leaky V-trace target, and the advantages that go with it.

        ρ_t = α min(η_t, ρ̄) + (1 − α) η_t
        c_t = λ (α min(η_t, c̄) + (1 − α) η_t)
        δ_t = ρ_t (r_t + γ_t v_{t+1} − v_t)
        G_t − v_t = δ_t + γ_t c_t (G_{t+1} − v_{t+1}), or 0 at an irrelevant state
        advantage_t = ρ_t (r_t + γ_t G_{t+1} − v_t)

    with G_T = v_T. The target of an irrelevant state is its own value, so earlier
    states bootstrap there; its advantage is for callers to leave out.

    Eq. 4 would have ρ_t (G_t − v_t) for the advantage, where ρ_t is already in G_t.
    Here it is that of IMPALA, which has ρ_t once.

    Source: Flennerhag et al. (2022), Appendix C, "STACX", with α_ρ = α_c = α;
    Espeholt et al. (2018), Section 4.2, for the advantage; Schmitt et al. (2020),
    Section 4, for irrelevant states.

    Args:
        values: [T+1, ...] v_t of s_0 … s_T, in units of return.
        rewards: [T, ...] r_t received on reaching s_{t+1}.
        discounts: [T, ...] γ_t on what follows s_{t+1}; 0 at the end of an episode.
        ratios: [T, ...] η_t = π(a_t | s_t) / ν(a_t | s_t), ν the other policy.
        relevant: [T, ...] 1 or True where s_t is relevant, 0 or False elsewhere.
        leak: α in [0, 1], of a shape that broadcasts to the axes behind T; 1 is
            V-trace, 0 truncates nothing.
        trace_decay: λ in [0, 1], of such a shape.
        max_rho: ρ̄, of such a shape.
        max_c: c̄, of such a shape.

    Returns:
        Targets and advantages of s_0 … s_{T−1}.

    Raises:
        AssertionError: the arrays do not fit each other.

    Gradient: flows through all inputs, also to what makes discounts, and to leak and
        trace_decay. For Eq. 4 callers stop it at values, ratios and relevant.
    """
    chex.assert_equal_shape([values[1:], rewards, discounts, ratios, relevant])
    leak, trace_decay, max_rho, max_c = (
        jnp.broadcast_to(x, ratios.shape) for x in (leak, trace_decay, max_rho, max_c)
    )
    rho = leak * jnp.minimum(ratios, max_rho) + (1 - leak) * ratios
    c = trace_decay * (leak * jnp.minimum(ratios, max_c) + (1 - leak) * ratios)
    delta = rho * (rewards + discounts * values[1:] - values[:-1])
    corrections = _discounted_sums(relevant * discounts * c, relevant * delta)
    targets = values[:-1] + corrections
    later = jnp.concatenate([targets[1:], values[-1:]])
    return VTrace(targets, rho * (rewards + discounts * later - values[:-1]))


def _discounted_sums(factors, terms):
    """x_t = terms_t + factors_t x_{t+1}, with x_T = 0; [T, ...].

    A step is the map x ↦ term + factor x. Such maps are composed pairwise, in log₂ T
    rounds, where a loop over time would take T.
    """

    def composed(after, before):
        (factor, term), (outer_factor, outer_term) = after, before
        return outer_factor * factor, outer_term + outer_factor * term

    return jax.lax.associative_scan(composed, (factors, terms), reverse=True)[1]
