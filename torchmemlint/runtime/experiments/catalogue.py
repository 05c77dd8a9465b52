"""Every experiment, and the reason for each rule that has none."""

from __future__ import annotations

from torchmemlint.runtime.experiments import (
    activations,
    allocation,
    frameworks,
    gradient_mode,
    graphs,
    loading,
    materialisation,
    owners,
    training_step,
)
from torchmemlint.runtime.experiments.base import Experiment, Size
from torchmemlint.runtime.experiments.outcome import Effect

_SEQUENCES = Size(width=128, depth=4, batch=32, steps=4)
_LOADING = Size(width=128, depth=2, batch=32, steps=8)
_LISTING = Size(batch=10_000, steps=16)
_SAMPLES = Size(width=4096, batch=256, steps=16)
_SHORT_LISTING = Size(batch=100, steps=32)
_PASS = Size(steps=200)
_PAIRS = Size(width=128, batch=256, steps=4)
_IMAGES = Size(depth=6, batch=16, steps=8)
_CHECKPOINT = Size(width=512, depth=4, steps=4)
_LARGE = Size(width=512, depth=12, batch=1024, steps=4)  # activations of 2 MiB, in many of the large segments
_SMALL_OPERATIONS = Size(width=16, depth=64, batch=4)
_WEIGHTS = Size(width=512, batch=32)
_SMALL_COPIES = "batches of 16 KiB, prepared in the loop: too little to show, on a GPU either"

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("TML101", "a loss summed without backward", Effect.GROWTH, graphs.running_loss, Size()),
    Experiment(
        "TML101",
        "a loss summed after its backward",
        Effect.HOST_GROWTH,
        graphs.running_loss_after_backward,
        Size(),
        note="the graph is spent: its nodes stay on the host, nothing on the device",
    ),
    Experiment("TML102", "outputs collected over batches", Effect.GROWTH, graphs.collected_outputs, Size()),
    Experiment("TML103", "an output kept on its module", Effect.PEAK, graphs.output_on_attribute, Size()),
    Experiment("TML104", "a recurrent state carried on", Effect.GROWTH, graphs.carried_state, Size(depth=1)),
    Experiment("TML105", "a graph retained without need", Effect.PEAK, graphs.retained_graph, Size()),
    Experiment("TML106", "a hook that stores outputs", Effect.GROWTH, graphs.storing_hook, Size()),
    Experiment("TML107", "a generator in the discriminator's step", Effect.PEAK, graphs.undetached_generator, Size()),
    Experiment("TML108", "one backward for four micro-batches", Effect.PEAK, graphs.deferred_backward, Size()),
    Experiment("TML109", "exceptions kept for a report", Effect.GROWTH, graphs.kept_exception, Size()),
    Experiment("TML110", "samples kept in workers", Effect.WORKERS, loading.remembered_samples, _SAMPLES),
    Experiment(
        "TML111",
        "an output on its own context",
        Effect.GROWTH,
        graphs.output_on_context,
        Size(),
        note="until the garbage collector runs, which here it does not",
    ),
    Experiment("TML112", "a gradient with a graph at each point", Effect.GROWTH, graphs.gradients_with_graphs, Size()),
    Experiment("TML113", "every other batch left out", Effect.PEAK, graphs.skipped_batches, Size()),
    Experiment("TML114", "one token of each sequence", Effect.GROWTH, graphs.collected_views, Size()),
    Experiment("TML201", "evaluation with gradients on", Effect.PEAK, gradient_mode.evaluation, Size()),
    Experiment("TML202", "no_grad() as a statement", Effect.PEAK, gradient_mode.statement_without_effect, Size()),
    Experiment("TML203", "a teacher's graph, dropped", Effect.PEAK, gradient_mode.detached_teacher, Size()),
    Experiment(
        "TML204",
        "evaluation under no_grad",
        Effect.TIME,
        gradient_mode.strict_evaluation,
        _SMALL_OPERATIONS,
        note="no bytes: what inference mode leaves out is work on the host for each operation",
    ),
    Experiment("TML206", "a teacher in the student's graph", Effect.PEAK, gradient_mode.teacher_in_graph, Size()),
    Experiment("TML301", "LeakyReLU out of place", Effect.PEAK, activations.leaky_activation, _IMAGES),
    Experiment(
        "TML301",
        "ReLU out of place",
        Effect.PEAK,
        activations.rectified_activation,
        _IMAGES,
        note="in training the peak lies where the ReLU's copy is gone already",
    ),
    Experiment("TML305", "features concatenated by batch", Effect.TIME, materialisation.concatenated_in_loop, _PASS),
    Experiment("TML306", "a gate copied for each feature", Effect.PEAK, materialisation.repeated_gate, Size()),
    Experiment("TML307", "distances of all pairs", Effect.PEAK, materialisation.distances_of_pairs, _PAIRS),
    Experiment("TML307", "similarities of all pairs", Effect.PEAK, materialisation.similarities_of_pairs, _PAIRS),
    Experiment("TML308", "rows looked up by a product", Effect.PEAK, materialisation.looked_up_by_product, Size()),
    Experiment("TML308", "one-hot targets", Effect.PEAK, materialisation.one_hot_targets, Size()),
    Experiment("TML309", "the logarithm of a softmax", Effect.PEAK, materialisation.log_of_softmax, Size()),
    Experiment("TML311", "words after the last token", Effect.PEAK, materialisation.words_of_last_token, Size()),
    Experiment("TML311", "one word of each token", Effect.PEAK, materialisation.log_of_each_word, Size()),
    Experiment(
        "TML303",
        "SiLU in place",
        Effect.PEAK,
        activations.copied_activation,
        _IMAGES,
        note="the bad variant works in place: autograd copies what it overwrites",
    ),
    Experiment("TML304", "attention computed in steps", Effect.PEAK, activations.written_out_attention, _SEQUENCES),
    Experiment("TML310", "the reentrant form of a checkpoint", Effect.PEAK, activations.reentrant_checkpoint, Size()),
    Experiment("TML401", "a loader without workers", Effect.TIME, loading.without_workers, _LOADING),
    Experiment("TML402", "a loader that does not pin", Effect.TIME, loading.unpinned, _LOADING, note=_SMALL_COPIES),
    Experiment("TML403", "a copy that waits", Effect.TIME, loading.blocking_transfer, _LOADING, note=_SMALL_COPIES),
    Experiment("TML404", "workers started for each epoch", Effect.TIME, loading.respawned_workers, _LOADING),
    Experiment("TML405", "a dict for each sample", Effect.WORKERS, loading.python_objects, _LISTING),
    Experiment(
        "TML406",
        "samples put on the device one by one",
        Effect.PEAK,
        loading.samples_on_device,
        _LOADING,
        note="without workers; the context that each worker takes on the device is not modelled",
    ),
    Experiment("TML407", "sixteen workers instead of two", Effect.WORKERS, loading.many_workers, _SHORT_LISTING),
    Experiment("TML501", "a mask created on the CPU", Effect.HOST_PEAK, allocation.host_then_device, Size()),
    Experiment("TML502", "the cache emptied for each step", Effect.SEGMENTS, allocation.emptied_cache, _LARGE),
    Experiment("TML503", "garbage collected for each step", Effect.TIME, allocation.collected_garbage, Size()),
    Experiment(
        "TML504", "a checkpoint loaded to the device", Effect.PEAK, allocation.loaded_where_it_was_saved, _CHECKPOINT
    ),
    Experiment("TML505", "the best weights so far", Effect.PEAK, allocation.best_weights, Size()),
    Experiment("TML506", "a checkpoint kept through a training", Effect.PEAK, allocation.kept_checkpoint, Size()),
    Experiment("TML508", "features collected on the device", Effect.GROWTH, allocation.collected_results, Size()),
    Experiment("TML512", "scores of each answer", Effect.GROWTH, allocation.scores_of_each_token, Size()),
    Experiment("TML511", "a mask cast to truth values", Effect.PEAK, allocation.cast_mask, Size()),
    Experiment("TML510", "noise in numpy's precision", Effect.PEAK, allocation.noise_in_double, Size()),
    Experiment("TML601", "gradients zeroed in place", Effect.PEAK, training_step.zeroed_gradients, Size()),
    Experiment("TML602", "a result kept into the next pass", Effect.PEAK, training_step.kept_result, Size()),
    Experiment("TML603", "a training in float32", Effect.PEAK, training_step.full_precision, Size()),
    Experiment("TML604", "the state of AdamW", Effect.PEAK, training_step.optimizer_state, _WEIGHTS),
    Experiment("TML605", "anomaly detection left on", Effect.TIME, training_step.anomaly_detection, Size()),
    Experiment(
        "TML701",
        "step outputs kept on a Lightning module",
        Effect.HOST_GROWTH,
        graphs.step_outputs,
        Size(),
        note="what the step returned is spent; its nodes stay on the host until the epoch ends",
    ),
    Experiment("TML702", "predictions gathered on the device", Effect.GROWTH, frameworks.predictions_on_device, Size()),
    Experiment(
        "TML801",
        "networks in reference cycles",
        Effect.PEAK,
        owners.networks_in_cycles,
        Size(),
        note="until the garbage collector runs: that depends on how many Python objects the program makes",
    ),
    Experiment("TML802", "a hook for each batch", Effect.GROWTH, owners.hooks_of_each_image, Size()),
    Experiment("TML803", "pushed without a backward", Effect.GROWTH, owners.pushed_without_backward, Size()),
    Experiment("TML804", "networks in the cache of a function", Effect.GROWTH, owners.cached_networks, Size()),
    Experiment(
        "TML805",
        "predictions of all epochs in a metric",
        Effect.GROWTH,
        owners.predictions_of_epochs,
        Size(),
        note="an epoch has two batches, and a class of its own stands for torchmetrics'",
    ),
    Experiment("TML807", "networks of all folds in a list", Effect.GROWTH, owners.networks_of_all_folds, Size()),
)

WITHOUT: dict[str, str] = {
    "TML806": "it takes two processes that share a GPU, and counts what both hold",
    "TML000": "about files, not about memory",
    "TML001": "about comments, not about memory",
    "TML002": "about comments, not about memory",
    "TML205": "about gradients that are wrong without a word",
    "TML207": "memory is counted in one thread, and this is about others; the pass itself is that of TML201",
    "TML302": "about results that are wrong or a backward that raises",
    "TML507": "about figures that are misnamed",
    "TML509": "about settings that nobody reads",
    "TML513": "a process has one allocator: `benchmarks/batch_lengths.py` compares two",
}


def of_rule(code: str) -> list[Experiment]:
    """The experiments of a rule, most telling first."""
    return [experiment for experiment in EXPERIMENTS if experiment.code == code]


def of_backend(backend: str) -> list[Experiment]:
    """The experiments that a backend can tell about: a simulation has no time and no processes of its own,
    the host no driver."""
    left_out = {"simulated": (Effect.TIME, Effect.WORKERS), "cpu": (Effect.SEGMENTS,)}.get(backend, ())
    return [experiment for experiment in EXPERIMENTS if experiment.effect not in left_out]
