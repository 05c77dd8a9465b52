"""Graphs that are needed, or that there are none of, for a reason that stands elsewhere."""

NEEDED = {
    "a network whose forward turns gradients off": """
        from contextlib import nullcontext

        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(10, 10)
                self.eval()

            def forward(self, x):
                with nullcontext():  # instead: with torch.no_grad():
                    return self.layer(x)

        encoder = Encoder()
        for _ in range(100):
            print(int(torch.argmax(encoder(torch.rand(10)))))  # expect: TML201
        """,
    "gradients that are tried without": """
        from contextlib import nullcontext

        def evaluate(network: nn.Module, loader):
            network.eval()
            total = 0.0
            for x in loader:
                try:
                    with nullcontext():  # instead: with torch.no_grad():
                        output = network(x)  # expect: TML201
                except RuntimeError:
                    output = network(x)  # expect: TML201
                total += output.mean().item()
            return total
        """,
    "a pass after a guarded one that failed": """
        def evaluate(network: nn.Module, loader):
            network.eval()
            for x in loader:
                try:
                    with torch.no_grad():
                        print(network(x).mean().item())
                except RuntimeError:
                    print("skipped")
                print(network(x).max().item())  # expect: TML201
                # instead: print(torch.no_grad()(network)(x).max().item())
        """,
    "a script that answers with a text": """
        def talk(path, lines):
            network = torch.jit.load(path)
            network.eval()
            for line in lines:
                answer = network(line)  # expect: TML201
                print("answer: ", answer)  # instead: print("answer: " + answer)
        """,
    "a text that is made of what a network decodes": """
        def talk(decode, network: nn.Module, lines):
            network.eval()
            for line in lines:
                print("answer: " + decode(network(line).argmax(-1)))  # expect: TML201
                # instead: print("answer: " + decode(torch.no_grad()(network)(line).argmax(-1)))
        """,
    "texts that are joined": """
        def talk(path, lines):
            network = torch.jit.load(path)
            network.eval()
            answers = []
            for line in lines:
                answers.append(network(line))
            return ", ".join(answers)
        """,
    "the rest of a row": """
        class Remembering(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.Linear(4, 4)

            def forward(self, x, *memory):
                states = [self.cell(x + m) for m in memory]
                return [states[-1].pow(2).mean(), *self.kept(states)]

            def kept(self, states):
                return [s for s in states]  # instead: return [s.detach() for s in states]

        def train(loader):
            network = Remembering()
            memory = (torch.zeros(4),)
            for x in loader:
                out = network(x, *memory)
                loss, memory = out[0], out[1:]  # expect: TML104
                loss.backward()
        """,
    "numbers of boxes": """
        import torchvision

        def train(loader):
            kept = []
            for x, y, boxes in loader:
                scores = model(x)
                F.mse_loss(scores, y).backward()
                kept.append(torchvision.ops.roi_align(scores, boxes, 2))  # expect: TML102
                # instead: kept.append(torchvision.ops.nms(boxes, scores, 0.5))
            print(len(kept))
        """,
    "a network beside one that differentiates when it is run": """
        class Forces(nn.Module):
            def __init__(self):
                super().__init__()
                self.energy = nn.Linear(3, 1)

            def forward(self, x):
                energy = self.energy(x.requires_grad_()).sum()
                return energy  # instead: return torch.autograd.grad(energy, x)[0]

        class Calculator:
            def __init__(self, network: nn.Module):
                self.network = network

            def calculate(self, x):
                return self.network(x).detach().cpu().numpy()  # expect: TML203
        """,
    "a network beside one that differentiates what it is given": """
        class Smoothness(nn.Module):
            def forward(self, critic, x):
                x = x.requires_grad_()
                (slope,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
                return slope.square().mean()

        class Calculator:
            def __init__(self, network: nn.Module):
                self.network = network

            def calculate(self, x):
                return self.network(x).detach().cpu().numpy()  # expect: TML203
                # instead: return torch.no_grad()(self.network)(x).cpu().numpy()
        """,
    "the turn of an optimizer": """
        import pytorch_lightning as pl

        class Gan(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.generator = nn.Linear(4, 4)
                self.critic = nn.Linear(4, 1)

            def training_step(self, batch, index):  # instead: def training_step(self, batch, index, optimizer_idx):
                made = self.generator(torch.randn_like(batch)).detach()  # expect: TML203
                return self.critic(made).mean() - self.critic(batch).mean()
        """,
    "an optimizer that is toggled": """
        import lightning as L

        class Gan(L.LightningModule):
            def __init__(self):
                super().__init__()
                self.automatic_optimization = False
                self.generator = nn.Linear(4, 4)
                self.critic = nn.Linear(4, 1)

            def training_step(self, batch, index):
                optimizer = self.optimizers()
                self.log("index", index)  # instead: self.toggle_optimizer(optimizer)
                made = self.generator(torch.randn_like(batch)).detach()  # expect: TML203
                self.manual_backward(self.critic(made).mean() - self.critic(batch).mean())
                optimizer.step()
        """,
    "another way of running a network": """
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x, lengths):
                return self.layer(x), lengths

            def one(self, x):
                return self.forward(x, torch.tensor([4]))[0]

        decoder = Decoder()
        for _ in range(4):
            print(decoder.one(torch.randn(4)).mean().item())  # expect: TML201
            # instead: print(torch.no_grad()(decoder.one)(torch.randn(4)).mean().item())
        """,
    "a network that shows itself": """
        class Schedule(nn.Module):
            def __init__(self):
                super().__init__()
                self.curve = nn.Linear(1, 1)
                self.show()

            def show(self):
                print(self.forward(torch.rand(4, 1)).mean().item())  # expect: TML201
                # instead: print(torch.no_grad()(self.forward)(torch.rand(4, 1)).mean().item())

            def forward(self, t):
                return self.curve(t)
        """,
    "a hook that keeps the last output under a name": """
        class Features:
            def __init__(self, network: nn.Module):
                self.network = network
                self.kept = {}

            def layer(self, x, name):
                def hook(module, given, output):
                    self.kept[name] = output  # expect: TML106

                handle = dict(self.network.named_modules())[name].register_forward_hook(hook)
                self.network(x)
                handle.remove()
                return len(self.kept)  # instead: return self.kept[name]
        """,
    "a file of tests by what it imports": """
        import math  # instead: import pytest

        def test_shape(network: nn.Module):
            network.eval()
            for size in range(4):
                print(network(torch.randn(size, 4)).sum().item())  # expect: TML201
        """,
    "a parameter that is frozen after it is made": """
        class Springs:
            def __init__(self):
                self.places = nn.Parameter(torch.rand(4, 2))
                self.shift = nn.Parameter(torch.rand(4, 2))
                print(self.places.shape)  # instead: self.places.requires_grad = False
                print(self.shift.shape)  # instead: self.shift.requires_grad_(False)
                self.sum = torch.zeros(4, 2)

        def run(steps):
            springs = Springs()
            for _ in range(steps):
                springs.sum = springs.sum + springs.places * springs.shift  # expect: TML101
            print(springs.sum.shape)
        """,
    "a parameter that is frozen before it is used": """
        def run(steps):
            weight = torch.rand(4, requires_grad=True)
            print(weight.shape)  # instead: weight.requires_grad_(False)
            total = torch.zeros(4)
            for _ in range(steps):
                total = total + weight * 2  # expect: TML101
            print(total.shape)
        """,
    "a part of a network that nobody runs": """
        class Alone(nn.Module):
            def __init__(self, encoder):
                super().__init__()
                self.encoder = encoder

            def forward(self, x):
                return self.encoder(x).detach()
        """,
    "a part of a network that nobody runs, beside one that trains": """
        class Both(nn.Module):
            def __init__(self, teacher, student):
                super().__init__()
                self.teacher, self.student = teacher, student

            def forward(self, x):
                goal = self.teacher(x)  # expect: TML203  # instead: goal = torch.no_grad()(self.teacher)(x)
                return F.mse_loss(self.student(x), goal.detach())
        """,
    "a part of a network that is run in training": """
        class Alone(nn.Module):
            def __init__(self, encoder):
                super().__init__()
                self.encoder = encoder

            def forward(self, x):
                return self.encoder(x).detach()

        def train(encoder, loader):
            alone = Alone(encoder)
            for x, y in loader:
                goal = alone(x)  # expect: TML203  # instead: goal = torch.no_grad()(alone)(x)
                loss = F.mse_loss(model(x), goal)
                loss.backward()
        """,
    "results that are taken by differentiating": """
        from potentials import Potential

        def main(path, batches):
            network = Potential(path)
            network.eval()
            for batch in batches:
                results = network(batch)  # expect: TML201
                print(results["mean"].item())  # instead: print(results["stress"].mean().item())
        """,
    "what is drawn from a distribution": """
        from torch.distributions import Normal

        drawn = []

        def train(loader):
            for x, y in loader:
                distribution = Normal(model(x), 1.0)
                drawn.append(distribution.rsample())  # expect: TML102
                # instead: drawn.append(distribution.sample())
                distribution.log_prob(y).mean().backward()
        """,
    "a pass that is only drawn from": """
        from torch.distributions import Categorical

        def train(loader):
            for x, y in loader:
                logits = model(x)  # expect: TML201
                print(Categorical(logits=logits).sample())  # instead: F.cross_entropy(logits, y).backward()
        """,
    "the index of the best of several values": """
        target = nn.Linear(4, 2)

        def train(loader):
            for x, y, following in loader:
                best = target(following).argmax(1)  # expect: TML201
                # instead: best = torch.no_grad()(target)(following).argmax(1)
                loss = F.mse_loss(model(x), y + best)
                loss.backward()
        """,
}
