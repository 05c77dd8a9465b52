"""What each rule's pattern costs in isolation: a bad and a good variant of a small real program, measured.

`base.py` says what an experiment is and runs one; the other files hold the experiments, a file for each family of
rules. `catalogue.py` lists them, with the reason for each rule that has none.
"""
