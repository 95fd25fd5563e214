"""Two-colors with tiny networks, and its learner under a given w, for its tests.

By hand there is one function, the agent's update rule, called as often as it takes.
Programs are compiled once for all tests of a file.
"""

import dataclasses

import jax
import jax.numpy as jnp

from bmg_sweeps.core import networks
from bmg_sweeps.running import binding
from bmg_sweeps.sweep import point
from trainers import _two_colors_agent as agent
from trainers import two_colors_actor_critic as trainer

LENGTH = 4  # N.
# Small, and with no weight at 1, so that one that is left out shows. Adam without a
# first moment keeps the last meta-gradient in its place.
VALUES = {
    "hidden_sizes": (8,),
    "meta_hidden_sizes": (4,),
    "rollout_length": LENGTH,
    "return_steps": 2,
    "discount": 0.9,
    "learning_rate": 0.3,
    "policy_gradient_weight": 0.7,
    "value_weight": 0.5,
    "meta_entropy_weight": 0.3,
    "matching_weight": 5.0,
    "meta_learning_rate": 0.01,
    "meta_adam_b1": 0.0,
}
PLAIN = {  # The structure of a learner whose updates are counted by hand.
    "update_kind": "fixed_entropy_weight",
    "inner_steps": 1,
    "target_steps": 1,
    "matching_function": "policy_kl",
    "target_weight": "meta_entropy_weight",
    "target_rollout": "last_rollout",
    "meta_objective": "updated_policy",
}
init = jax.jit(trainer.init, static_argnums=2)
update = jax.jit(trainer.update)
look_ahead = jax.jit(agent.look_ahead)


def paper_config(**values):
    """The values of the .gin, but for some."""
    gin_text = point.resolve("two_colors_actor_critic", values).gin_text()
    _, config = binding.bind("two_colors_actor_critic", gin_text)
    return jax.tree.map(jnp.asarray, config)


def make_config(**values):
    return paper_config(**VALUES | values)


def plain(config):
    return dataclasses.replace(config, **PLAIN)


def entropy_weight(config, meta_params):
    """B.2, ε_w(t): a network with a sigmoid output, Table 1."""
    network = networks.mlp(config.meta_hidden_sizes, 1)
    return lambda recent: 1 / (1 + jnp.exp(-network.apply(meta_params, recent)[0]))


@jax.jit
def update_learner(config, meta_params, learner):
    return agent.update_rule(config, entropy_weight(config, meta_params))(learner)


def learners(config, meta_params, learner, number):
    """The learner after 1 … `number` updates under w."""
    after = []
    for _ in range(number):
        learner = update_learner(plain(config), meta_params, learner)
        after.append(learner)
    return after


def settle(config, meta_params, learner):
    """The learner with the types that updates keep: in double precision some widen."""
    after = jax.eval_shape(
        update_learner, plain(config), meta_params, learner._replace(pending=None)
    )
    settled = jax.tree.map(
        lambda x, y: x if x.dtype == y.dtype else x.astype(y.dtype),
        learner._replace(pending=None),
        after,
    )
    return settled._replace(pending=learner.pending)


def start(config, seed=2, experience=3):
    """A state in which nothing is pending, after a few updates of the learner."""
    config = plain(config)
    state = init(config, jax.random.key(seed), None)
    learner = settle(config, state.meta_params, state.learner)
    after = learners(config, state.meta_params, learner, experience)
    return state._replace(learner=[learner, *after][-1])


def prepared(config, state):
    """The state as a trainer of this structure holds it."""
    if config.target_rollout == "next_rollout":
        learner = look_ahead(plain(config), state.learner)
        return state._replace(learner=learner)
    return state


def with_uniform_policy(state):
    """All logits at 0: the last layer's weights and biases are."""
    policy = state.learner.params.policy
    last = list(policy)[-1]
    uniform = policy | {last: jax.tree.map(jnp.zeros_like, policy[last])}
    params = state.learner.params._replace(policy=uniform)
    return state._replace(learner=state.learner._replace(params=params))
