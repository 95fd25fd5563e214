"""What came out: rows read once, estimates and intervals, and the selection.

May import `sweep`, `records` and what is below. Begin at `results`: a sweep's rows and
what is selected of them, in one value. `selection` decides which configuration is the
best at each budget, and which ones are left out and why. How sure that is, `held_out`
says in numbers, `folds` of which runs, and `verdicts` in words.
"""
