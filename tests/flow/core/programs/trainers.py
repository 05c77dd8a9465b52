"""Trainers of libraries, and what they collect when they evaluate."""

_WITH = """
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

        def measure(prediction):
            return {"mean": float(prediction.predictions.mean())}

        net = AutoModelForCausalLM.from_pretrained("gpt2")
"""

TRAINERS = {
    "a trainer that evaluates while it trains": _WITH
    + """
        options = TrainingArguments("out", eval_strategy="epoch")
        # instead: options = TrainingArguments("out", eval_strategy="epoch", eval_accumulation_steps=4)
        trainer = Trainer(net, options, compute_metrics=measure)  # expect: TML702
        trainer.train()
        """,
    "a trainer that is asked to evaluate": _WITH
    + """
        trainer = Trainer(model=net, compute_metrics=lambda found: {"a": 1})  # expect: TML702
        # instead: trainer = Trainer(model=net)
        trainer.evaluate()
        """,
    "a trainer that nobody asks": _WITH
    + """
        trainer = Trainer(model=net, compute_metrics=measure)
        trainer.train()
        """,
    "a trainer that hands its arguments on": _WITH
    + """
        class Own(Trainer):
            def __init__(self, net, options):
                super().__init__(net, options, compute_metrics=measure)

            def compute_loss(self, model, inputs):
                return model(**inputs).loss

        Own(net, TrainingArguments("out", eval_strategy="epoch"))  # expect: TML702
        # instead: Own(net, TrainingArguments("out", eval_strategy="no"))
        """,
    "settings that are changed later": _WITH
    + """
        def settings():
            options = TrainingArguments("out", eval_strategy="epoch")
            options.eval_accumulation_steps = 4
            return options

        Trainer(net, settings(), compute_metrics=measure)
        """,
    "settings that are not all known": _WITH
    + """
        def train(**more):
            Trainer(net, TrainingArguments("out", eval_strategy="epoch", **more), compute_metrics=measure)

        def train_with(options):
            Trainer(net, options, compute_metrics=measure).evaluate()
        """,
    "metrics of tokens that count": """
        from functools import partial
        from transformers import Trainer, TrainingArguments

        def measure(prediction, names):
            return {"counted": sum(label != -100 for label in prediction.label_ids)}  # instead: return {"counted": 1}

        def train(net, names):
            options = TrainingArguments("out", eval_strategy="steps")
            trainer = Trainer(net, options, compute_metrics=partial(measure, names=names))  # expect: TML702
            trainer.train()
        """,
}
