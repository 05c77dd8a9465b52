"""Rules about where and when memory is allocated."""
