"""Rules about what activations keep, and about overwriting them in place."""
