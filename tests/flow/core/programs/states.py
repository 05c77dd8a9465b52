"""What one iteration hands to the next."""

STATES = {
    "a hidden state": """
        rnn = nn.GRU(4, 4)

        def train(loader):
            hidden = torch.zeros(1, 8, 4)
            for x, y in loader:
                out, hidden = rnn(x[None], hidden)  # expect: TML104
                # instead: out, hidden = rnn(x[None], hidden.detach())
                loss = F.mse_loss(out[0], y)
                loss.backward(retain_graph=True)  # instead: loss.backward()
        """,
    "a hidden state of two tensors": """
        rnn = nn.LSTM(4, 4)

        def train(loader):
            state = None
            for x, y in loader:
                out, state = rnn(x[None], state)  # expect: TML104
                loss = F.mse_loss(out[0], y)
                loss.backward(retain_graph=True)  # instead: loss.backward()
                state  # instead: state = tuple(s.detach() for s in state)
        """,
    "a hidden state within one sequence": """
        cell = nn.GRUCell(4, 4)

        def train(loader):
            for x, y in loader:
                hidden = torch.zeros(8, 4)
                for step in range(5):
                    hidden = cell(x, hidden)
                loss = F.mse_loss(hidden, y)
                loss.backward()
        """,
    "a previous output that is compared with": """
        def train(loader):
            previous = None
            for x, y in loader:
                out = model(x)
                loss = F.mse_loss(out, y)
                if previous is not None:
                    loss = loss + F.mse_loss(out, previous)
                loss.backward()
                previous = out.detach()
        """,
    "a hidden state in an attribute": """
        class Agent(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(4, 4)
                self.hidden = torch.zeros(8, 4)

            def forward(self, x):
                self.hidden = self.cell(x, self.hidden)  # expect: TML104
                # instead: self.hidden = self.cell(x, self.hidden.detach())
                return self.hidden

        agent = Agent()

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(agent(x), y)
                loss.backward(retain_graph=True)  # instead: loss.backward()
        """,
    "a state that a recursion detaches": """
        rnn = nn.LSTM(4, 4)

        def repackage(h):
            if isinstance(h, torch.Tensor):
                return h.detach()  # instead: return h.detach().clone()
            return tuple(repackage(v) for v in h)

        def train(loader):
            state = (torch.zeros(1, 8, 4), torch.zeros(1, 8, 4))
            for x, y in loader:
                state = repackage(state)
                out, state = rnn(x[None], state)
                F.mse_loss(out[0], y).backward()
        """,
    "a state that a recursion passes on": """
        rnn = nn.LSTM(4, 4)

        def moved(h):
            if isinstance(h, torch.Tensor):
                return h.float()  # instead: return h.float().detach()
            return tuple(moved(v) for v in h)

        def train(loader):
            state = (torch.zeros(1, 8, 4), torch.zeros(1, 8, 4))
            for x, y in loader:
                state = moved(state)
                out, state = rnn(x[None], state)  # expect: TML104
                F.mse_loss(out[0], y).backward(retain_graph=True)  # instead: F.mse_loss(out[0], y).backward()
        """,
    "layers with the names of a writer's methods": """
        class Memory(nn.Module):
            def __init__(self):
                super().__init__()
                self.write, self.read = nn.Linear(8, 4), nn.Linear(8, 1)

            def forward(self, x, memory):
                memory = torch.tanh(self.write(torch.cat([x, memory], -1)))
                return self.read(torch.cat([x, memory], -1)), memory

        memory_of = Memory()

        def train(loader):
            memory = torch.zeros(8, 4)
            for x, y in loader:
                out, memory = memory_of(x, memory)  # expect: TML104
                # instead: out, memory = memory_of(x, memory.detach())
                F.mse_loss(out, y).backward(retain_graph=True)  # instead: F.mse_loss(out, y).backward()
        """,
    "a state that a network keeps as an attribute": """
        class Stateful(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn, self.head, self.hidden = nn.GRU(4, 4), nn.Linear(4, 1), None

            def forward(self, x):
                out, self.hidden = self.rnn(x, self.hidden)  # expect: TML104
                return self.head(out[-1])  # instead: self.hidden = self.hidden.detach(); return self.head(out[-1])

        def train(loader):
            stateful = Stateful()
            for x, y in loader:
                F.mse_loss(stateful(x), y).backward()
        """,
    "a batch that a loader makes is written to": """
        from torch.utils.data import DataLoader

        def train(data):
            total = 0.0
            loader = DataLoader(data)
            for epoch in range(3):
                for batch in loader:
                    batch.inputs["x"] = model(batch.inputs["x"])
                    loss = F.mse_loss(batch.inputs["x"], batch.y)
                    loss.backward()
                    total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a batch of what was not seen is written to": """
        def train(batches):
            total = 0.0
            for batch in batches:
                batch["x"] = model(batch["x"])
                loss = batch["x"].pow(2).mean()
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a batch of what was not seen is written to, in each epoch": """
        def train(batches):
            for epoch in range(3):
                for batch in batches:
                    batch["x"] = model(batch["x"])
                    loss = batch["x"].pow(2).mean()
                    loss.backward()
        """,
    "batches that are kept in a list are written to": """
        def train():
            states = [{"x": torch.zeros(4)} for n in range(100)]
            for epoch in range(3):
                for state in states:
                    state["x"] = model(state["x"])  # expect: TML104
                    # instead: state["x"] = model(state["x"].detach())
                    loss = state["x"].pow(2).mean()
                    loss.backward(retain_graph=True)
        """,
    "states behind a loss in a list that is put together": """
        class Remembering(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x, *memory):
                h = self.layer(x)
                if memory:
                    h = h + memory[0]
                kept = []
                for part in (h, h):
                    kept.append(part)  # instead: kept.append(part.detach())
                return [h.pow(2).mean()] + kept

        def train(loader):
            remembering = Remembering()
            memory = ()
            for x in loader:
                returned = remembering(x, *memory)
                loss, memory = returned[0], returned[1:]  # expect: TML104
                loss.backward(retain_graph=True)  # instead: loss.backward()
        """,
    "losses in front of others": """
        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses = [loss] + losses  # expect: TML101  # instead: losses = [loss.item()] + losses
            print(losses)
        """,
}
