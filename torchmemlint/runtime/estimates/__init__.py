"""`torchmemlint estimate`: the memory of a model before it is run, without allocating it.

A training step is run with tensors that have no values (`simulated`, shapes only), so activations are measured and
not computed by formulas. `plan.py` is what is asked for, `stepping.py` runs it, `layers.py` tells layers apart,
`fitting.py` finds the largest batch, `remedies.py` tries what would save memory, `estimate.py` puts all together.
"""
