"""Two-colors: what the choices matter that the paper leaves to its reader.

Each agent as it is shipped, and with one thing changed: the n of the n-step return and
the agent's rate α, the weight of the critic's loss (2 is a square without its ½), the
meta-learning rate β, the input t of the meta-network, its size, its ε at the start and
its pre-training, for MG the K, whose losses its objective has (of the policy that
acted, or of the one after its update) and their scale (16 is a sum over states, as
BMG's divergence is), and for BMG the scale of the divergence and the data of the
target's last step. It tests no claim of the paper.
"""

from bmg_sweeps.sweep import Curve, Method, Scale, Select, Sweep, arms

AGENT = {"learning_rate": 0.1, "return_steps": 1, "value_weight": 1.0}
META = {
    "meta_learning_rate": 3e-4,
    "meta_input": "mean_rewards",
    "initial_entropy_weight": 0.5,
    "meta_hidden_sizes": (32,),
    "meta_pretraining_steps": 0,
}
OBJECTIVE = {"meta_objective": "updated_policy", "meta_objective_weight": 1.0}
TARGET = {"matching_weight": 16.0, "target_rollout": "last_rollout"}
FIXED = AGENT | {
    "update_kind": "fixed_entropy_weight",
    "inner_steps": 1,
    "target_steps": 1,
    "entropy_weight": 0.2,
}
MG = (AGENT | META | OBJECTIVE) | {
    "update_kind": "meta_gradient",
    "inner_steps": 7,
    "target_steps": 1,
    "meta_entropy_weight": 0.1,
}
BMG = (AGENT | META | TARGET) | {
    "update_kind": "bootstrapped_meta_gradient",
    "inner_steps": 1,
    "target_steps": 7,
    "meta_entropy_weight": 0.0,
}

AGENT_CHOICES = {
    ", ε_TD=2": {"value_weight": 2.0},
    ", α=0.05": {"learning_rate": 0.05},
    ", n=2": {"return_steps": 2},
    ", n=16 α=0.03": {"return_steps": 16, "learning_rate": 0.03},
}
NORMALIZED = {  # As in Luketina et al. (2022).
    "meta_input": "normalized_mean_rewards",
    "meta_hidden_sizes": (64, 64),
}
META_CHOICES = {
    ", β=1e-3": {"meta_learning_rate": 1e-3},
    ", β=1e-4": {"meta_learning_rate": 1e-4},
    ", normalized t": {"meta_input": "normalized_mean_rewards"},
    **{
        f", normalized t, 64 × 64, β={rate:.0e}": NORMALIZED
        | {"meta_learning_rate": rate}
        for rate in (1e-4, 1e-5)
    },
    ", normalized t, 64 × 64, β=1e-04, pre-trained": NORMALIZED
    | {"meta_learning_rate": 1e-4, "meta_pretraining_steps": 1_000},
    ", ε_w(0)=0.1": {"initial_entropy_weight": 0.1},
}
MG_CHOICES = {
    ", ε_TD=2": AGENT_CHOICES[", ε_TD=2"],
    ", α=0.05": AGENT_CHOICES[", α=0.05"],
    ", n=2": AGENT_CHOICES[", n=2"],
    ", K=1": {"inner_steps": 1},
    ", K=3": {"inner_steps": 3},
    ", K=8": {"inner_steps": 8},
    ", acting policy": {"meta_objective": "acting_policy"},
    ", acting policy, K=8": {"meta_objective": "acting_policy", "inner_steps": 8},
    ", objective × 16": {"meta_objective_weight": 16.0},
    ", acting policy, objective × 16": {
        "meta_objective": "acting_policy",
        "meta_objective_weight": 16.0,
    },
}
TARGET_CHOICES = {
    ", mean KL": {"matching_weight": 1.0},
    ", next rollout": {"target_rollout": "next_rollout"},
}
METHODS = {
    agent + choice: shipped | changed
    for agent, shipped, choices in (
        ("fixed ε=0.2", FIXED, AGENT_CHOICES),
        ("MG + entropy", MG, META_CHOICES | MG_CHOICES),
        ("BMG K=1 L=7", BMG, AGENT_CHOICES | META_CHOICES | TARGET_CHOICES),
    )
    for choice, changed in ({"": {}} | choices).items()
}


def panel(agent):
    """The curves of one agent."""
    return Curve(
        title=agent,
        metric="total_reward",
        label="total reward",
        methods=tuple(name for name in METHODS if name.startswith(agent)),
    )


SWEEP = Sweep(
    title="Two-colors: choices that the paper leaves open",
    trainer="two_colors_actor_critic",
    scales={
        "lite": Scale(
            arms(METHODS.values(), seed=range(3)),
            stop={"env_steps": 4_000_000},
        )
    },
    select=Select(
        metric="total_reward", mode="max", budgets={"env_steps": 4}, is_sum=True
    ),
    methods={name: Method(values, tuned={}) for name, values in METHODS.items()},
    curves=(panel("fixed ε=0.2"), panel("MG + entropy"), panel("BMG K=1 L=7")),
)
