"""The mathematics of bootstrapped meta-learning in pure JAX, one concept a module.

Imports nothing of the project. Begin at `meta_gradient`, the two meta-losses.
"""
