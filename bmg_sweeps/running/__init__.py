"""One trial: bind, compile, train, evaluate, commit. Alone with trainers in JAX."""
