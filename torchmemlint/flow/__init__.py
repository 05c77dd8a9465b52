"""The analysis: abstract values, the interpreter, calls followed into the file, facts."""
