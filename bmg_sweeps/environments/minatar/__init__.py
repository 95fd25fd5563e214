"""MinAtar: Atari's games on a grid of 10 × 10 cells, in pure JAX, one a module.

Each game has the same names: `NUM_ACTIONS`, `NUM_CHANNELS`, `NUM_UNIFORMS`, `State`,
`reset`, `step` and `observe`, of a single world; `vmap` makes many. A game draws no
random numbers: it is handed uniform ones. Begin at `worlds`, which draws them, repeats
actions at random, and begins a new episode when one ends. `scores` says what random
play and published agents earn.

The games are written from the rules of Young and Tian (2019), "MinAtar: An
Atari-Inspired Testbed for Thorough and Reproducible Reinforcement Learning
Experiments", with the defaults of their package, version 1.0.15: difficulty rises.
The tests compare each with that package, step by step.
"""
