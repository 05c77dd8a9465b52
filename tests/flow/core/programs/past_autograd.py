"""What `x.data` reads and changes."""

PAST_AUTOGRAD = {
    "parameters that are changed": """
        def clip(network: nn.Module, bound):
            for p in network.parameters():
                p.data.clamp_(-bound, bound)  # expect: TML205  # instead: p.clamp_(-bound, bound)
                p.data *= 0.9  # expect: TML205  # instead: p.mul_(0.9)
                p.data[0] = 0  # expect: TML205  # instead: p[0] = 0
                p.data[0].view(-1).zero_()  # expect: TML205  # instead: p[0].view(-1).zero_()

        clip(model, 1.0)
        """,
    "a parameter that is changed in a function": """
        def scale(tensor):
            tensor.data.mul_(2)  # expect: TML205

        scale(model.weight)
        """,
    "a parameter of a class, and one that is filled": """
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4))
                self.scale.data.uniform_(-1, 1)  # expect: TML205  # instead: nn.init.uniform_(self.scale, -1, 1)
                nn.init.zeros_(self.scale.data)  # expect: TML205  # instead: nn.init.zeros_(self.scale)

            def forward(self, x):
                return x * self.scale

        print(Scaled()(torch.ones(4)))
        """,
    "what an optimizer of a project changes": """
        class Sign(torch.optim.Optimizer):
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            p.data.add_(p.grad.data.sign(), alpha=-0.1)  # expect: TML205
        """,
    "a result that is read": """
        def train(loader):
            for x in loader:
                loss = model(x).mean()
                loss.backward()
                optimizer.step()
                print(loss.data.item(), loss.data.mean())  # expect: TML205  # instead: print(loss.detach().item())
        """,
    "what is read for a change": """
        def follow(slow: nn.Module, fast: nn.Module):
            for a, b in zip(slow.parameters(), fast.parameters()):
                a.data.copy_(a.data * 0.9 + b.data * 0.1)  # expect: TML205

        follow(nn.Linear(4, 1), model)
        """,
    "another storage, metadata, gradients, and gradients that are off": """
        def harmless(network: nn.Module, x):
            for p in network.parameters():
                p.data = p.data.half()
                print(p.data.shape, p.data.data_ptr(), p.data.new_zeros(3))
                p.grad.data.mul_(2)
            with torch.no_grad():
                print([p.data.clone() for p in network.parameters()])
                return network(x).data.mean()

        harmless(model, torch.ones(4))
        """,
    "what is no tensor": """
        class Replay:
            def __init__(self):
                self.data = torch.zeros(4)

            def clear(self):
                self.data.zero_()
                self.data[0] = 1

        def fill(replay, dataset, hidden):
            packed = nn.utils.rnn.pack_padded_sequence(hidden, [1])
            replay.data.copy_(packed.data)
            return len(dataset.data)

        Replay().clear()
        fill(Replay(), [], torch.ones(1, 1))
        """,
    "a tensor without a graph": """
        buffer = torch.zeros(4)
        buffer.data.add_(1)
        print(buffer.data)
        """,
}
