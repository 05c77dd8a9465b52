"""Runs over many projects.

`listing.py` reads the list of them, `opening.py` brings archives and repositories to a folder, `checking.py` checks all
in groups and makes one report, in which files are named PROJECT/path.
"""
