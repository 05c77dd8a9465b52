"""Fixes: text edits, their conflicts, applying them, checking the result, and writing it.

`apply.fix_text` works on text alone; `write.write_atomically` puts bytes on the disk.
"""
