"""What is found in a corpus of projects, counted: how often, how common, and how much of it is true.

`counting.py` counts, `saved.py` reads reports of earlier runs, `labels.py` draws samples for reading by hand and reads
what was made of them, `page.py` and `table.py` show it all.
"""
