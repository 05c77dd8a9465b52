"""SARIF 2.1.0, as code scanning needs it: `log.py` writes it, `rules.py` describes rules, `hashes.py` hashes lines."""
