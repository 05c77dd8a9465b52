"""What holds modules and tensors beside autograd: caches, hooks, and whoever else keeps them."""
