"""Few-shot tasks: data sets of labeled images, and episodes drawn from them.

May import `core`, `errors` and `paths`. Begin at `data_sets`, then `episodes`.
"""
