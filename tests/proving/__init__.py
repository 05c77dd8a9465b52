"""Proofs by execution that fixes do no harm: a grammar of programs, what a run shows, and what may differ."""
