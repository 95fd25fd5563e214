"""What a trainer is: its fields, read without importing it, and gin text.

May import `errors` and `paths` only, and neither JAX nor a trainer. Begin at `config`,
which trainers import; `source` reads the same from their text.
"""
