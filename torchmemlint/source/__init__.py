"""Text of source files: discovery, decoding, suppression comments."""
