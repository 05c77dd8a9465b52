"""Fixtures, run before and after their safe fixes: what they compute must be the same to the bit."""
