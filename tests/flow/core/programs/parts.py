"""Parts of results, and what tests say about them."""

PARTS = {
    "two parts that are differentiated together": """
        def train(vae, loader):
            likelihood, divergence = 0.0, 0.0
            for x, y in loader:
                guess, mu, logvar = vae(x)
                missed = F.mse_loss(guess, x)
                apart = (mu.pow(2) + logvar.exp() - logvar).mean()
                (missed + apart).backward()
                likelihood += missed  # expect: TML101  # instead: likelihood += missed.item()
                divergence += apart  # expect: TML101  # instead: divergence += apart.item()
            print(likelihood, divergence)
        """,
    "losses by name": """
        def train(detector, loader):
            totals = {"box": 0.0, "label": 0.0}
            for images, boxes, labels in loader:
                box, label = detector(images)
                losses = {"box": F.l1_loss(box, boxes), "label": F.cross_entropy(label, labels)}
                sum(losses.values()).backward()
                for name, value in losses.items():
                    totals[name] += value  # expect: TML101  # instead: totals[name] += value.item()
            print(totals)
        """,
    "a part that may be a number": """
        def train(engine, loader):
            weights = []
            for batch in loader:
                result = engine.run(batch)
                (result["loss"] * result["weight"]).mean().backward()
                weights.append(result["weight"])
            print(weights)
        """,
    "the count beside a loss": """
        def train(engine, loader):
            seen = 0
            for batch in loader:
                loss, count = engine.run(batch)
                loss.backward()
                seen += count
            print(seen)
        """,
    "a whole result": """
        def train(engine, loader):
            results = []
            for batch in loader:
                result = engine.run(batch)
                result["loss"].backward()
                result["size"] = len(batch)  # instead: result["loss"] = result["loss"].detach()
                results.append(result)  # expect: TML102
            print(len(results))
        """,
    "an attribute of a result that is replaced": """
        def train(engine, loader):
            losses = []
            for batch in loader:
                result = engine.run(batch)
                result.loss.backward()
                result.loss = result.loss.detach()
                losses.append(result.loss)
            print(len(losses))
        """,
    "a part of a difference": """
        def evaluate(network, loader):
            network.eval()
            total = 0.0
            for x, y in loader:
                scores, states = network(x)  # expect: TML201
                print(scores.argmax(1))
                total += (states[1:] - states[:-1]).pow(2).mean()  # expect: TML101
            print(total)
        """,
    "an entry that is a tensor or a number": """
        def train(loader, weighed):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                found = {"loss": loss, "extra": F.l1_loss(model(x), y) if weighed else 0.0}
                (found["loss"] + found["extra"]).backward()
                total += found["extra"].item() if hasattr(found["extra"], "item") else found["extra"]
            print(total)
        """,
    "an attribute that is a tensor or a number": """
        class Row:
            def __init__(self, loss):
                self.loss = loss

        def train(loader):
            kept = []
            for x, y in loader:
                row = Row(F.mse_loss(model(x), y))
                row.loss.backward()
                if isinstance(row.loss, torch.Tensor):
                    kept.append(0.0)  # instead: kept.append(row.loss.item())
                else:
                    kept.append(row.loss)
            print(kept)
        """,
    "an option about gradients": """
        class Learner:
            def __init__(self, registry, name):
                self.critic = registry[name]()
                self.optimizer = torch.optim.Adam(self.critic.parameters())

            def train(self, batch, steps):
                values, best = [], []
                for step in range(steps):
                    values.append(self.critic.forward(batch, step, compute_grads=True))
                    best.append(self.critic.forward(batch, step))
                torch.stack(values).mean().backward()
                print(len(best))
        """,
    "a method with the name of a tensor's": """
        class Trainer:
            def train(self, engine, loader):
                kept = []
                for batch in loader:
                    loss = engine.loss(batch) / self.scale(kept)
                    kept.append(loss)  # expect: TML102  # instead: kept.append(loss.item())
                    loss.backward()
                print(len(kept))

            def scale(self, kept):
                return self.mean(kept)

            def mean(self, kept):
                return torch.tensor(kept[-5:]).mean()
        """,
    "a network that extends one of torch": """
        class Layers(nn.Sequential):
            def forward(self, x):
                return super().forward(x).flatten(1)
                # instead: return x.flatten(1)

        def main(loader):
            layers, seen = Layers(nn.Linear(4, 4)), []
            for x in loader:
                seen.append(layers(x))  # expect: TML102
            print(len(seen))
        """,
    "a loss that extends one of torch": """
        class Loss(nn.MSELoss):
            def forward(self, x, y):
                return 2 * super().forward(x, y)

        def main(loader):
            net, criterion, total = nn.Linear(4, 4), Loss(), 0
            for x, y in loader:
                loss = criterion(net(x), y)
                loss.backward()
                total += loss  # expect: TML101
                # instead: total += criterion(x, y)
            print(total)
        """,
    "a wrapper that detaches": """
        class Inner(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return self.layer(x)

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()

            def forward(self, x):
                return self.inner(x).detach()

        outer = Outer()

        def show(loader):
            for x in loader:
                print(outer(x.cuda()).mean().item())  # expect: TML203
        """,
}
