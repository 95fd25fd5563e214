"""All trials of a launch: what is missing, checks before it, Ray, and progress.

May import `reporting` and what is below. Of `running` it imports nothing but in a
trial's own process, so that a driver needs no JAX. Begin at `planning`, which subtracts
the records from what is wanted; `trials` then has Ray Tune run the rest.
"""
