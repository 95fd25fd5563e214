"""What is there: storage, manifests, attempts and leases.

The only room that knows the files of a record. May import `trainer` and what is below.
Begin at `store`, which says what a record is made of.
"""
