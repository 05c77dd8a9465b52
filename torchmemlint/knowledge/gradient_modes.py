"""Library names that set the gradient mode, and methods that run without gradients by contract."""

from __future__ import annotations

OFF = frozenset(
    {
        "torch.no_grad",
        "torch.inference_mode",
        "torch.autograd.no_grad",
        "torch.autograd.inference_mode",
        "torch.autograd.grad_mode.no_grad",
        "torch.autograd.grad_mode.inference_mode",
        "torch.autograd.grad_mode.inference_mode.inference_mode",
        "torch.autograd.profiler.no_grad",
    }
)
ON = frozenset({"torch.enable_grad", "torch.autograd.enable_grad", "torch.autograd.grad_mode.enable_grad"})
SETTERS = frozenset(
    {
        "torch.set_grad_enabled",
        "torch.autograd.set_grad_enabled",
        "torch.autograd.grad_mode.set_grad_enabled",
        "torch._C._set_grad_enabled",
    }
)

# Context managers that leave the gradient mode alone; any other unknown one makes it unknown.
NEUTRAL_CONTEXTS = (
    "torch.cuda.",
    "torch.autocast",
    "torch.amp.",
    "torch.autograd.profiler",
    "torch.autograd.set_detect_anomaly",
    "torch.autograd.detect_anomaly",
    "torch.profiler.",
    "torch.random.",
    "torch.device",
    "torch.backends.",
    "torch.nn.attention.",
    "contextlib.nullcontext",
    "contextlib.suppress",
    "contextlib.redirect_stdout",
    "contextlib.redirect_stderr",
    "contextlib.closing",
    "warnings.",
    "tqdm.",
    "open",
    "tempfile.",
    "numpy.",
    "time.",
    "threading.",
    "os.",
    "io.",
    "PIL.",
    "h5py.",
    "zipfile.",
    "tarfile.",
    "gzip.",
    "mlflow.",
    "wandb.",
    "unittest.",
    "pytest.",
    "logging.",
    "rich.",
    "pathlib.",
    "multiprocessing.",
    "concurrent.",
    "torch.utils.tensorboard.",
    "tensorboardX.",
    "lmdb.",
    "torch.multiprocessing.",
    "record_function",
)


def is_neutral_context(qualified: str) -> bool:
    """Does a library context manager leave the gradient mode alone?"""
    return qualified.startswith(NEUTRAL_CONTEXTS)


# Methods of objects that are not understood which yield neutral contexts.
NEUTRAL_METHODS = frozenset(
    "autocast accumulate progress_bar join begin main_process_first local_main_process_first open lock amp_autocast "
    "range stage profile timer span start_as_current_span start_run trace measure time timeit record".split()
)

# Library calls that turn gradients off themselves: `generate` of transformers is decorated with no_grad.
GUARDED_METHODS = frozenset({"generate", "generate_text", "transcribe"})


# Methods that the framework of the class runs with gradients off, by the qualified base they come from.
GUARDED_OVERRIDES: tuple[tuple[tuple[str, ...], frozenset[str]], ...] = (
    (
        ("LightningModule", "LightningDataModule", "Callback"),
        frozenset(
            "validation_step test_step predict_step validation_epoch_end test_epoch_end on_validation_epoch_end "
            "on_test_epoch_end on_predict_epoch_end validation_step_end test_step_end on_validation_batch_end "
            "on_test_batch_end on_validation_epoch_start on_validation_start on_validation_end on_test_start "
            "on_test_end on_predict_batch_end on_predict_start on_predict_end on_validation_batch_start".split()
        ),
    ),
    (("ComposerModel",), frozenset({"eval_forward", "update_metric"})),
    (("Optimizer",), frozenset({"zero_grad"})),
)

# Methods that run inference by contract, called with gradients on: an override has to turn them off itself.
# Source: transformers' Trainer, whose own `prediction_step` opens `torch.no_grad()` and whose loops do not.
UNGUARDED_OVERRIDES: tuple[tuple[tuple[str, ...], frozenset[str]], ...] = (
    (("Trainer", "Seq2SeqTrainer"), frozenset({"prediction_step"})),
)

# Methods that the framework calls with gradients on, and differentiates the result of, whoever else calls them.
TRAINING_OVERRIDES: tuple[tuple[tuple[str, ...], frozenset[str]], ...] = (
    (("Trainer", "Seq2SeqTrainer"), frozenset({"training_step", "compute_loss"})),
    (("LightningModule",), frozenset({"training_step"})),
)
