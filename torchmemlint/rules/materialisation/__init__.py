"""Rules about tensors that are written out in memory where a fused operation, or indices, would do."""
