"""Who is trained, and what is not sure of that."""

from __future__ import annotations

from textwrap import dedent

import pytest

from torchmemlint.flow.fact.cases import cases

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"


def _told(text: str) -> list[tuple[int, str, list[str]]]:
    """The cases of a program as (line, code, doubts), those that are only possible among them."""
    found = cases({"main.py": HEAD + dedent(text).lstrip("\n")})
    return [(case.line - HEAD.count("\n"), case.code, sorted(doubt.label for doubt in case.doubts)) for case in found]


def test_a_teacher_in_evaluation_mode_that_a_caller_gives() -> None:
    text = """
        class Distiller:
            def __init__(self, student, teacher):
                self.student, self.teacher = student, teacher
                self.teacher.eval()
                self.optimizer = torch.optim.Adam(self.student.parameters())

            def update(self, x):
                wanted = self.teacher(x)
                loss = F.mse_loss(self.student(x), wanted)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        """
    assert _told(text) == [(8, "TML206", ["network-by-use", "origin"])]


def test_an_optimizer_that_a_caller_gives() -> None:
    text = """
        def train(student, teacher, loader, optimizer):
            student.train()
            teacher.eval()
            for x in loader:
                wanted = teacher(x)
                loss = F.mse_loss(student(x), wanted)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    assert _told(text) == [(5, "TML206", ["network-by-use", "optimizer", "origin"])]


def test_an_optimizer_that_a_factory_out_of_view_makes() -> None:
    text = """
        from factories import make_optimizer

        teacher, student = nn.Linear(4, 400), nn.Linear(4, 400)
        optimizer = make_optimizer(student)
        for x in torch.rand(9, 8, 4):
            wanted = teacher(x)
            loss = F.mse_loss(student(x), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    assert _told(text) == [(6, "TML206", ["optimizer"])]


@pytest.mark.parametrize(
    "made",
    [
        "torch.optim.Adam([p for one in (a, b, c, d, e) for p in one.parameters()])",
        "torch.optim.Adam(list(a.parameters()) + list(b.parameters()) + list(c.parameters()) + list(d.parameters())"
        " + list(e.parameters()))",
        "torch.optim.Adam([*a.parameters(), *b.parameters(), *c.parameters(), *d.parameters(), *e.parameters()])",
        "torch.optim.Adam([{'params': one.parameters()} for one in (a, b, c, d, e)])",
        "timm.optim.create_optimizer_v2(nn.ModuleList([a, b, c, d, e]), opt='adam')",
        "timm.optim.create_optimizer(None, nn.Sequential(a, b, c, d, e))",
    ],
)
def test_five_networks_of_one_optimizer(made: str) -> None:
    text = f"""
        import timm.optim

        a, b, c, d, e = (nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
        other = nn.Linear(4, 4)
        optimizer = {made}
        for x in torch.rand(9, 8, 4):
            hint = other(x)
            loss = F.mse_loss(a(x) + b(x) + c(x) + d(x) + e(x), hint)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    told = _told(text)
    assert [(line, code) for line, code, doubts in told if not doubts] in ([(7, "TML206")], [])
    assert all(doubts == ["optimizer"] for _, _, doubts in told if doubts)  # of a loop over five, four are followed


def test_an_engine_trains_what_it_is_given() -> None:
    text = """
        import deepspeed

        teacher, student = nn.Linear(4, 400), nn.Linear(4, 400)
        engine, optimizer, _, _ = deepspeed.initialize(model=student, model_parameters=student.parameters())
        for x in torch.rand(9, 8, 4):
            wanted = teacher(x)
            engine.backward(F.mse_loss(engine(x), wanted))
            engine.step()
        """
    assert _told(text) == [(6, "TML206", [])]


def test_an_engine_whose_settings_alone_say_whether_it_trains() -> None:
    text = """
        import deepspeed

        teacher, student = nn.Linear(4, 400), nn.Linear(4, 400)
        teacher, *_ = deepspeed.initialize(model=teacher, config=read("teacher.json"))
        student, *_ = deepspeed.initialize(model=student, config=read("student.json"))
        for x in torch.rand(9, 8, 4):
            wanted = teacher(x)
            student.backward(F.mse_loss(student(x), wanted))
            student.step()
        """
    assert [(line, code) for line, code, _ in _told(text)] == [(7, "TML206")]


@pytest.mark.parametrize(
    "lines",
    [
        ["error = F.mse_loss(value(x), y)", "error.backward()", "of_value.step()"],  # of the wrong network
        ["value(x).mean().backward()", "print(next(value.parameters()).grad)"],
    ],
)
def test_a_backward_that_leads_to_nothing_else(lines: list[str]) -> None:
    text = [
        "policy, value = nn.Linear(4, 400), nn.Linear(4, 400)",
        "of_policy = torch.optim.Adam(policy.parameters())",
        "of_value = torch.optim.Adam(policy.parameters())",
        "for x, y in zip(torch.rand(9, 8, 4), torch.rand(9, 8, 400)):",
        *(f"    {line}" for line in lines),
        "    of_policy.zero_grad()",
        "    F.mse_loss(policy(x), y).backward()",
        "    of_policy.step()",
    ]
    assert _told("\n".join(text)) == []


def test_code_that_is_given_a_method_of_a_network_may_train_it() -> None:
    text = """
        import pyro.infer

        class Generator(nn.Module):
            def __init__(self):
                super().__init__()
                self.decoder = nn.Linear(4, 400)

            def model(self, x):
                return self.decoder(x)

            def forward(self, x):
                return self.decoder(x)

        generator, other = Generator(), nn.Linear(4, 400)
        inference = pyro.infer.SVI(generator.model, None, None)
        optimizer = torch.optim.Adam(other.parameters())
        for x in torch.rand(9, 8, 4):
            inference.step(x)
            optimizer.zero_grad()
            F.mse_loss(other(x), generator(x)).backward()
            optimizer.step()
        """
    assert _told(text) == []


def test_an_environment_that_takes_a_step_is_no_optimizer() -> None:
    text = """
        def play(env, policy):
            value = nn.Linear(4, 400)
            state = env.reset()
            for _ in range(9):
                score = value(state)
                state = env.step(score.argmax())
                policy(score).sum().backward()
        """
    assert [one for one in _told(text) if one[1] == "TML206"] == []
