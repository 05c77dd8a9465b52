"""What is kept after a backward pass, and what a method of the same object does with it."""

SPENT = {
    "losses that a method of the same object differentiates": """
        class Learner:
            def __init__(self, net):
                self.net = net
                self.optimizer = torch.optim.Adam(net.parameters())

            def update(self, x, y):
                loss = F.mse_loss(self.net(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                return loss  # instead: return loss.item()

            def fit(self, loader):
                log = []
                for x, y in loader:
                    log.append(self.update(x, y))  # expect: TML102
                return log
        """,
    "losses that nothing differentiates before they are handed on": """
        class Learner:
            def __init__(self, net):
                self.net = net
                self.optimizer = torch.optim.Adam(net.parameters())

            def loss(self, x, y):
                return F.mse_loss(self.net(x), y)

            def losses(self, loader):
                found = []
                for x, y in loader:
                    found.append(self.loss(x, y))
                return found

            def fit(self, loader):
                torch.stack(self.losses(loader)).sum().backward()
                self.optimizer.step()
        """,
    "pairs of an episode that a method differentiates before it begins another one": """
        class Learner:
            def __init__(self, net):
                self.net, self.data = net, []
                self.optimizer = torch.optim.Adam(net.parameters())

            def put(self, item):
                self.data.append(item)

            def update(self):
                for reward, chosen in self.data:
                    (-torch.log(chosen) * reward).backward()
                self.optimizer.step()
                self.data = []

        learner = Learner(nn.Linear(4, 2))
        for episode in range(1000):
            for state in torch.rand(9, 4):
                scores = learner.net(state)
                print(scores.argmax().item())
                learner.put((1.0, scores[0]))
            learner.update()
        """,
    "a backward whose option a caller gives": """
        class Learner:
            def __init__(self):
                self.net = nn.Linear(4, 2)
                self.optimizer = torch.optim.Adam(self.net.parameters())

            def step(self, loss, retain_graph=False):
                self.optimizer.zero_grad()
                loss.backward(retain_graph=retain_graph)
                print(loss.item())
                self.optimizer.step()

            def fit(self, loader):
                for x, y in loader:
                    self.step(F.mse_loss(self.net(x), y))

        Learner().fit(torch.rand(100, 2, 8, 4))
        """,
    "a loss of which only a number is printed": """
        class Learner:
            def __init__(self):
                self.net = nn.Linear(4, 2)

            def step(self, loss, retain_graph=False):
                print(loss.item(), retain_graph)

            def fit(self, loader):
                for x, y in loader:
                    self.step(F.mse_loss(self.net(x), y))  # expect: TML201

        Learner().fit(torch.rand(100, 2, 8, 4))
        """,
    "a backward of an engine whose loss has a name": """
        def fit(net, fabric, optimizer, loader):
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                fabric.backward(tensor=loss)
                print(loss.item())
                optimizer.step()
        """,
    "an entropy": """
        class Learner:
            def __init__(self, net):
                self.net = net
                self.optimizer = torch.optim.Adam(net.parameters())

            def update(self, x, action):
                drawn = torch.distributions.Categorical(logits=self.net(x))
                entropy = drawn.entropy().mean()
                (F.cross_entropy(drawn.logits, action) - 0.01 * entropy).backward()
                self.optimizer.step()
                return entropy  # instead: return entropy.detach()

            def fit(self, loader):
                log = []
                for x, action in loader:
                    log.append(self.update(x, action))  # expect: TML102
                return log
        """,
    "what a distribution draws": """
        def train(loader):
            drawn = []
            for x, y in loader:
                policy = torch.distributions.Categorical(logits=model(x))
                action = policy.sample()
                (-policy.log_prob(action).mean()).backward()
                drawn.append(action)
            print(len(drawn))
        """,
    "a network with a method of its own": """
        def train(network, optimizer, loader):
            kept = []
            for batch in loader:
                outputs = network(**batch)
                penalty = network.penalty()
                if penalty is not None:
                    outputs["loss"] += penalty
                outputs["loss"].backward()
                optimizer.step()
                kept.append(outputs)  # expect: TML102  # instead: kept.append(outputs["loss"].item())
            print(len(kept))
        """,
    "a sum that begins anew now and then": """
        def train(loader):
            window = 0.0
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                window += loss  # expect: TML101
                if step % 1000 == 0:
                    print(window / 1000)
                    window = 0.0
        """,
    "a sum that is differentiated now and then": """
        def train(loader):
            total = 0.0
            for step, (x, y) in enumerate(loader):
                total = total + F.mse_loss(model(x), y)
                if step % 4 == 0:
                    total.backward()
                    optimizer.step()
                    total = 0.0
        """,
    "the count that a network gives beside a loss": """
        class Fitter:
            def __init__(self, network: nn.Module):
                self.network = network
                self.optimizer = torch.optim.Adam(network.parameters())

            def epoch(self, loader):
                seen = 0
                for batch in loader:
                    loss, count = self.network(batch)
                    loss.backward()
                    self.optimizer.step()
                    seen += count
                return seen
        """,
    "the tensor that a network gives beside a loss": """
        class Fitter:
            def __init__(self, network: nn.Module):
                self.network = network
                self.optimizer = torch.optim.Adam(network.parameters())

            def epoch(self, loader):
                seen = 0
                for batch in loader:
                    loss, logits = self.network(batch)
                    loss.backward()
                    self.optimizer.step()
                    logits = logits  # instead: logits = logits.detach()
                    seen += logits.exp()  # expect: TML101
                return seen
        """,
    "the state that a recurrent layer gives beside its outputs": """
        gru = nn.GRU(4, 4)

        def train(loader):
            states = []
            for x, y in loader:
                out, state = gru(x)
                F.mse_loss(out, y).backward()
                state = state  # instead: state = state.detach()
                states.append(state)  # expect: TML102
            print(len(states))
        """,
    "those entries that are tensors become numbers": """
        def step(x, y):
            losses = {"name": "first"}
            losses["part"] = F.mse_loss(model(x), y)
            losses["total"] = losses["part"] * 10
            losses["total"].backward()
            for key, value in list(losses.items()):
                if isinstance(value, torch.Tensor):
                    losses[key] = value  # instead: losses[key] = value.detach()
            return losses

        def train(loader):
            kept = []
            for x, y in loader:
                losses = step(x, y)
                kept.append(losses["total"])  # expect: TML102
            print(len(kept))
        """,
    "those entries that are no tensors are changed": """
        def step(x, y):
            losses = {"name": "first"}
            losses["total"] = F.mse_loss(model(x), y)
            losses["total"].backward()
            for key, value in list(losses.items()):
                if not isinstance(value, torch.Tensor):
                    losses[key] = str(value)
            return losses

        def train(loader):
            kept = []
            for x, y in loader:
                losses = step(x, y)
                kept.append(losses["total"])  # expect: TML102
            print(len(kept))
        """,
    "copies of parameters by name": """
        def cloned(table):
            return {name: value.clone() for name, value in table.items()}

        class Rates(nn.Module):
            def __init__(self, network, rates=None):
                super().__init__()
                self.network = network
                if rates is None:
                    rates = nn.ParameterDict()
                    for name, part in network.named_modules():
                        rates[name.replace(".", "-")] = nn.Parameter(torch.ones(()))
                self.rates = rates

            def forward(self, x):
                return self.network(x)

            def clone(self):
                return Rates(self.network, cloned(self.rates))

        def train(loader):
            rates = Rates(model)
            for x, y in loader:
                learner = rates.clone()
                F.mse_loss(learner(x), y).backward()
                optimizer.step()
        """,
    "a temperature that is only printed": """
        class Tuned:
            def __init__(self):
                self.log_alpha = nn.Parameter(torch.zeros(()))
                self.optimizer = torch.optim.Adam([self.log_alpha])

            def update(self, x):
                (self.log_alpha * x).mean().backward()
                self.optimizer.step()
                self.alpha = self.log_alpha.exp()  # expect: TML103  # instead: self.alpha = self.log_alpha.exp().item()

            def train(self, loader):
                for x in loader:
                    self.update(x)
                    print(float(self.alpha))
        """,
    "a temperature that the next loss is made of": """
        class Tuned:
            def __init__(self):
                self.log_alpha = nn.Parameter(torch.zeros(()))
                self.optimizer = torch.optim.Adam([self.log_alpha])

            def measure(self):
                self.alpha = self.log_alpha.exp()
                return float(self.alpha)

            def train(self, loader):
                for x in loader:
                    print(self.measure())
                    (self.alpha * x).mean().backward()
                    self.optimizer.step()
        """,
    "a list that is only called something else": """
        from typing import cast

        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                cast(list, kept).append(loss)  # expect: TML102
            print(len(kept))
        """,
}
