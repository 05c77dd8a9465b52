"""What is not even possible, and what is just that."""

from __future__ import annotations

from textwrap import dedent, indent

from torchmemlint.flow.fact.cases import cases

HEAD = "import torch\nfrom torch import nn\n\n"


def _told(text: str) -> list[tuple[int, str, str]]:
    """The cases of a program as (line, code, confidence), those that are only possible among them."""
    found = cases({"main.py": HEAD + dedent(text).lstrip("\n")})
    return [(case.line - HEAD.count("\n"), case.code, case.confidence.value) for case in found]


def test_a_slot_of_what_a_caller_gives() -> None:
    """A setting goes into what is differentiated, but the object that holds it keeps no graph with it."""
    text = """
        class Learner(nn.Module):
            def __init__(self, steps):
                super().__init__()
                self.steps = steps
                self.weight = nn.Parameter(torch.ones(4, 4))

            def forward(self, x):
                for name, factor in self.steps:
                    x = nn.functional.linear(x, self.weight) * factor
                return x

        class Trainer(nn.Module):
            def __init__(self, steps):
                super().__init__()
                self.learner = Learner(steps)

            def forward(self, x):
                loss = self.learner(x).sum()
                loss.backward()
                return loss.item()
        """
    assert _told(text) == []


def test_a_slot_of_what_a_pass_gives() -> None:
    text = """
        class Learner(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.layer = nn.Linear(width, 1)

            def forward(self, x):
                out = self.layer(x)
                self.last = out.relu()
                return out.mean()

            def show(self):
                print(self.last.mean().item())

        learner = Learner(3)
        for n in range(9):
            learner(torch.ones(3)).backward()
            learner.show()
        """
    assert [(line, code) for line, code, _ in _told(text)] == [(8, "TML103")]


def test_samples_that_a_value_has_read_in_order() -> None:
    """Workers that read in order share one copy of a list."""
    text = """
        class Clips(torch.utils.data.Dataset):
            def __init__(self, path):
                self.rows = [line.split() for line in open(path)]

            def __getitem__(self, index):
                return self.rows[index]

        def load(training):
            return torch.utils.data.DataLoader(Clips("rows"), shuffle=training, num_workers=4)
        """
    assert _told(text) == [(3, "TML405", "possible")]
    assert _told(text.replace("shuffle=training", "shuffle=True")) == [(3, "TML405", "certain")]
    assert _told(text.replace("shuffle=training", "shuffle=False")) == []


def test_a_graph_that_an_unseen_optimizer_may_outdate() -> None:
    """What it holds decides whether the next iteration differentiates a graph of older parameters."""
    text = """
        def fit(network: nn.Module, optimizer, x, targets):
            features = network(x)
            for y in targets:
                nn.functional.mse_loss(features, y).backward(retain_graph=True)
                optimizer.step()
        """
    assert _told(text) == [(4, "TML105", "possible")]
    assert _told(text.replace("                optimizer.step()", "            optimizer.step()")) == []
    assert _told(text.replace("optimizer.step()", "print(y)")) == []


TRAINING = """
    from collections import defaultdict

    def train(model: nn.Module, loader, tracker):
        optimizer = torch.optim.Adam(model.parameters())
        found, total = defaultdict(list), 0.0
        for number, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
"""


def _train(body: str) -> str:
    return dedent(TRAINING) + indent(dedent(body), 8 * " ")


def test_a_name_that_stands_for_something_else_when_the_loop_comes_round() -> None:
    """The list grows until it is replaced; the sum of its elements does not."""
    text = """
        found["loss"].append(loss)
        if number % 10 == 9:
            found = {name: torch.stack(losses).mean() for name, losses in found.items()}
            tracker.log(found)
            found = defaultdict(list)
        """
    assert _told(_train(text)) == [(12, "TML102", "possible")]


def test_a_name_that_stands_for_a_sum_only_where_the_rest_is_skipped() -> None:
    text = """
        total = total + loss
        if number % 10 < 9:
            continue
        tracker.log(total.item())
        total = 0.0
        """
    assert _told(_train(text)) == [(12, "TML101", "certain")]
