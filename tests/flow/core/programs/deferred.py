"""Backward passes that wait for the losses of several batches, and those that have to."""

_LOADER = """
        loader = torch.utils.data.DataLoader(torch.load('data'), batch_size=8)
"""

DEFERRED = {
    "the losses of the pieces of a batch": """
        def step(x, y):
            total = 0
            for part, goal in zip(x.chunk(4), y.chunk(4)):
                loss = F.mse_loss(model(part), goal)  # instead: loss = F.mse_loss(model(part), goal) / 4
                total = total + loss  # instead: loss.backward()
            (total / 4).backward()  # expect: TML108  # instead: optimizer.step()
        """,
    "a mean of the losses of a list of pieces": """
        def step(x, y):
            parts = zip(torch.split(x, 8), torch.split(y, 8))
            losses = [F.mse_loss(model(part), goal) for part, goal in parts]
            torch.stack(losses).mean().backward()  # expect: TML108
            # instead: torch.stack(losses).std().backward()
        """,
    "a loss that is differentiated every few batches": f"""{_LOADER}
        total = 0
        for number, (x, y) in enumerate(loader):
            total += F.mse_loss(model(x), y) / 4
            if number % 4 == 3:
                total.backward()  # expect: TML108
                # instead: (total ** 2).backward()
                optimizer.step()
                total = 0
        """,
    "losses that a helper adds up and another differentiates": f"""{_LOADER}
        def mean(losses):
            return sum(losses) / len(losses)

        def update(loss):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        for epoch in range(9):
            losses = []
            for x, y in loader:
                losses.append(F.mse_loss(model(x), y))
            update(mean(losses))  # expect: TML108
            # instead: update(torch.stack(losses).max())
        """,
    "losses of which one is taken": f"""{_LOADER}
        worst = torch.zeros(())
        for x, y in loader:
            worst = torch.maximum(worst, F.mse_loss(model(x), y))
        worst.backward()
        """,
    "what is known of a loss only when all others are": f"""{_LOADER}
        found, weights = [], []
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            found.append(loss)
            weights.append(loss.item())
        total = 0
        for loss, weight in zip(found, weights):
            total = total + loss * (weight / sum(weights))
        total.backward()
        """,
    "pieces of features that one pass made": """
        def step(x, y):
            features, total = model(x), 0
            head = nn.Linear(1, 1)
            for part, goal in zip(features.chunk(4), y.chunk(4)):
                total = total + F.mse_loss(head(part), goal)
            total.backward()
        """,
    "a state that goes on from piece to piece": """
        def step(x, y):
            cell = nn.GRUCell(4, 4)
            state, total = torch.zeros(1, 4), 0
            for part, goal in zip(x.chunk(4), y.chunk(4)):
                state = cell(part, state)
                total = total + F.mse_loss(state, goal)
            total.backward()
        """,
    "a few heads": """
        heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])

        def step(x, y):
            total = 0
            for head in heads:
                total = total + F.mse_loss(head(x), y)
            total.backward()
        """,
    "levels of noise on one batch": """
        def step(x, levels):
            total = 0
            for level in levels:
                total = total + F.mse_loss(model(x + level * torch.randn_like(x)), x)
            total.backward()
        """,
    "gradients of gradients": f"""{_LOADER}
        total = 0
        for x, y in loader:
            total = total + F.mse_loss(model(x), y)
        first = torch.autograd.grad(total, model.parameters(), create_graph=True)
        sum(g.pow(2).sum() for g in first).backward()
        """,
    "a dictionary of the file that is updated, and summed up": """
        CACHE = {}

        def losses(loader):
            for x, y in loader:
                CACHE.update({len(CACHE): F.mse_loss(model(x), y)})
            return sum(CACHE.values())

        def train(loader):
            losses(loader).backward()
        """,
}
