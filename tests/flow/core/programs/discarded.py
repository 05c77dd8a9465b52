"""Passes whose backward goes on into a network for gradients that are zeroed unused: of a critic and what it judges."""

_MADE = """
        made = nn.Linear(8, 4)
        updates = torch.optim.SGD(made.parameters(), 0.1)
"""

DISCARDED = {
    "a critic that is given samples with their graph": f"""{_MADE}
        for real in torch.load('data'):
            optimizer.zero_grad()
            fake = made(torch.rand(8, 8))
            (model(fake) - model(real)).mean().backward()  # expect: TML107
            # instead: (model(fake.detach()) - model(real)).mean().backward()
            optimizer.step()
            updates.zero_grad()
            model(fake).mean().backward()
            updates.step()
        """,
    "a critic whose backward trains both": f"""{_MADE}
        for real in torch.load('data'):
            optimizer.zero_grad()
            updates.zero_grad()
            (model(made(torch.rand(8, 8))) - model(real)).mean().backward()
            optimizer.step()
            updates.step()
        """,
    "gradients that are zeroed now and then": f"""{_MADE}
        for number, real in enumerate(torch.load('data')):
            optimizer.zero_grad()
            (model(made(torch.rand(8, 8))) - model(real)).mean().backward()
            optimizer.step()
            if number % 2:
                updates.zero_grad()
            model(made(torch.rand(8, 8))).mean().backward()
            updates.step()
        """,
    "gradients of several backward passes that are summed up": f"""{_MADE}
        for real in torch.load('data'):
            updates.zero_grad()
            for part in real:
                optimizer.zero_grad()
                (model(made(torch.rand(8, 8))) - model(part)).mean().backward()
                optimizer.step()
            updates.step()
        """,
    "a critic's own loop, after which all is zeroed": f"""{_MADE}
        for _ in range(90):
            for real in torch.load('data'):
                (model(made(torch.rand(8, 8))) - model(real)).mean().backward()  # expect: TML107
                # instead: (model(torch.no_grad()(made)(torch.rand(8, 8))) - model(real)).mean().backward()
                optimizer.step()
                made.zero_grad()
                model.zero_grad()
            model(made(torch.rand(8, 8))).mean().backward()
            updates.step()
            made.zero_grad()
            model.zero_grad()
        """,
    "parameters whose gradients are let go one by one": f"""{_MADE}
        for real in torch.load('data'):
            optimizer.zero_grad()
            (model(made(torch.rand(8, 8))) - model(real)).mean().backward()  # expect: TML107
            # instead: (model(torch.no_grad()(made)(torch.rand(8, 8))) - model(real)).mean().backward()
            optimizer.step()
            for p in made.parameters():
                p.grad = None
            model(made(torch.rand(8, 8))).mean().backward()
            updates.step()
        """,
    "optimizers that helpers step and zero": f"""{_MADE}
        def update(chosen, loss):
            chosen.zero_grad()
            loss.backward()
            chosen.step()

        for real in torch.load('data'):
            update(optimizer, (model(made(torch.rand(8, 8))) - model(real)).mean())  # expect: TML107
            # instead: update(optimizer, (model(torch.no_grad()(made)(torch.rand(8, 8))) - model(real)).mean())
            update(updates, model(made(torch.rand(8, 8))).mean())
        """,
    "a method for each of two networks": """
        class Pair:
            def __init__(self):
                self.made, self.judge = nn.Linear(8, 4), nn.Linear(4, 1)
                self.first = torch.optim.Adam([{'params': self.made.parameters(), 'lr': 0.1}])
                self.second = torch.optim.Adam(p for p in self.judge.parameters() if p.requires_grad)

            def judged(self, x, real):
                self.second.zero_grad()
                (self.judge(self.made(x)) - self.judge(real)).mean().backward()  # expect: TML107
                # instead: (self.judge(torch.no_grad()(self.made)(x)) - self.judge(real)).mean().backward()
                self.second.step()

            def improved(self, x):
                self.first.zero_grad()
                self.judge(self.made(x)).mean().backward()
                self.first.step()
        """,
    "a method for each, whose gradients are zeroed by nothing": """
        class Pair:
            def __init__(self):
                self.made, self.judge = nn.Linear(8, 4), nn.Linear(4, 1)
                self.first = torch.optim.Adam(self.made.parameters())
                self.second = torch.optim.Adam(self.judge.parameters())

            def judged(self, x, real):
                self.second.zero_grad()
                (self.judge(self.made(x)) - self.judge(real)).mean().backward()
                self.second.step()

            def improved(self, x):
                self.judge(self.made(x)).mean().backward()
                self.first.step()
        """,
    "a network before the one that makes the samples, which learns from them": f"""{_MADE}
        before = nn.Linear(8, 8)
        both = torch.optim.SGD([*model.parameters(), *before.parameters()], 0.1)
        for real in torch.load('data'):
            both.zero_grad()
            (model(made(before(torch.rand(8, 8)))) - model(real)).mean().backward()
            both.step()
            updates.zero_grad()
            model(made(torch.rand(8, 8))).mean().backward()
            updates.step()
        """,
    "codes that are searched for through both": f"""{_MADE}
        for real in torch.load('data'):
            codes = torch.rand(8, 8, requires_grad=True)
            optimizer.zero_grad()
            (model(made(codes)) - model(real)).mean().backward()
            optimizer.step()
            print(codes.grad)
            updates.zero_grad()
            model(made(torch.rand(8, 8))).mean().backward()
            updates.step()
        """,
    "an optimizer that may hold anything": f"""{_MADE}
        def train(third, loader):
            for real in loader:
                optimizer.zero_grad()
                (model(made(torch.rand(8, 8))) - model(real)).mean().backward()
                optimizer.step()
                third.step()
                updates.zero_grad()
                model(made(torch.rand(8, 8))).mean().backward()
                updates.step()
        """,
    "a library that is given the network in each step": f"""{_MADE}
        from somewhere import toggle

        for real in torch.load('data'):
            toggle(made)
            optimizer.zero_grad()
            (model(made(torch.rand(8, 8))) - model(real)).mean().backward()
            optimizer.step()
            updates.zero_grad()
            model(made(torch.rand(8, 8))).mean().backward()
            updates.step()
        """,
    "a judgement that both steps take": f"""{_MADE}
        def judged():
            return model(made(torch.rand(8, 8))).mean()

        for real in torch.load('data'):
            optimizer.zero_grad()
            (judged() - model(real).mean()).backward()
            optimizer.step()
            updates.zero_grad()
            judged().backward()
            updates.step()
        """,
    "optimizers of Lightning": """
        import lightning

        class Pair(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.automatic_optimization = False
                self.made, self.judge = nn.Linear(8, 4), nn.Linear(4, 1)

            def configure_optimizers(self):
                first = torch.optim.Adam(self.made.parameters())
                return first, torch.optim.Adam(self.judge.parameters())

            def training_step(self, real, number):
                first, second = self.optimizers()
                second.zero_grad()
                x = torch.rand(8, 8)
                self.manual_backward((self.judge(self.made(x)) - real).mean())  # expect: TML107
                # instead: self.manual_backward((self.judge(torch.no_grad()(self.made)(x)) - real).mean())
                second.step()
                first.zero_grad()
                self.manual_backward(self.judge(self.made(torch.rand(8, 8))).mean())
                first.step()
        """,
    "a scaler that steps": f"""{_MADE}
        scaler = torch.cuda.amp.GradScaler()
        for real in torch.load('data'):
            optimizer.zero_grad()
            loss = (model(made(torch.rand(8, 8))) - model(real)).mean()  # expect: TML107
            # instead: loss = (model(torch.no_grad()(made)(torch.rand(8, 8))) - model(real)).mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            updates.zero_grad()
            scaler.scale(model(made(torch.rand(8, 8))).mean()).backward()
            scaler.step(updates)
        """,
}
