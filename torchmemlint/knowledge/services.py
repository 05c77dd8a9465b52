"""Functions of torch that manage memory, watch it, or switch debugging on: what they do is not in what they return."""

from __future__ import annotations

ACCELERATORS = ("cuda", "mps", "xpu", "gpu", "npu")  # how the name of such a device begins, or of what asks for one
# Every backend's caching allocator has one (torch/cuda/memory.py, torch/mps/__init__.py, torch/xpu/memory.py, ...).
EMPTY_CACHE = frozenset(
    {
        "torch.cuda.empty_cache",
        "torch.cuda.memory.empty_cache",
        "torch.mps.empty_cache",
        "torch.xpu.empty_cache",
        "torch.npu.empty_cache",
        "torch.mlu.empty_cache",
        "torch.musa.empty_cache",
        "torch.accelerator.empty_cache",
        "torch.accelerator.memory.empty_cache",
    }
)
COLLECT = frozenset({"gc.collect"})
# Who turns the collector off, or takes objects out of its sight, runs it when it suits.
COLLECTOR_CHOSEN = frozenset({"gc.disable", "gc.freeze", "gc.set_threshold"})
# Who asks for these measures memory, and wants to start from an empty cache.
MEASURING = frozenset(
    f"torch.{backend}.{name}"
    for backend in ("cuda", "cuda.memory", "xpu", "accelerator")
    for name in (
        "reset_peak_memory_stats max_memory_allocated max_memory_reserved memory_allocated memory_reserved "
        "memory_stats mem_get_info reset_max_memory_allocated max_memory_cached memory_cached"
    ).split()
)
# torch/autograd/anomaly_mode.py
ANOMALY_SWITCH = frozenset({"torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"})
ANOMALY_CONTEXT = frozenset({"torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly"})
# torch/cuda/memory.py: whatever is recorded stays until the recording is switched off.
RECORDING = frozenset({"torch.cuda.memory._record_memory_history", "torch.cuda._record_memory_history"})
RECORDED = frozenset({"torch.cuda.memory._dump_snapshot", "torch.cuda.memory._snapshot", "torch.cuda.memory_snapshot"})
# They keep every event of the host and the device until they end; the newer one only those that a schedule asks for.
PROFILING = frozenset({"torch.profiler.profile", "torch.profiler.profiler.profile", "torch.autograd.profiler.profile"})

NOTED = EMPTY_CACHE | COLLECT | COLLECTOR_CHOSEN | MEASURING | ANOMALY_SWITCH | ANOMALY_CONTEXT | RECORDING | RECORDED
NOTED |= PROFILING
REPORTED = EMPTY_CACHE | ANOMALY_SWITCH | ANOMALY_CONTEXT | RECORDING | PROFILING
WORDS = frozenset(name.rpartition(".")[2] for name in REPORTED | COLLECT)
