"""2xx: the gradient mode."""
