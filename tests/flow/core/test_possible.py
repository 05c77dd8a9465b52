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


def test_what_stands_beside_a_pass() -> None:
    """A pass has the graph that backward goes through: nothing shows that what it is compared with has one, too."""
    text = """
        class Trainer:
            def __init__(self, values):
                self.model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                self.values = values
                self.labels = torch.zeros(0, 1)

            def train(self, loader):
                for x in loader:
                    self.labels = torch.cat((self.labels, self.values(x)), dim=0)
                    loss = (self.model(x) - self.labels[-1]).pow(2).mean()
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
        """
    assert _told(text) == []


def test_an_operation_begins_no_graph() -> None:
    """What an optimizer keeps is used as a tensor. That an operation gives it does not show that it has a graph."""
    text = """
        class Averaging(torch.optim.Optimizer):
            def step(self, closure=None):
                loss = closure() if closure is not None else None
                for group in self.param_groups:
                    for p in group["params"]:
                        grad, state = p.grad.detach().float(), self.state[p]
                        if len(state) == 0:
                            state["average"] = torch.zeros_like(grad)
                        else:
                            state["average"] = state["average"].type_as(grad)
                        state["average"].mul_(0.9).add_(grad)
                        with torch.no_grad():
                            p.copy_(state["average"])
                return loss
        """
    assert _told(text) == []


def test_gradients_for_a_caller() -> None:
    """A caller gets a penalty that was made of gradients to differentiate it."""
    text = """
        class Penalty(nn.Module):
            def forward(self, critic, real, fake):
                mixed = ((real + fake) / 2).detach().requires_grad_(True)
                scores = critic(mixed)
                (gradients,) = torch.autograd.grad(scores, mixed, torch.ones_like(scores), create_graph=True)
                return ((gradients.norm(2, dim=1) - 1) ** 2).mean()
        """
    assert _told(text) == []


def test_layers_gathered_by_a_constructor() -> None:
    """An annotation may take the class of a layer for a layer. What a constructor calls in a loop makes layers."""
    text = """
        class Stages(nn.Module):
            def __init__(self, widths, norm: nn.Module = nn.LayerNorm):
                super().__init__()
                self.norms = nn.ModuleList([norm(width) for width in widths])

            def forward(self, x):
                for norm in self.norms:
                    x = norm(x)
                return x

        def train(loader):
            model = Stages([3, 3])
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x in loader:
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
        """
    assert _told(text) == []


def test_what_only_unseen_code_takes() -> None:
    """It may need the graphs: that is more than likely where nothing else looks at what is kept."""
    text = """
        def constrain(solver, boxes):
            layers = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
            sides = torch.empty(9)
            for n, box in enumerate(boxes):
                sides[n] = layers(box)[0]
            solver.add(sides)
        """
    assert [(code, confidence) for _, code, confidence in _told(text)] == [("TML102", "possible")]
    looked_at = text.replace("solver.add(sides)", "solver.add(sides)\n            print(sides.max().item())")
    assert {confidence for _, _, confidence in _told(looked_at)} == {"likely"}


RANKING = """
    def evaluate(model, loader):
        model.eval()
        hits = 0
        for heads, tails in loader:
            scores = model.score(heads)
            {use}
            hits += int((ranks == 0).sum())
        return hits
"""


def test_what_functions_of_torch_are_given_is_a_tensor() -> None:
    """A method of an unseen network may give anything, until its result is given to what takes tensors alone."""
    for use in (
        "ranks = (scores > torch.gather(scores, 1, tails)).sum(1)",
        "ranks = torch.topk(scores, 10)[1]",
        "ranks = torch.argmax(scores, dim=1)",
        "ranks = (scores > torch.nn.functional.relu(scores)).sum(1)",
    ):
        assert _told(RANKING.format(use=use)) == [(5, "TML201", "likely")], use
    for use in ("ranks = sorted(scores)[0]", "ranks = torch.tensor(scores)", "ranks = 2 ** torch.pow(scores, tails)"):
        assert _told(RANKING.format(use=use)) == [], use


def test_what_a_call_gives_anew_in_each_iteration() -> None:
    """What is stored in it ends with it, if the call does not give the same each time."""
    text = """
        from elsewhere import report

        def train(data):
            model = nn.Linear(300, 300)
            {}
            for step, x in enumerate(data):
                {}
                loss = model(x).sum()
                loss.backward()
                kept[step] = loss
                print(kept)
        """

    def kept(*lines: str) -> list[tuple[int, str, str]]:
        return [one for one in _told(text.format(*lines)) if one[1] == "TML102"]

    assert kept("kept = report()", "pass") == [(10, "TML102", "certain")]
    assert kept("pass", "kept = report()") == [(10, "TML102", "possible")]


PASSED = """
    import somewhere

    def train(model, loader, optimizer):
        kept = []
        for x in loader:
            loss = {loss}
            optimizer.zero_grad()
            {backward}
            optimizer.step()
            kept.append({kept})
        print(kept)
    """


def _passed(loss: str, backward: str, kept: str) -> list[tuple[str, str]]:
    told = _told(PASSED.format(loss=loss, backward=backward, kept=kept))
    return [(code, confidence) for _, code, confidence in told]


def test_what_a_library_that_was_not_seen_makes_of_a_graph() -> None:
    """It may have none: a parameter class, numbers. Backward through it shows that it has, unless another has it."""
    unseen, seen = "somewhere.smooth(model(x))", "model(x).sum()"
    assert _passed(seen, "loss.backward()", "loss") == [("TML102", "certain")]
    assert _passed(seen, "loss.backward()", "somewhere.smooth(loss)") == [("TML102", "likely")]
    assert _passed(seen, "loss.backward()", "somewhere.Box(loss)") == [("TML102", "likely")]
    assert _passed(unseen, "loss.backward()", "loss") == [("TML102", "certain")]
    assert _passed(unseen, "(loss + model(x).sum()).backward()", "loss") == [("TML102", "likely")]
    assert _passed(seen, "loss.backward()", "torch.not_known_yet(loss)") == [("TML102", "certain")]


PENDING = """
    class Learner:
        def __init__(self):
            self.policy, self.value = nn.Linear(48, 16), nn.Linear(48, 16)
            parameters = [*self.policy.parameters(), *self.value.parameters()]
            self.optimizer = torch.optim.SGD(parameters, lr=0.1)

        def learn(self, states, rewards):
            chosen = self.policy(states)
            bonus = chosen.log().sum(-1).detach()
            {other}
            loss = (self.value(states).mean(-1) - bonus).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
    """


def test_what_is_computed_of_a_pass_and_not_used_yet() -> None:
    """The line that adds a loss may be commented out: then the pass is not one of which everything is detached."""
    told = []
    for other in ("policy_loss = -(chosen * rewards).mean()", "rows = chosen.shape[0] * 2"):
        told += [confidence for _, code, confidence in _told(PENDING.format(other=other)) if code == "TML203"]
    assert told == ["possible", "certain"]
