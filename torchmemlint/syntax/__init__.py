"""libcst in, spans and qualified names out."""
