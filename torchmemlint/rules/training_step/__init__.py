"""Rules about the training step and what surrounds it."""
