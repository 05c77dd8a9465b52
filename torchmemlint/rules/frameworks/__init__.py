"""What frameworks keep, and how code makes them keep too much."""
