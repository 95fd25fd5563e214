"""All trials of a launch: what is missing, checks, Ray, progress."""
