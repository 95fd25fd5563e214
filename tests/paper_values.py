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

# Table 2, "Atari hyper-parameters", by the trainer's field.
ATARI = {
    "frame_height": 210,  # The table exchanges height and width.
    "frame_width": 160,
    "frame_format": "rgb",  # "Frame grayscaling: None", and a depth of 3.
    "sticky_action_probability": 0.0,
    "reward_clip": 1.0,
    "channels": (64, 128, 128, 64),
    "num_blocks": 2,
    "feature_size": 512,
    "num_auxiliary_tasks": 2,
    "head_sizes": (256, 256),
    "max_entropy_weight": 0.9,  # "Max entropy loss value".
    "unroll_length": 20,
    "num_replay": 12,
    "num_online": 6,
    "replay_capacity": 10_000,
    "relevance_threshold": 2.0,  # "LASER KL-threshold".
    "learning_rate": 1e-4,
    "learning_rate_frames": 200_000_000,  # The table prints 200 000.
    "rmsprop_decay": 0.99,  # "Momentum decay".
    "rmsprop_eps": 1e-4,
    "gradient_clip": 0.3,
    "discount": 0.995,
    "trace_decay": 1.0,
    "max_rho": 1.0,
    "max_c": 1.0,
    "leak": 1.0,
    "policy_gradient_weight": 1.0,
    "entropy_weight": 0.01,
    "value_weight": 0.25,
    "meta_learning_rate": 1e-3,
    "meta_adam_b1": 0.9,
    "meta_adam_b2": 0.999,
    "meta_adam_eps": 1e-4,
    "meta_gradient_clip": 0.3,
    "num_environments": 48,  # Appendix C.5.
    "value_matching_weight": 0.25,  # Appendix C.1.
}
# The same, what is no field: constants of `environments.atari` and `frame_ring`.
ATARI_EMULATORS = {
    "FRAMES_PER_STEP": 4,  # "Num. action repeats".
    "MAX_EPISODE_FRAMES": 108_000,
    "MAX_NO_OPS": 30,
}
ATARI_STACKED_FRAMES = 4
ATARI_POINTS = 7 * 57 * 3  # Agents, games and seeds of the table of all games.
ATARI_VALUE_MATCHING_WEIGHTS = (0.25, 0.5, 0.75)  # Appendix C, grid search.
