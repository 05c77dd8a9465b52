"""Attention that is written out: softmax of the products of queries and keys, times the values.

`search` finds it, within one function, from `stages` (what the scores and weights go through), `operations` (which
call is which), `numbers` (is a factor a number?) and `axes` (does a product run over features or over positions?).
Works on the standard parser's trees, and only in functions whose text speaks of a softmax and a product.
"""
