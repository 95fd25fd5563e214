"""Meta-learning sweeps: declare a grid, launch, select per budget, rerun."""
