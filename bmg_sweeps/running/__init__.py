"""One trial: bind, compile, train, evaluate, commit; points in packs and lanes.

The only room of the platform that imports JAX. May import `records`, `trainer` and the
mathematics; never `sweep`: a trial knows its points by their gin text. Begin at
`work_unit`, the loop of a trial, then `pack` and `lane`.
"""
