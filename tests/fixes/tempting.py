"""Training scripts in which a fix that is tempting would stop training, and such in which it is right.

Each is put between `HEAD` and `TAIL`, which prints what was trained.
"""

from __future__ import annotations

HEAD = """
import asyncio
import copy
import functools
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net, enc, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
target = nn.Linear(4, 4)
teacher = nn.Linear(4, 4)
data = [torch.randn(3, 4) for _ in range(2)]
x, y = data
parameters = [*net.parameters(), *enc.parameters(), *head.parameters()]
opt = torch.optim.SGD(parameters, lr=0.1)
seen, cache = [], {}


def train(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(round(loss.item(), 4))


"""
TAIL = """
print([round(p.sum().item(), 4) for p in parameters])
"""

TEMPTING = {
    "another statement behind it": """
        nxt = target(x).detach(); z = enc(x)
        train((z - nxt).square().mean())
    """,
    "another statement before it": """
        z = enc(x); nxt = target(x).detach()
        train((z - nxt).square().mean())
    """,
    "a change of what was computed before": """
        z = enc(x)
        nxt = target(x).detach(); z *= 2
        train((z - nxt).square().mean())
    """,
    "in the line of an if": """
        if data: nxt = target(x).detach(); z = enc(x)
        train((z - nxt).square().mean())
    """,
    "in the line of a loop": """
        total = 0
        for one in data: nxt = target(one).detach(); total = total + (enc(one) - nxt).square().mean()
        train(total)
    """,
    "a name assigned within": """
        nxt = target(h := enc(x)).detach()
        train((net(h) - nxt).square().mean())
    """,
    "a name assigned within an index": """
        nxt = target((h := enc(x))[:2]).detach()
        train((net(h)[:2] - nxt).square().mean())
    """,
    "a name assigned within a test": """
        nxt = target(x).detach() if (h := enc(x)).sum() < 100 else 0
        train((net(h) - nxt).square().mean())
    """,
    "a network that keeps what it computes": """
        class Keeping(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                self.last = self.layer(x)
                return self.last

        keeping = Keeping()
        parameters += keeping.parameters()
        opt.add_param_group({"params": keeping.parameters()})
        nxt = target(keeping(x)).detach()
        train((net(keeping.last) - nxt).square().mean())
    """,
    "a function that appends to a list": """
        def embed(x):
            seen.append(enc(x))
            return seen[-1]

        nxt = target(embed(x)).detach()
        train((net(seen[0]) - nxt).square().mean())
    """,
    "a function that fills a dict": """
        def embed(x):
            if "h" not in cache:
                cache["h"] = enc(x)
            return cache["h"]

        nxt = target(embed(x)).detach()
        train((net(embed(x)) - nxt).square().mean())
    """,
    "a function with a global": """
        last = None

        def embed(x):
            global last
            last = enc(x)
            return last

        nxt = target(embed(x)).detach()
        train((net(last) - nxt).square().mean())
    """,
    "a function with a nonlocal": """
        def step(x):
            kept = None

            def embed(x):
                nonlocal kept
                kept = enc(x)
                return kept

            nxt = target(embed(x)).detach()
            return (net(kept) - nxt).square().mean()

        train(step(x))
    """,
    "a memo of functools": """
        @functools.lru_cache
        def embed(i):
            return enc(data[i])

        nxt = target(embed(0)).detach()
        train((net(embed(0)) - nxt).square().mean())
    """,
    "a cache that validation fills": """
        def embed(i):
            if i not in cache:
                cache[i] = enc(data[i])
            return cache[i]

        def validate():
            net.eval()
            right = sum((net(embed(i)).argmax(1) == 0).sum().item() for i in range(2))
            net.train()
            return right

        print(validate())
        train(net(embed(0)).square().mean())
    """,
    "an attribute that validation fills": """
        class Trainer:
            positions = None

            def embed(self, x):
                if self.positions is None:
                    self.positions = enc(x)
                return self.positions

            def validate(self):
                net.eval()
                right = (net(x + self.embed(x)).argmax(1) == 0).sum().item()
                net.train()
                return right

            def fit(self):
                print(self.validate())
                train(net(x + self.embed(x)).square().mean())

        Trainer().fit()
    """,
    "what validation computes on its way": """
        class Trainer:
            def validate(self):
                net.eval()
                self.h = enc(x)
                right = (net(self.h).argmax(1) == 0).sum().item()
                net.train()
                return right

            def fit(self):
                print(self.validate())
                train(head(self.h).square().mean())

        Trainer().fit()
    """,
    "what validation gives beside its number": """
        def validate():
            net.eval()
            h = enc(x)
            right = (net(h).argmax(1) == 0).sum().item()
            net.train()
            return right, h

        right, h = validate()
        print(right)
        train(head(h).square().mean())
    """,
    "a penalty that validation gives": """
        def validate():
            net.eval()
            right = (net(x).argmax(1) == 0).sum().item()
            return right, sum(p.square().sum() for p in enc.parameters())

        right, penalty = validate()
        print(right)
        train(penalty + head(x).square().mean())
    """,
    "validation that trains a temperature": """
        scale = nn.Parameter(torch.ones(4))
        parameters.append(scale)

        def validate():
            net.eval()
            out = net(x).detach() * scale
            print(out.sum().item())
            out.square().mean().backward()
            return scale.grad.sum().item()

        print(validate())
    """,
    "validation that adapts a copy": """
        def validate():
            copied = copy.deepcopy(net)
            inner = torch.optim.SGD(copied.parameters(), lr=0.1)
            for one in data:
                copied(one).square().mean().backward()
                inner.step()
            copied.eval()
            return (copied(x).argmax(1) == 0).sum().item(), round(sum(p.sum().item() for p in copied.parameters()), 3)

        print(validate())
    """,
    "a gradient with respect to the input": """
        def saliency(x):
            net.eval()
            x = x.clone().requires_grad_()
            out = net(x)
            print(out.argmax(1).tolist())
            out.sum().backward()
            return x.grad.sum().item()

        print(round(saliency(x), 3))
    """,
    "a gradient by autograd": """
        def norm(x):
            net.eval()
            x = x.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(net(x).sum(), x)
            return gradient.norm().item()

        print(round(norm(x), 3))
    """,
    "a hook that keeps what passes": """
        enc.register_forward_hook(lambda module, given, out: seen.append(out))

        def validate():
            enc.eval()
            return (enc(x).argmax(1) == 0).sum().item()

        print(validate())
        train(head(seen[-1]).square().mean())
    """,
    "an await within": """
        async def fetch():
            await asyncio.sleep(0.01)
            return x

        async def value():
            nxt = target(await fetch()).detach()
            return nxt.sum().item()

        async def fit():
            await asyncio.sleep(0)
            train(net(x).square().mean())

        async def both():
            print(await asyncio.gather(value(), fit()))

        asyncio.run(both())
    """,
    "a coroutine that evaluates": """
        async def validate():
            net.eval()
            right = 0
            for one in data:
                right += (net(one).argmax(1) == 0).sum().item()
                await asyncio.sleep(0)
            net.train()
            return right

        async def fit():
            for one in data:
                await asyncio.sleep(0)
                train(net(one).square().mean())

        async def both():
            print(await asyncio.gather(validate(), fit()))

        asyncio.run(both())
    """,
    "a generator that evaluates": """
        def outputs():
            net.eval()
            for one in data:
                out = net(one)
                yield (out.argmax(1) == 0).sum().item()

        for right in outputs():
            print(right)
            train(enc(x).square().mean())
    """,
    "a generator that yields what training takes": """
        def features():
            for one in data:
                nxt = target(one).detach()
                yield nxt, enc(one)

        for nxt, z in features():
            train((z - nxt).square().mean())
    """,
    "a tuple of which a part is detached": """
        nxt, z = target(x).detach(), enc(x)
        train((z - nxt).square().mean())
    """,
    "a call with a part that is detached": """
        def both(a, b):
            return b

        z = both(target(x).detach(), enc(x))
        train(z.square().mean())
    """,
    "a dict of which a part is detached": """
        found = {"nxt": target(x).detach(), "z": enc(x)}
        train((found["z"] - found["nxt"]).square().mean())
    """,
    "a loss in one line": """
        loss = F.mse_loss(net(x), target(x).detach())
        train(loss)
    """,
    "a residual": """
        nxt = target(x).detach() + enc(x)
        train(nxt.square().mean())
    """,
    "a scale that is trained": """
        scale = nn.Parameter(torch.ones(4))
        parameters.append(scale)
        nxt = target(x).detach() * scale
        nxt.square().mean().backward()
        print(scale.grad.sum().item())
    """,
    "a key that is computed": """
        cache[enc(x)] = target(x).detach()
        train((next(iter(cache)) - 1).square().mean())
    """,
    "a target in a method's result": """
        class Store:
            pass

        def made(h):
            seen.append(h)
            return Store()

        made(enc(x)).nxt = target(x).detach()
        train(head(seen[0]).square().mean())
    """,
    "a lambda that is called later": """
        make = [target(x).detach(), lambda t: enc(t)]
        train((make[1](x) - make[0]).square().mean())
    """,
    "a closure made in evaluation": """
        def validate():
            net.eval()
            h = enc(x)
            right = (net(h).argmax(1) == 0).sum().item()
            return right, lambda: head(h).square().mean()

        right, loss = validate()
        print(right)
        train(loss())
    """,
    "a partial made in evaluation": """
        def validate():
            net.eval()
            right = (net(x).argmax(1) == 0).sum().item()
            return right, functools.partial(torch.mul, enc(x))

        right, times = validate()
        print(right)
        train(times(2).square().mean())
    """,
    "the last output of a loop": """
        net.eval()
        right = 0
        for one in data:
            right += (net(one).argmax(1) == 0).sum().item(); h = enc(one)
        print(right)
        train(head(h).square().mean())
    """,
    "an output that is kept under a condition": """
        net.eval()
        kept = None
        for one in data:
            out = net(one)
            print((out.argmax(1) == 0).sum().item())
            if kept is None:
                kept = out
        train(head(kept).square().mean())
    """,
    "training in the callee": """
        def step(x):
            nxt = target(x).detach()
            loss = (net(x) - nxt).square().mean()
            train(loss)
            return loss

        def validate():
            teacher.eval()
            right = (teacher(x).argmax(1) == 0).sum().item()
            step(x)
            return right

        print(validate())
    """,
    "an optimizer with a closure, in one line": """
        lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=2)

        def closure():
            lbfgs.zero_grad()
            loss = (net(x) - target(x).detach()).square().mean()
            loss.backward()
            return loss

        print(round(lbfgs.step(closure).item(), 4))
    """,
    "a list that validation extends": """
        def validate(kept):
            net.eval()
            right = 0
            for one in data:
                h = enc(one)
                kept += [h]
                right += (net(h).argmax(1) == 0).sum().item()
            return right

        print(validate(seen))
        train(head(seen[0]).square().mean())
    """,
    "an object that validation is given": """
        class State:
            h = None

        def validate(state):
            net.eval()
            state.h = enc(x)
            return (net(state.h).argmax(1) == 0).sum().item()

        state = State()
        print(validate(state))
        train(head(state.h).square().mean())
    """,
    "a mixture that is detached where it is read": """
        h = enc(x)
        shown = (net(h) + target(h)).detach()
        print(round(shown.sum().item(), 3))
        train(head(h).square().mean() + net(h).mean())
    """,
    "a loss that is logged and differentiated": """
        total = 0
        for one in data:
            loss = net(one).square().mean()
            total += loss
        print(round(total.item(), 4))
        train(total)
    """,
    "a list that is logged and differentiated": """
        for one in data:
            seen.append(net(one).square().mean())
        print(round(sum(s.item() for s in seen), 4))
        train(torch.stack(seen).mean())
    """,
    "an attribute that is logged and differentiated": """
        class Meter:
            total = 0.0

            def add(self, loss):
                self.total += loss

        meter = Meter()
        for one in data:
            meter.add(net(one).square().mean())
        print(round(float(meter.total), 4))
        train(meter.total)
    """,
}

RIGHT = {
    "a target": """
        nxt = target(x).detach()
        train((net(x) - nxt).square().mean())
    """,
    "a target of two networks": """
        nxt = target(teacher(x)).detach()
        train((net(x) - nxt).square().mean())
    """,
    "a target with a comment": """
        nxt = target(x).detach()  # a; b
        train((net(x) - nxt).square().mean())
    """,
    "a target with an index": """
        nxt = target(x).detach()[:, :2]
        train((net(x)[:, :2] - nxt).square().mean())
    """,
    "a target that is scaled": """
        nxt = 0.9 * target(x).detach()
        train((net(x) - nxt).square().mean())
    """,
    "a target on several lines": """
        nxt = target(
            x,
        ).detach()
        train((net(x) - nxt).square().mean())
    """,
    "two targets": """
        nxt = target(x).detach()
        other = teacher(x).detach()
        train((net(x) - nxt - other).square().mean())
    """,
    "a target in a function": """
        def loss(x):
            nxt = target(x).detach()
            return (net(x) - nxt).square().mean()

        train(loss(x))
    """,
    "a target in a method": """
        class Agent:
            def loss(self, x):
                nxt = target(x).detach()
                return (net(x) - nxt).square().mean()

        train(Agent().loss(x))
    """,
    "a target in a loop": """
        for one in data:
            nxt = target(one).detach()
            train((net(one) - nxt).square().mean())
    """,
    "a target under a condition": """
        if len(data) > 1:
            nxt = target(x).detach()
        else:
            nxt = x
        train((net(x) - nxt).square().mean())
    """,
    "a target of an attribute": """
        class Agent:
            def loss(self, x):
                self.nxt = target(x).detach()
                return (net(x) - self.nxt).square().mean()

        train(Agent().loss(x))
    """,
    "a target behind a step": """
        train(net(x).square().mean())
        nxt = target(x).detach()
        train((net(x) - nxt).square().mean())
    """,
    "a target of what is given": """
        def loss(z):
            nxt = target(x).detach()
            return (z - nxt).square().mean()

        train(loss(enc(x)))
    """,
    "an optimizer with a closure": """
        lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=2)

        def closure():
            lbfgs.zero_grad()
            nxt = target(x).detach()
            loss = (net(x) - nxt).square().mean()
            loss.backward()
            return loss

        print(round(lbfgs.step(closure).item(), 4))
    """,
    "validation": """
        def validate():
            net.eval()
            right = 0
            for one in data:
                right += (net(one).argmax(1) == 0).sum().item()
            net.train()
            return right / 6

        print(validate())
        train(net(x).square().mean())
    """,
    "validation of two networks": """
        def validate():
            net.eval(), enc.eval()
            right = 0
            for one in data:
                right += (net(enc(one)).argmax(1) == 0).sum().item()
            return right / 6

        print(validate())
        train(net(enc(x)).square().mean())
    """,
    "validation with a loss": """
        def validate():
            net.eval()
            total = 0.0
            for one in data:
                total += F.mse_loss(net(one), one).item()
            net.train()
            return total / 2

        print(round(validate(), 4))
        train(net(x).square().mean())
    """,
    "validation in a method": """
        class Trainer:
            best = 0

            def validate(self):
                net.eval()
                right = sum((net(one).argmax(1) == 0).sum().item() for one in data)
                self.best = max(self.best, right)
                net.train()
                return right

            def fit(self):
                print(self.validate(), self.best)
                train(net(x).square().mean())

        Trainer().fit()
    """,
    "validation between steps": """
        for one in data:
            train(net(one).square().mean())
            net.eval()
            print((net(x).argmax(1) == 0).sum().item())
            net.train()
    """,
    "validation that keeps numbers": """
        def validate():
            net.eval()
            for one in data:
                seen.append((net(one).argmax(1) == 0).sum().item())
            return sum(seen)

        print(validate())
        train(net(x).square().mean())
    """,
    "validation that keeps what is detached": """
        def validate():
            net.eval()
            outputs = []
            for one in data:
                outputs.append(net(one).detach())
            return (torch.cat(outputs).argmax(1) == 0).sum().item()

        print(validate())
        train(net(x).square().mean())
    """,
    "validation with a function of its own": """
        def right(out):
            return (out.argmax(1) == 0).sum().item()

        def validate():
            net.eval()
            return right(net(x)) + right(net(y))

        print(validate())
        train(net(x).square().mean())
    """,
    "validation as a generator": """
        def validate():
            net.eval()
            for one in data:
                yield (net(one).argmax(1) == 0).sum().item()

        print(sum(validate()))
        train(net(x).square().mean())
    """,
    "validation that raises": """
        def validate():
            net.eval()
            right = (net(x).argmax(1) == 0).sum().item()
            if right < 0:
                raise ValueError(right)
            return right

        try:
            print(validate())
        except ValueError as error:
            print(error)
        train(net(x).square().mean())
    """,
    "a prediction": """
        def predict(x):
            net.eval()
            return net(x).argmax(1).tolist()

        train(net(x).square().mean())
        print(predict(x))
    """,
    "a prediction of the best of several": """
        def predict(x):
            net.eval()
            out = net(x)
            best = out.max(1)
            return best.indices.tolist(), round(best.values.sum().item(), 3)

        train(net(x).square().mean())
        print(predict(x))
    """,
    "a prediction in a loop": """
        def predict():
            net.eval()
            found = []
            for one in data:
                found += net(one).argmax(1).tolist()
            return found

        train(net(x).square().mean())
        print(predict())
    """,
    "a sum of losses": """
        total = 0.0
        for one in data:
            loss = net(one).square().mean()
            train(loss)
            total += loss
        print(round(float(total), 4))
    """,
    "a sum of losses in a function": """
        def fit():
            total = 0.0
            for one in data:
                loss = net(one).square().mean()
                train(loss)
                total += loss
            return total / 2

        print(round(float(fit()), 4))
    """,
    "a list of losses": """
        losses = []
        for one in data:
            loss = net(one).square().mean()
            train(loss)
            losses.append(loss)
        print([round(float(one), 4) for one in losses])
    """,
    "a dict of losses": """
        history = {"loss": []}
        for one in data:
            loss = net(one).square().mean()
            train(loss)
            history["loss"].append(loss)
        print([round(float(one), 4) for one in history["loss"]])
    """,
    "a list of outputs": """
        outputs = []
        for one in data:
            out = net(one)
            train(out.square().mean())
            outputs.append(out)
        print(round(float(torch.cat(outputs).sum()), 4))
    """,
    "a sum on an object": """
        class Meter:
            def __init__(self):
                self.total = 0.0

            def fit(self):
                for one in data:
                    loss = net(one).square().mean()
                    train(loss)
                    self.total += loss

        meter = Meter()
        meter.fit()
        print(round(float(meter.total), 4))
    """,
    "a hook that keeps outputs": """
        def keep(module, given, out):
            seen.append(out)

        enc.register_forward_hook(keep)
        for one in data:
            train(net(enc(one)).square().mean())
        print(round(float(sum(one.sum() for one in seen)), 4))
    """,
    "a loop with two sums": """
        first, second = 0.0, 0.0
        for one in data:
            loss = net(one).square().mean()
            other = enc(one).square().mean()
            train(loss + other)
            first += loss
            second += other
        print(round(float(first), 4), round(float(second), 4))
    """,
    "a sum beside a target": """
        total = 0.0
        for one in data:
            nxt = target(one).detach()
            loss = (net(one) - nxt).square().mean()
            train(loss)
            total += loss
        print(round(float(total), 4))
    """,
    "a sum beside validation": """
        def validate():
            net.eval()
            right = 0
            for one in data:
                right += (net(one).argmax(1) == 0).sum().item()
            net.train()
            return right

        total = 0.0
        for one in data:
            loss = net(one).square().mean()
            train(loss)
            total += loss
            print(validate())
        print(round(float(total), 4))
    """,
    "validation that calls a target's owner": """
        class Agent:
            def target(self, x):
                return target(x).argmax(1)

            def validate(self):
                net.eval()
                right = 0
                for one in data:
                    right += (net(one).argmax(1) == self.target(one)).sum().item()
                return right

        train(net(x).square().mean())
        print(Agent().validate())
    """,
    "validation of a network that keeps its output": """
        class Keeping(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                self.last = self.layer(x)
                return self.last

        keeping = Keeping()
        parameters += keeping.parameters()
        opt.add_param_group({"params": keeping.parameters()})
        train(keeping(x).square().mean())
        keeping.eval()
        right = 0
        for one in data:
            right += (keeping(one).argmax(1) == 0).sum().item()
        print(right)
    """,
    "a frozen part": """
        def features(x):
            return teacher(x).detach()

        for one in data:
            train(net(features(one)).square().mean())
    """,
    "numbers of a network that trains elsewhere": """
        for one in data:
            train(net(one).square().mean())
            print(round(enc(one).sum().item(), 3))
        train(enc(x).square().mean())
    """,
}
