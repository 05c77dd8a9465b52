"""The rules, one to a file, in a folder per family."""
