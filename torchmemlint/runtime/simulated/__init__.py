"""CUDA without a GPU: a program written for `cuda` runs on the host, and a model of the caching allocator counts.

`allocator.py` is the model and knows nothing of torch; `mapping.py` makes `cuda` mean tagged tensors of the host;
`driver.py` answers for `torch.cuda`; `execution.py` says how tagged operations run, `hollow.py` how they run without
being computed (`--fake`); `backend.py` puts them together.
"""
