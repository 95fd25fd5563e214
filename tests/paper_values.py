"""Values of the paper's tables that our gin files and grids must have."""

# Table 1, "Two-colors hyper-parameters", the part "Actor-critic", and the values of
# Section 5.1 and Appendix B.2 that it does not repeat, by the trainer's field.
TWO_COLORS_ACTOR_CRITIC = {
    "learning_rate": 0.1,
    "rollout_length": 16,  # "Batch size".
    "discount": 0.99,
    "matching_function": "policy_kl",
    "hidden_sizes": (256, 256),
    "meta_adam_eps": 1e-4,
    "meta_adam_b1": 0.9,
    "meta_adam_b2": 0.999,
    "meta_hidden_sizes": (32,),
    "policy_gradient_weight": 1.0,  # Section 5.1.
    "value_weight": 1.0,  # Section 5.1.
    "num_recent_rollouts": 10,  # Appendix B.2.
}
# The same, the part "Q(λ)".
TWO_COLORS_Q_LAMBDA = {
    "learning_rate": 3e-5,
    "adam_eps": 1e-4,
    "adam_b1": 0.9,
    "adam_b2": 0.999,
    "gradient_decay": 0.9,
    "trace_decay": 0.7,
    "discount": 0.99,
    "hidden_sizes": (256, 256),
    "meta_learning_rate": 1e-4,
    "meta_adam_eps": 1e-4,
    "meta_adam_b1": 0.9,
    "meta_adam_b2": 0.999,
    "meta_gradient_decay": 0.9,
    "meta_hidden_sizes": (32,),
    "num_recent_rewards": 50,  # Appendix B.3.
}
TWO_COLORS_META_LEARNING_RATES = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4)

# Table 4, "Hyper-parameter sweep per computational budget", by symbol. The total of 24
# for MAML counts FOMAML and ANIL jointly: both may be true.
FEW_SHOT_GRID = {
    "MAML": {
        "β": (1e-4, 1e-3),
        "K": (1, 5, 10),
        "FOMAML": (True, False),
        "ANIL": (True, False),
    },
    "BMG": {"β": (1e-4, 1e-3), "K": (1, 5), "L": (1, 5, 10), "μ": (1, 2)},
}

# Section 6 and Appendix D, "Few-Shot MiniImagenet", by the trainer's field.
FEW_SHOT = {
    "data_set": "mini_imagenet",
    "num_ways": 5,
    "num_shots": 5,
    "num_queries": 5,
    "num_evaluation_queries": 5,
    "num_blocks": 4,
    "num_filters": 32,
    "evaluation_steps": 10,
}
