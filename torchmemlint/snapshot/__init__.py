"""Memory snapshots of torch's CUDA allocator: what was allocated at the peak, and when memory ran out.

Nothing here imports torch, so that a snapshot can be read where torch is not installed. `reader.py` reads the file,
which is an untrusted pickle; `history.py` follows its events.
"""
