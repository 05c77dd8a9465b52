"""Forward passes and what is done with their results."""

PASSES = {
    "the numbers of a result": """
        def train(loader):
            for x, y in loader:
                goal = model(x).data  # expect: TML203  # instead: goal = torch.no_grad()(model)(x)
                loss = F.mse_loss(model(x), goal + y)
                loss.backward()
        """,
    "the numbers of a result in a function": """
        def numbers(value):
            return value.data

        def train(loader):
            for x, y in loader:
                goal = numbers(model(x))  # expect: TML203  # instead: goal = numbers(torch.no_grad()(model)(x))
                loss = F.mse_loss(model(x), goal + y)
                loss.backward()
        """,
    "an attribute that is called data": """
        class Box:
            def __init__(self):
                self.data = []

            def add(self, value):
                self.data.append(value)  # expect: TML102

        def train(loader):
            box = Box()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                box.add(loss)  # instead: box.add(loss.data)
            print(len(box.data))
        """,
    "a packed sequence": """
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        reader = nn.GRU(4, 4)

        def train(loader):
            for x, lengths in loader:
                states, last = reader(pack_padded_sequence(x, lengths))
                loss = states.data.sum()
                loss.backward()
                states, last = reader(pack_padded_sequence(x, lengths))  # expect: TML203
                # instead: states, last = torch.no_grad()(reader)(pack_padded_sequence(x, lengths))
                print(states.data.detach() + last.data)
        """,
}
