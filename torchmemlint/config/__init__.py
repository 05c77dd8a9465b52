"""Settings: find, read, validate, merge."""
