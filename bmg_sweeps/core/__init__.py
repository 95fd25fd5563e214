"""The mathematics of bootstrapped meta-learning in pure JAX, one concept a module."""
