"""What Python and libraries do: containers, tensors, modules, gradient modes, optimizers, functions by qualified name.

Models know the domain and the data of `torchmemlint.knowledge`; they reach the engine through the call site that they
are handed.
"""
