"""Running the linter over many files."""
