"""Attention that is written out: softmax of the products of queries and keys, times the values.

`chain` finds it in the operations of one function, with `numbers` (is a factor a number?), `axes` (does a product run
over features or over positions?) and `einsums`. `fused` writes the call that computes the same, `rewriting` the edits.
"""
