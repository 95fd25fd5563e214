"""How results are shown: tables, one page, figures."""
