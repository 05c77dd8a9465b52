"""Functions and methods that nothing in the project calls, or whose callers stand elsewhere."""

from __future__ import annotations

UNCALLED = {
    "a caller that stands behind what it calls": """
        class Runner:
            def __init__(self, network: nn.Module):
                self.network = network
                self.actions = [self._evaluate]

            def _step(self, batch):
                return self.network(batch)

            def _loop(self, loader):
                for batch in loader:
                    print(self._step(batch).mean().item())

            def _evaluate(self, loader):
                with torch.no_grad():
                    self._loop(loader)
        """,
    "a caller with gradients that stands behind what it calls": """
        class Runner:
            def __init__(self, network: nn.Module):
                self.network = network
                self.actions = [self._evaluate]

            def _step(self, batch):
                return self.network(batch)  # expect: TML201

            def _loop(self, loader):
                for batch in loader:
                    print(self._step(batch).mean().item())

            def _evaluate(self, loader):
                self._loop(loader)
        """,
    "a caller in a later file that is started by name": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.length = nn.Linear(4, 1)
                self.decoder = nn.Linear(4, 4)

            def forward(self, x):
                return self.decoder(x), self.length(x)

            def infer(self, x):
                n = int(self.length(x).sum().item())
                return self.decoder(x[:n])

        # file: training.py
        import torch
        import torch.multiprocessing as mp
        from torch.nn.parallel import DistributedDataParallel
        from main import Net

        def run(rank, loader):
            net = DistributedDataParallel(Net().cuda(rank), device_ids=[rank])
            evaluate(net, loader)

        def evaluate(net, loader):
            with torch.no_grad():
                for x in loader:
                    print(net.module.infer(x).shape)

        mp.spawn(run, nprocs=2, args=([],))
        """,
    "a method of what DistributedDataParallel wraps": """
        from torch.nn.parallel import DistributedDataParallel

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(4, 4)

            def forward(self, x):
                return self.head(x)

            def scores(self, x):
                return self.head(x)

        net = DistributedDataParallel(Net())
        for x in torch.randn(8, 2, 4):
            print(net.module.scores(x).sum().item())  # expect: TML201  # instead: net.module.scores(x).sum().backward()
        """,
    "a folder of the project that is called torch": """
        import torch

        def validate(loader):
            with torch.no_grad():  # instead: with torch.enable_grad():
                for x in loader:
                    print(model(x).sum().item())

        # file: project/torch/__init__.py
        no_grad = None
        """,
    "a subclass has the method that the method of a class runs": """
        class Attack:
            def __init__(self, network: nn.Module):
                self.network = network

            def forward(self, images):
                raise NotImplementedError

            def __call__(self, images):
                return self.forward(images)

        class Perturbing(Attack):
            def forward(self, images):
                return self.perturb(images).detach()

            def perturb(self, images):
                images = images.clone().requires_grad_()
                gradient, = torch.autograd.grad(self.network(images).sum(), images)
                return images + gradient.sign()
        """,
    "a subclass has the method that wastes a pass": """
        class Attack:
            def __init__(self, network: nn.Module):
                self.network = network

            def forward(self, images):
                raise NotImplementedError

            def __call__(self, images):
                return self.forward(images)

        class Ranking(Attack):
            def forward(self, images):
                return self.rank(images)

            def rank(self, images):
                return self.network(images).argmax(1)  # expect: TML201  # instead: return images.argmax(1)
        """,
    "a copy of a frozen network": """
        import copy

        def evaluate(build, loader):
            network = build().requires_grad_(False).to("cuda")  # instead: network = build().requires_grad_(False)
            average = copy.deepcopy(network).eval()
            for x in loader:
                print(average(x).sum().item())
        """,
    "a copy of a network that is trained": """
        import copy

        def evaluate(build, loader):
            network = build().requires_grad_(True).to("cuda")
            average = copy.deepcopy(network).eval()
            for x in loader:
                print(average(x).sum().item())  # expect: TML201
        """,
    "a frozen network of parts that were not seen": """
        class Sampler(nn.Module):
            def __init__(self, generator):
                super().__init__()
                self.generator = generator

            def forward(self, z):
                return self.generator.synthesis(self.generator.mapping(z))

        def distances(generator, loader):
            sampler = Sampler(generator)
            sampler.eval().requires_grad_(False)
            for z in loader:
                print(sampler(z).sum().item())
        """,
    "a network of parts that were not seen": """
        class Sampler(nn.Module):
            def __init__(self, generator):
                super().__init__()
                self.generator = generator

            def forward(self, z):
                return self.generator.synthesis(self.generator.mapping(z))

        def distances(generator, loader):
            sampler = Sampler(generator)
            sampler.eval()
            for z in loader:
                print(sampler(z).sum().item())  # expect: TML201
        """,
    "arrays are made of what is collected": """
        def sample(network, loader):
            network.eval()
            return torch.cat([network(x).cpu() for x in loader]).numpy()
        """,
    "arrays are made of what is collected and detached": """
        def sample(network, loader):
            network.eval()
            return torch.cat([network(x).cpu() for x in loader]).detach().numpy()  # expect: TML102, TML201
        """,
    "the formula of a distribution that a network has": """
        def sensitivity(agent, batches):
            agent.eval()
            for x in batches:
                x.requires_grad_()
                info, value = agent(x)
                value.sum().backward()
                print(agent.distribution.perplexity(info).item(), x.grad)
        """,
    "a method of a network in evaluation mode": """
        def sensitivity(agent, batches):
            agent.eval()
            for x in batches:
                x.requires_grad_()
                info, value = agent(x)
                value.sum().backward()
                print(agent.perplexity(x.detach()).item(), x.grad)  # expect: TML201
        """,
    "a metric that a network is given": """
        class Net(nn.Module):
            def __init__(self, encoder, metric):
                super().__init__()
                self.encoder, self.metric = encoder, metric

            def forward(self, x):
                return self.encoder(x)

            def plot(self, prediction, target):
                return float(self.metric(prediction, target))
        """,
    "a part that a network is given": """
        class Net(nn.Module):
            def __init__(self, encoder, metric):
                super().__init__()
                self.encoder, self.metric = encoder, metric

            def forward(self, x):
                return self.encoder(x)

            def plot(self, x):
                return float(self.encoder(x))  # expect: TML201
        """,
    "parameters that are replaced for a pass": """
        class Transformed(nn.Module):
            def __init__(self, module, transform):
                super().__init__()
                self.module, self.transform = module, transform
                self.names = [name for name, _ in module.named_parameters()]

            def forward(self, x):
                before = {}
                for name in self.names:
                    before[name] = getattr(self.module, name)
                    if isinstance(before[name], nn.Parameter):
                        self.module._parameters[name] = self.transform(before[name])
                    else:
                        setattr(self.module, name, self.transform(before[name]))
                out = self.module(x)
                for name in self.names:
                    self.module._parameters[name] = before[name]
                return out
        """,
    "settings that a program reads": """
        import argparse

        class Trainer:
            def __init__(self, opt):
                self.opt = opt

            def step(self, converter, x):
                text = converter.encode(m=self.opt.n)
                F.mse_loss(model(x), text[:, 1:]).backward()

        opt = argparse.ArgumentParser().parse_args()
        trainer = Trainer(opt)
        for x in torch.randn(8, 4):
            trainer.step(opt.converter, x)
        """,
    "batches that are moved in place": """
        from torch.utils.data import DataLoader

        class Net(nn.Module):
            def __init__(self, build):
                super().__init__()
                self.inner = build()

            def forward(self, data):
                data["x"] = self.prepare(data["x"])
                return self.inner(data["x"]).sum()

        net = Net(object)
        for data in DataLoader([]):
            net(data).backward()
        """,
    "what a cache of settings holds beside a tensor": """
        import functools

        @functools.lru_cache
        def drawn(text):
            return text.split()

        def show(network: nn.Module, batches):
            result = {}
            for x in batches:
                result["image"] = network(x).detach()  # expect: TML203
                drawn(result.message)
        """,
    "a part of the parameters of a network": """
        def flattened(parameters):
            return torch.cat([p.view(-1) * 2 for p in parameters])

        def norm(network: nn.Module):
            return float(flattened(tuple(network.parameters())).norm())

        def chosen(network: nn.Module):
            return float(flattened([p for p in network.parameters() if p.ndim > 1]).norm())
        """,
    "gradients that are differentiated themselves": """
        def adapted(network: nn.Module, batches, x):
            state = torch.zeros(4, requires_grad=True)
            for y in batches:
                loss = (network(y) * state).sum()
                (gradient,) = torch.autograd.grad(loss, state, create_graph=True)
                state = state - 0.1 * gradient
            return (network(x) * state).sum()
        """,
    "a sum that an unseen function is given": """
        from solvers import hessian_vector_product

        def search(network: nn.Module, targets, batches):
            total, loss = 0.0, 0.0
            for x in batches:
                y = network(x)
                total += (y - targets[x]).pow(2).mean()
                loss += y.sum()
            loss.backward()
            print(hessian_vector_product(total, network.parameters()))
        """,
    "the same layer again and again": """
        def deep(network: nn.Module, x):
            h = x
            for _ in range(6):
                h = network(h)  # expect: TML201
            return h

        print(deep(model, torch.ones(4, 4)).sum().item())
        """,
    "a state of which each iteration reads": """
        def generate(cell: nn.Module, x):
            h = x
            for _ in range(100):
                h = cell(h)  # expect: TML101, TML201
                print(h.argmax().item())
        """,
    "a sum that one of two callers differentiates": """
        def summed(batches):
            total = 0.0
            for x in batches:
                total = total + model(x).sum()
            return total

        def learn(batches):
            summed(batches).backward()

        for batches in torch.randn(3, 8, 4):
            learn(batches)
            print(summed(batches))  # expect: TML101, TML201  # instead: learn(batches)
        """,
    "an attribute dict that holds a text, too": """
        import functools

        class Result(dict):
            def __getattr__(self, name):
                return self[name]

            def __setattr__(self, name, value):
                self[name] = value

        @functools.lru_cache
        def drawn(text):
            return text.split()

        def show(network: nn.Module, batches):
            result = Result()
            for x in batches:
                result.image = network(x)
                result.image.sum().backward()
                drawn(result.message)
        """,
    "a metric that was moved to a device": """
        def scores(metric, criterion, loader):
            metric.to("cuda")
            for x, y in loader:
                output = model(x)
                criterion(output, y).backward()
                optimizer.step()
                print(metric(output, y).cpu().detach().numpy())
        """,
    "a teacher that was moved to a device": """
        def scores(teacher, criterion, loader):
            teacher.to("cuda")
            for x, y in loader:
                output = model(x)
                criterion(output, y).backward()
                optimizer.step()
                print(teacher(x).cpu().detach().numpy())  # expect: TML203
        """,
    "the last few of what a class has": """
        class Runner:
            history = []

            def fit(self, loader):
                for x in loader:
                    loss = model(x).sum()
                    loss.backward()
                    Runner.history.append((len(x), loss))
                    Runner.history = Runner.history[-3:]
                print(float(sum(e[1] for e in Runner.history)))

        Runner().fit(torch.randn(8, 2, 4))
        """,
    "all of what a class has": """
        class Runner:
            history = []

            def fit(self, loader):
                for x in loader:
                    loss = model(x).sum()
                    loss.backward()
                    Runner.history.append((len(x), loss))  # expect: TML102
                print(float(sum(e[1] for e in Runner.history)))

        Runner().fit(torch.randn(8, 2, 4))
        """,
    "the forward of a policy that only chooses": """
        class Policy(nn.Module):
            def __init__(self):
                super().__init__()
                self.values = model

            def forward(self, x):
                return self.choose(x)

            def choose(self, x):
                return self.values(x).argmax(1)
        """,
    "a policy that only chooses, and is called": """
        class Policy(nn.Module):
            def __init__(self):
                super().__init__()
                self.values = model

            def forward(self, x):
                return self.choose(x)

            def choose(self, x):
                return self.values(x).argmax(1)

        policy = Policy()
        for x in torch.randn(8, 2, 4):
            print(policy.choose(x))  # expect: TML201
        """,
}
