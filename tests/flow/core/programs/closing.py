"""Code under `torch.no_grad()`, and whether a tensor leaves it."""

CLOSING = {
    "numbers that are read under a guard": """
        def evaluate(network, loader):
            network.eval()
            hits = 0
            with torch.no_grad():  # expect: TML204  # instead: with torch.inference_mode():
                for x, y in loader:
                    hits += (network(x).argmax(1) == y).sum().item()
            return hits
        """,
    "a decorated method": """
        class Recogniser:
            def __init__(self, network: nn.Module):
                self.network = network.eval()

            @torch.no_grad()  # expect: TML204  # instead: @torch.inference_mode()
            def names(self, x):
                return self.network(x).max(-1).indices.tolist()
        """,
    "numbers that a function under a guard gives to its caller": """
        @torch.no_grad()  # expect: TML204
        def score(network, x):
            return network(x).mean().item()

        def report(loader):
            for x in loader:
                print(score(model, x))

        report([torch.ones(4)])
        """,
    "what the caller of a guarded function differentiates": """
        @torch.no_grad()
        def goal(x):
            return model(x).softmax(-1)

        def train(loader):
            for x in loader:
                wanted = goal(x)
                loss = F.mse_loss(model(x), wanted)
                print(wanted.mean().item())
                loss.backward()
                optimizer.step()

        train([torch.ones(4)])
        """,
    "integers, masks and samples that leave": """
        @torch.no_grad()
        def best(network, x):
            print(network(x).mean().item())
            return network(x).argmax(-1)

        @torch.no_grad()
        def mask(network, x):
            print(network(x).mean().item())
            return network(x) > 0

        @torch.no_grad()
        def act(network, x):
            scores = network(x)
            print(scores.mean().item())
            return torch.distributions.Categorical(logits=scores).sample()

        @torch.no_grad()
        def padded(network, x):
            print(network(x).mean().item())
            return torch.zeros(3)
        """,
    "tensors that are kept, handed on, changed, yielded or dropped": """
        class Teacher:
            def __init__(self, network, metric):
                self.network, self.metric, self.seen = network, metric, []

            def remember(self, x):
                with torch.no_grad():
                    self.last = self.network(x)
                return self.last.mean().item()

            def collect(self, x):
                with torch.no_grad():
                    out = self.network(x)
                    print(out.mean().item())
                    self.seen.append(out)

            def measure(self, x, y):
                with torch.no_grad():
                    out = self.network(x)
                    print(out.mean().item())
                    self.metric.update(out, y)

        def calibrate(network, loader, shift):
            with torch.no_grad():
                for x in loader:
                    out = network(x)
                    print(out.mean().item())
                    shift.add_(out.mean())

        @torch.no_grad()
        def each(network, loader):
            for x in loader:
                print(network(x).mean().item())
                yield network(x)

        def warm_up(network: nn.Module, x):
            with torch.no_grad():
                network(x)
        """,
}
