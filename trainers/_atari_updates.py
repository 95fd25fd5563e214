"""One meta-update of Atari's agents: `impala`, `stacx` or `bmg`, looked up by name.

All of them update the agent alike; they differ in what they do to its meta-parameters.
They get batches of trajectories, and know neither the world nor the replay.

Source: Flennerhag et al. (2022), Section 5.2, Appendix C and Algorithm 6.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from bmg_sweeps.core import matching, meta_gradient, mixed_mode, optimizers
from trainers import _atari_agent

Metrics = dict[str, jax.Array]


class Agent(NamedTuple):
    """What the inner loop changes."""

    params: Any  # u.
    opt_state: optax.OptState  # h: RMSProp's second moments.


class Learner(NamedTuple):
    """An agent and its meta-parameters."""

    agent: Agent
    meta_params: _atari_agent.HyperParams | None  # w; None where nothing is learned.
    meta_opt_state: optax.OptState
    meta_gradient: _atari_agent.HyperParams | None  # Of the last meta-update.


class Steps(NamedTuple):
    """Agents in the course of a meta-update."""

    before: Agent  # u.
    after: Agent  # u⁽ᴷ⁾.
    target: Agent  # ũ_0, of features and the main task.


class Batches(NamedTuple):
    """The trajectories of a meta-update."""

    main: _atari_agent.Trajectories  # τ: online and replay, of the K-th inner update.
    meta: _atari_agent.Trajectories  # The meta-objective's: τ, and maybe more replay.
    # [K − 1, …] replay of the updates before; None where K is 1.
    inner: _atari_agent.Trajectories | None
    # [L − 1, …] replay of the target's updates; None where L is 1.
    target: _atari_agent.Trajectories | None


class Given(NamedTuple):
    """What a meta-update reads and does not change."""

    config: Any
    batches: Batches
    is_legal: jax.Array  # [A] whether the game has the action.
    learning_rate: jax.Array  # [] of this meta-update.


def init(config: Any, params: Any) -> Learner:
    """Starts to learn from an agent's parameters."""
    agent = Agent(params, _optimizer(config, 0.0).init(params))
    if config.update_kind == impala.__name__:
        return Learner(agent, None, (), None)
    meta_params = _atari_agent.initial_meta_params(config)
    return Learner(
        agent=agent,
        meta_params=meta_params,
        meta_opt_state=_meta_optimizer(config).init(meta_params),
        meta_gradient=jax.tree.map(jnp.zeros_like, meta_params),
    )


def impala(given: Given, learner: Learner) -> tuple[Learner, Metrics]:
    """Makes K updates of the agent on the IMPALA objective, whose weights are fixed.

    Source: Espeholt et al. (2018), with the replay of Flennerhag et al. (2022).

    Args:
        given: the config and the batches.
        learner: before them; without auxiliary tasks.

    Returns:
        The learner after them, and the last update's metrics.
    """
    agent, metrics = _inner_loop(given, None, learner.agent)
    return learner._replace(agent=agent), metrics


def stacx(given: Given, learner: Learner) -> tuple[Learner, Metrics]:
    """Makes K updates of the agent, and one step on w to improve the main task.

        g_w = ∇_w f_τ(u_0⁽ᴷ⁾(w); p), with `meta_loss_weight` in f

    Source: Flennerhag et al. (2022), Appendix C, "STACX"; Zahavy et al. (2020).

    Args:
        given: the config and the batches.
        learner: before them.

    Returns:
        The learner after them, and the last update's metrics.

    Gradient: reaches w through all K updates; the target of f is a constant.
    """

    def objective(outcome: tuple[Agent, Metrics]) -> jax.Array:
        agent, _ = outcome
        params = _atari_agent.main(agent.params)
        hyper_params = _of_one_task(_atari_agent.objective(given.config))
        loss, _ = _atari_agent.loss(
            given.config, params, hyper_params, given.batches.meta, given.is_legal
        )
        return _meta_scale(given.config) * loss

    meta_loss = functools.partial(
        meta_gradient.standard_meta_loss,
        inner_loop=functools.partial(_inner_loop, given),
        objective=objective,
    )
    learner, (agent, metrics), meta_metrics = _update_meta_params(
        given.config, learner, meta_loss
    )
    return learner._replace(agent=agent), metrics | meta_metrics


def bmg(given: Given, learner: Learner) -> tuple[Learner, Metrics]:
    """Makes K updates of the agent, and one step on w towards a target.

        g_w = ∇_w μ_τ(ũ_0, u_0⁽ᴷ⁾(w))

    The target makes L − 1 more updates, each on replay of its own, and then one step
    that `target_last_step` names.

    Source: Flennerhag et al. (2022), Appendix C, "BMG".

    Args:
        given: the config and the batches.
        learner: before them.

    Returns:
        The learner after them, as `next_params` says, and the last update's metrics.

    Gradient: reaches w through the K updates, and through nothing of the target.
    """
    before = learner.agent

    def target_bootstrap(meta_params, outcome):
        agent, metrics = outcome
        target = _target(given, meta_params, agent)
        return target.params, (Steps(before, agent, target), metrics)

    def matching_function(target, outcome):
        agent, _ = outcome
        match = MATCHING_FUNCTIONS[given.config.matching_function]
        return match(given, target, _atari_agent.main(agent.params))

    meta_loss = functools.partial(
        meta_gradient.bootstrapped_meta_loss,
        inner_loop=functools.partial(_inner_loop, given),
        target_bootstrap=target_bootstrap,
        matching_function=matching_function,
    )
    learner, (steps, metrics), meta_metrics = _update_meta_params(
        given.config, learner, meta_loss
    )
    go_on = NEXT_PARAMS[given.config.next_params]
    agent = go_on(given, learner.meta_params, steps)
    return learner._replace(agent=agent), metrics | meta_metrics


UPDATE_KINDS = {f.__name__: f for f in (impala, stacx, bmg)}


def learned(given: Given, meta_params: Any, steps: Steps) -> Agent:
    """Goes on from u⁽ᴷ⁾, as the paper's agents do."""
    del given, meta_params
    return steps.after


def recomputed(given: Given, meta_params: Any, steps: Steps) -> Agent:
    """Goes on from the K updates made once more, under the new w ("NS")."""
    return _inner_loop(given, meta_params, steps.before)[0]


def bootstrapped(given: Given, meta_params: Any, steps: Steps) -> Agent:
    """Goes on from the target, for features and the main task ("DB")."""
    del given, meta_params
    after, target = steps.after, steps.target
    return Agent(
        _atari_agent.merged(after.params, target.params),
        _map_moments(_atari_agent.merged, after.opt_state, target.opt_state),
    )


NEXT_PARAMS = {f.__name__: f for f in (learned, recomputed, bootstrapped)}


def _inner_loop(
    given: Given, meta_params: _atari_agent.HyperParams | None, agent: Agent
) -> tuple[Agent, Metrics]:
    """Makes K − 1 updates on replay, then one on τ; the metrics are the last one's."""
    agent = _update_on_each(given, meta_params, agent, given.batches.inner)
    return _update(given, meta_params, agent, given.batches.main)


def _update_on_each(
    given: Given,
    meta_params: _atari_agent.HyperParams | None,
    agent: Agent,
    batches: _atari_agent.Trajectories | None,
) -> Agent:
    """As many updates as there are batches, [n, …] in each leaf."""
    if batches is None:
        return agent
    return jax.lax.scan(
        lambda agent, batch: (_update(given, meta_params, agent, batch)[0], None),
        agent,
        batches,
    )[0]


def _update(
    given: Given,
    meta_params: _atari_agent.HyperParams | None,
    agent: Agent,
    batch: _atari_agent.Trajectories,
) -> tuple[Agent, Metrics]:
    """One update of the agent, (u, h) ← RMSProp(u, h, ∇_u Σ_i f(u_i; w_i))."""
    (_, metrics), grads = mixed_mode.value_and_gradient(
        _sum_of_tasks, agent.params, meta_params, (given.config, batch, given.is_legal)
    )
    updates, opt_state = _optimizer(given.config, given.learning_rate).update(
        grads, agent.opt_state
    )
    metrics = metrics | {"gradient_norm": optax.tree.norm(grads)}
    return Agent(optax.apply_updates(agent.params, updates), opt_state), metrics


def _sum_of_tasks(params, meta_params, data):
    """The loss of all tasks under w; under p where there is none."""
    config, batch, is_legal = data
    if meta_params is None:
        hyper_params = _of_one_task(_atari_agent.objective(config))
    else:
        hyper_params = _atari_agent.decoded(config, meta_params)
    return _atari_agent.loss(config, params, hyper_params, batch, is_legal)


def _target(given: Given, meta_params: _atari_agent.HyperParams, agent: Agent) -> Agent:
    """ũ_0: L − 1 updates under w, each on its own replay, and the last step."""
    agent = _update_on_each(given, meta_params, agent, given.batches.target)
    return TARGET_LAST_STEPS[given.config.target_last_step](given, meta_params, agent)


def on_all(given: Given, meta_params: Any, agent: Agent) -> Agent:
    """Steps on the IMPALA objective, on online and replay trajectories; the default."""
    del meta_params
    return _objective_step(given, agent, given.batches.meta)


def on_replay(given: Given, meta_params: Any, agent: Agent) -> Agent:
    """Steps on the IMPALA objective, on the replay trajectories only ("R")."""
    del meta_params
    num_online = given.config.num_online
    replay = _atari_agent.Trajectories(
        *(part[:, num_online:] for part in given.batches.meta[:-1]),
        is_online=given.batches.meta.is_online[num_online:],
    )
    return _objective_step(given, agent, replay)


def meta_learned(given: Given, meta_params: Any, agent: Agent) -> Agent:
    """Makes one more update under w, on online and replay trajectories ("w")."""
    agent, _ = _update(given, meta_params, agent, given.batches.meta)
    return _main(agent)


TARGET_LAST_STEPS = {f.__name__: f for f in (on_all, on_replay, meta_learned)}


def _objective_step(
    given: Given, agent: Agent, batch: _atari_agent.Trajectories
) -> Agent:
    """One gradient step of the main task on f(·; p), by the target's optimizer."""
    agent = _main(agent)
    hyper_params = _of_one_task(_atari_agent.objective(given.config))
    grads, _ = jax.grad(_atari_agent.loss, argnums=1, has_aux=True)(
        given.config, agent.params, hyper_params, batch, given.is_legal
    )
    return TARGET_OPTIMIZERS[given.config.target_optimizer](given, agent, grads)


def rmsprop(given: Given, agent: Agent, grads: Any) -> Agent:
    """Steps as the agent's own optimizer would, from its second moments."""
    updates, opt_state = _optimizer(given.config, given.learning_rate).update(
        grads, agent.opt_state
    )
    return Agent(optax.apply_updates(agent.params, updates), opt_state)


def sgd(given: Given, agent: Agent, grads: Any) -> Agent:
    """Steps by plain gradient descent on f, with `meta_loss_weight` in it.

    A rate of ½ and `squared_euclidean` give the meta-gradient of STACX.
    """
    scale = _meta_scale(given.config)
    optimizer = optimizers.sgd(given.config.target_learning_rate * scale)
    updates, _ = optimizer.update(grads, optimizer.init(agent.params))
    return agent._replace(params=optax.apply_updates(agent.params, updates))


TARGET_OPTIMIZERS = {f.__name__: f for f in (rmsprop, sgd)}


def policy_kl(given: Given, target: Any, params: Any) -> jax.Array:
    """KL(π_ũ ‖ π_u), over the states of the meta-objective ("KL")."""
    theirs, ours = _outputs(given, target), _outputs(given, params)
    return given.config.meta_loss_weight * matching.policy_kl(
        theirs.logits, ours.logits
    )


def symmetric_policy_kl(given: Given, target: Any, params: Any) -> jax.Array:
    """KL(π_ũ ‖ π_u) + KL(π_u ‖ π_ũ), over the same states ("KL-S")."""
    theirs, ours = _outputs(given, target), _outputs(given, params)
    return given.config.meta_loss_weight * matching.symmetric_policy_kl(
        theirs.logits, ours.logits
    )


def value(given: Given, target: Any, params: Any) -> jax.Array:
    """(v_ũ − v_u)², over the same states ("V")."""
    theirs, ours = _outputs(given, target), _outputs(given, params)
    return given.config.meta_loss_weight * matching.value(theirs.values, ours.values)


def policy_and_value(given: Given, target: Any, params: Any) -> jax.Array:
    """The sum of `policy_kl` and of `value_matching_weight` times `value` ("KL&V")."""
    return given.config.meta_loss_weight * matching.policy_and_value(
        _outputs(given, target),
        _outputs(given, params),
        given.config.value_matching_weight,
    )


def squared_euclidean(given: Given, target: Any, params: Any) -> jax.Array:
    """‖ũ_0 − u_0‖², of features and the main task; no mean over states ("L2")."""
    del given
    return matching.squared_euclidean(target, params)


MATCHING_FUNCTIONS = {
    f.__name__: f
    for f in (
        policy_kl,
        policy_and_value,
        symmetric_policy_kl,
        value,
        squared_euclidean,
    )
}


def _outputs(given: Given, params: Any) -> _atari_agent.Outputs:
    """What task 0 says of the states in which the agent acted, s_0 … s_{T−1}.

    It is asked of s_T, too, as the losses do: the compiler then asks it once for both.
    """
    observations = given.batches.meta.observations
    outputs = _atari_agent.apply(given.config, params, observations, given.is_legal)
    return jax.tree.map(lambda leaf: leaf[:-1], outputs)


def _update_meta_params(
    config: Any, learner: Learner, meta_loss: Callable[..., Any]
) -> tuple[Learner, Any, Metrics]:
    """One step on w; also returns what the meta-loss has come to beside."""
    (loss, outcome), grads = jax.value_and_grad(meta_loss, has_aux=True)(
        learner.meta_params, learner.agent
    )
    updates, meta_opt_state = _meta_optimizer(config).update(
        grads, learner.meta_opt_state
    )
    learner = learner._replace(
        meta_params=optax.apply_updates(learner.meta_params, updates),
        meta_opt_state=meta_opt_state,
        meta_gradient=grads,
    )
    return learner, outcome, {"meta_loss": loss}


def _main(agent: Agent) -> Agent:
    """The part of an agent that is of features and the main task."""
    return Agent(
        _atari_agent.main(agent.params),
        _map_moments(_atari_agent.main, agent.opt_state),
    )


def _map_moments(function: Callable[..., Any], *opt_states: Any) -> Any:
    """Maps the trees of moments in optimizer states, which are shaped like u."""
    is_moments = lambda tree: isinstance(tree, dict) and "torso" in tree  # noqa: E731
    return jax.tree.map(function, *opt_states, is_leaf=is_moments)


def _meta_scale(config: Any) -> jax.Array:
    """What `loss` is multiplied by to become a meta-objective.

    It then has `meta_loss_weight` in place of `loss_weight`.
    """
    return config.meta_loss_weight / config.loss_weight


def _of_one_task(hyper_params: _atari_agent.HyperParams) -> _atari_agent.HyperParams:
    return jax.tree.map(lambda value: jnp.reshape(value, 1), hyper_params)


def _optimizer(config: Any, learning_rate: Any) -> optax.GradientTransformation:
    return optax.chain(
        optimizers.clip_by_global_norm(config.gradient_clip),
        optimizers.rmsprop(
            learning_rate, decay=config.rmsprop_decay, eps=config.rmsprop_eps
        ),
    )


def _meta_optimizer(config: Any) -> optax.GradientTransformation:
    return optax.chain(
        optimizers.clip_by_global_norm(config.meta_gradient_clip),
        optax.adam(
            config.meta_learning_rate,
            b1=config.meta_adam_b1,
            b2=config.meta_adam_b2,
            eps=config.meta_adam_eps,
        ),
    )
