"""Ways through a program."""

CONTROL = {
    "a loop in a loop": """
        def train(loader):
            losses = []
            for epoch in range(2):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses))
        """,
    "one graph for each epoch": """
        def train(loader):
            losses = []
            for epoch in range(2):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                losses.append(loss.item())
            print(losses)
        """,
    "a reset after some steps": """
        def train(loader):
            total = 0.0
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += loss
                if step % 3 == 0:
                    print(total.item())
                    total = 0.0
        """,
    "a list that a helper empties": """
        def flush(losses):
            print(sum(losses).item())
            losses.clear()

        def train(loader):
            losses = []
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss)
                flush(losses)
        """,
    "continue": """
        def train(loader):
            total = 0.0
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                if step == 0:
                    continue
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "try and finally": """
        def train(loader):
            losses = []
            for x, y in loader:
                try:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                except RuntimeError as error:
                    print(error)
                    continue
                finally:
                    optimizer.zero_grad()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
        """,
    "an assignment expression": """
        def train(loader):
            total, batches = 0.0, iter(loader)
            while (batch := next(batches, None)) is not None:
                x, y = batch
                (loss := F.mse_loss(model(x), y)).backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "either of two losses": """
        def train(loader):
            total = 0.0
            for step, (x, y) in enumerate(loader):
                if step % 2:
                    loss = F.l1_loss(model(x), y)
                else:
                    loss = F.mse_loss(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.detach()
            print(total)
        """,
    "a way out at once": """
        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss)
                break
            print(len(losses))
        """,
    "a return from the loop": """
        def first(loader):
            losses = []
            for x, y in loader:
                losses.append(F.mse_loss(model(x), y))
                return losses

        def train(loader):
            sum(first(loader)).backward()
        """,
    "a loop of a few written things": """
        def train(loader):
            for x, y in loader:
                losses = []
                for criterion in (F.mse_loss, F.l1_loss):
                    losses.append(criterion(model(x), y))
                (losses[0] + losses[1]).backward()
        """,
    "a dictionary of losses that is summed": """
        def train(loader):
            for x, y in loader:
                out = model(x)
                losses = {"mse": F.mse_loss(out, y), "l1": F.l1_loss(out, y)}
                loss = sum(losses.values())
                loss.backward()
                print({name: value.item() for name, value in losses.items()})
        """,
    "the loop in another function": """
        def repeat(function, loader):
            for x, y in loader:
                function(x, y)

        def train(loader):
            losses = []

            def learn(x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())

            repeat(learn, loader)
        """,
    "a match": """
        def train(loader):
            losses = []
            for batch in loader:
                match batch:
                    case [x, y]:
                        loss = F.mse_loss(model(x), y)
                        loss.backward()
                        losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses))
        """,
    "functions in a dictionary": """
        def plain(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss  # instead: return loss.item()

        def doubled(x, y):
            return 2 * plain(x, y)

        STEPS = {"plain": plain, "doubled": doubled}

        def train(loader):
            total = 0.0
            step = STEPS["doubled"]
            for x, y in loader:
                total += step(x, y)  # expect: TML101
            print(total)
        """,
    "gradients that are accumulated": """
        def train(loader):
            optimizer.zero_grad()
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y) / 4
                loss.backward()
                if step % 4 == 3:
                    optimizer.step()
                    optimizer.zero_grad()
        """,
    "a closure of an optimizer": """
        lbfgs = torch.optim.LBFGS(model.parameters())

        def train(loader):
            for x, y in loader:

                def closure():
                    lbfgs.zero_grad()
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    return loss

                print(lbfgs.step(closure).item())
        """,
    "several networks": """
        networks = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = sum(F.mse_loss(network(x), y) for network in networks)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "layers one after the other": """
        layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

        def train(loader):
            for x, y in loader:
                h = x
                for layer in layers:
                    h = layer(h).relu()
                F.mse_loss(h.mean(1, keepdim=True), y).backward()
        """,
    "features of all layers": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

            def forward(self, x):
                features = []
                for layer in self.layers:
                    x = layer(x)
                    features.append(x)
                return torch.cat(features, 1)

        net = Net()

        def train(loader):
            for x, y in loader:
                net(x).mean().backward()
        """,
    "an output that is fed back": """
        decoder = nn.Linear(4, 4)

        def train(loader):
            for x, y in loader:
                outputs, h = [], x
                for step in range(6):
                    h = decoder(h)
                    outputs.append(h)
                torch.stack(outputs).mean().backward()
        """,
    "episodes of reinforcement learning": """
        def train(loader):
            for episode in range(2):
                log_probs, rewards = [], []
                for x, y in loader:
                    log_probs.append(F.logsigmoid(model(x)))
                    rewards.append(y.mean())
                loss = -(torch.stack(log_probs) * torch.stack(rewards)[:, None, None]).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    "a function that is defined twice": """
        def number(loss):
            return loss

        def number(loss):
            return loss.item()

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += number(loss)
            print(total)
        """,
    "a parameter that is optimized": """
        style = torch.zeros(4, requires_grad=True)
        own = torch.optim.SGD([style], 0.1)

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x + style), y)
                own.zero_grad()
                loss.backward()
                own.step()
                print(loss.item())
        """,
    "a tensor whose gradients are asked for later": """
        def explain(loader):
            total = 0.0
            for x, y in loader:
                noise = torch.zeros(4)
                noise.requires_grad = True
                loss = (x * noise).sum()
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a copy whose gradients are asked for later": """
        def explain(loader):
            total = 0.0
            for x, y in loader:
                noise = y.detach().clone()
                noise.requires_grad_()
                loss = (x * noise).sum()
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a list that is emptied after some steps": """
        def train(loader):
            losses = []
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss)
                if len(losses) == 3:
                    print(sum(losses).item())
                    losses = []
        """,
    "a number of what may be a tensor, and has no name": """
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return [x.size(0), loss]

        def train(loader):
            total = 0.0
            for x, y in loader:
                out, key = learn(x, y), len(y) - 1
                total += out[key].item() if torch.is_tensor(out[key]) else out[key]
                total += out[-1] if not isinstance(out[-1], torch.Tensor) else out[-1].item()
                total += out[key] if torch.is_tensor(out[key]) else 0.0  # expect: TML101
                # instead: total += 0.0 if hasattr(out.pop(), "item") else out.pop()
            print(total)
        """,
    "a phase of which a nested function asks": """
        def run(loader, phase):
            kept = []

            def one(x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                if phase == "train":
                    kept.append(loss)  # expect: TML102

            for x, y in loader:
                one(x, y)
            print(sum(kept))

        def train(loader):
            run(loader, "train")  # instead: run(loader, "test")
        """,
}
