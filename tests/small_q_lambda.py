"""Two-colors with a tiny Q(λ) agent, for its tests; a file compiles programs once."""

import functools

import jax
import jax.numpy as jnp

from bmg_sweeps.running import binding
from bmg_sweeps.sweep import point
from trainers import _two_colors_q_agent as agent
from trainers import two_colors_q_lambda as trainer

# Small, and with no rate or decay that another one has, so that a swap shows.
VALUES = {
    "hidden_sizes": (8,),
    "meta_hidden_sizes": (4,),
    "num_recent_rewards": 5,
    "target_steps": 3,
    "learning_rate": 0.01,
    "adam_b1": 0.8,
    "adam_b2": 0.95,
    "adam_eps": 1e-3,
    "gradient_decay": 0.6,
    "discount": 0.9,
    "trace_decay": 0.5,
    "epsilon": 0.3,
    "meta_learning_rate": 0.02,
    "meta_adam_b1": 0.7,
    "meta_adam_b2": 0.98,
    "meta_adam_eps": 1e-2,
    "meta_gradient_decay": 0.5,
}
FIXED = {"update_kind": "fixed_epsilon", "target_steps": 1}
init = jax.jit(trainer.init, static_argnums=2)
update = jax.jit(trainer.update)


def make_config(**values):
    """The values of the .gin, but for those above and these."""
    values = VALUES | values
    gin_text = point.resolve("two_colors_q_lambda", values).gin_text()
    _, config = binding.bind("two_colors_q_lambda", gin_text)
    return jax.tree.map(jnp.asarray, config)


@functools.partial(jax.jit, static_argnums=3)
def learner_after(config, epsilon, learner, num_steps):
    """The learner after steps with this ε, whatever its rewards, and where it was."""
    return agent.act_and_learn(config, lambda _: epsilon, learner, num_steps)


def start(config, seed=1, num_meta_updates=4):
    """A state after a few meta-updates."""
    state = init(config, jax.random.key(seed), None)
    for _ in range(num_meta_updates):
        state, _ = update(config, state)
    return state
