"""How results are shown: tables, one page, figures, published numbers beside ours.

May import `analysis` and what is below; decides nothing. Begin at `report`, which
makes the tables of a sweep.
"""
