"""What a trainer is: the contract of its module, its fields and ranges, its gin text.

May import `errors` and `paths` only, and neither JAX nor a trainer. Begin at
`contract`. Trainers import `config` and `ranges`; `source` reads a trainer's fields
from its text, and `bindings` gin text.
"""
