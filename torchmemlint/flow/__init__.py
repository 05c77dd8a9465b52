"""The analysis: files as operations, what running them does to a heap, and the facts that rules see."""
