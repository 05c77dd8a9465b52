"""Forward passes whose graphs nobody needs, and who turns gradients off."""

MODES = {
    "an evaluation": """
        def train(loader):
            model.eval()
            right = 0
            for x, y in loader:
                out = model(x)  # expect: TML201  # instead: out = torch.no_grad()(model)(x)
                right += (out.argmax(1) == y[:, 0]).sum().item()
            print(right)
        """,
    "an evaluation for which gradients are asked for": """
        def train(loader):
            model.eval()
            total = 0.0
            with torch.enable_grad():
                for x, y in loader:
                    total += F.mse_loss(model(x), y).item()
            print(total)
        """,
    "an evaluation of a sum": """
        def train(loader):
            model.eval()
            total = 0.0
            for x, y in loader:
                with torch.no_grad():
                    loss = F.mse_loss(model(x), y)
                total += loss
            print(total)
        """,
    "an evaluation with a decorator": """
        @torch.no_grad()
        def evaluate(network, x, y):
            network.eval()
            return F.mse_loss(network(x), y)

        def train(loader):
            total = 0.0
            for x, y in loader:
                total += evaluate(model, x, y)
            print(total)
        """,
    "an evaluation in inference mode": """
        @torch.inference_mode()
        def train(loader):
            losses = []
            for x, y in loader:
                losses.append(F.mse_loss(model(x), y))
            print(torch.stack(losses).mean())
        """,
    "an evaluation whose caller turns gradients off": """
        def evaluate(loader):
            model.eval()
            total = 0.0
            for x, y in loader:
                total += F.mse_loss(model(x), y).item()
            return total

        def train(loader):
            with torch.no_grad():
                print(evaluate(loader))
        """,
    "an evaluation whose caller does not": """
        def evaluate(loader):
            model.eval()
            total = 0.0
            for x, y in loader:
                total += F.mse_loss(model(x), y).item()  # expect: TML201
            return total

        def train(loader):
            with torch.no_grad():  # the loader's batches only
                first = next(iter(loader))
            print(first[0].shape)
            print(evaluate(loader))  # instead: print(torch.no_grad()(evaluate)(loader))
        """,
    "an evaluation after training": """
        def train(loader):
            for x, y in loader:
                model.train()
                loss = F.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                model.eval()
                print(F.mse_loss(model(x), y).item())  # expect: TML201
                # instead: print(torch.no_grad()(F.mse_loss)(x[:, :1], y).item())
        """,
    "an evaluation in a function of its own": """
        def accuracy(out, y):
            return (out.argmax(1) == y[:, 0]).float().mean().item()

        def evaluate(loader):
            model.eval()
            return [accuracy(model(x), y) for x, y in loader]  # expect: TML201

        def train(loader):
            print(evaluate(loader))  # instead: print(torch.no_grad()(evaluate)(loader))
        """,
    "a context in a variable": """
        def train(loader):
            off = torch.no_grad()
            model.eval()
            for x, y in loader:
                with off:
                    print(F.mse_loss(model(x), y).item())
        """,
    "a context in an ExitStack": """
        from contextlib import ExitStack

        def train(loader):
            model.eval()
            with ExitStack() as stack:
                stack.enter_context(torch.no_grad())
                for x, y in loader:
                    print(F.mse_loss(model(x), y).item())
        """,
    "a context of its own": """
        from contextlib import contextmanager

        @contextmanager
        def evaluating(network):
            network.eval()
            with torch.no_grad():
                yield network
            network.train()

        def train(loader):
            with evaluating(model) as network:
                for x, y in loader:
                    print(F.mse_loss(network(x), y).item())
        """,
    "a context of its own that leaves gradients on": """
        from contextlib import contextmanager

        @contextmanager
        def evaluating(network):
            network.eval()
            yield network
            network.train()

        def train(loader):
            with evaluating(model) as network:
                for x, y in loader:
                    print(F.mse_loss(network(x), y).item())  # expect: TML201
                    # instead: print(F.mse_loss(x[:, :1], y).item())
        """,
    "a class that is a context": """
        class Off:
            def __enter__(self):
                self.before = torch.is_grad_enabled()
                torch.set_grad_enabled(False)

            def __exit__(self, *what):
                torch.set_grad_enabled(self.before)

        def train(loader):
            model.eval()
            with Off():
                for x, y in loader:
                    print(F.mse_loss(model(x), y).item())
        """,
    "a class that only measures time": """
        import time

        class Timer:
            def __enter__(self):
                self.start = time.time()
                return self

            def __exit__(self, *what):
                print(time.time() - self.start)

        def train(loader):
            model.eval()
            with Timer():
                for x, y in loader:
                    print(F.mse_loss(model(x), y).item())  # expect: TML201
                    # instead: print(F.mse_loss(x[:, :1], y).item())
        """,
    "phases": """
        def train(loader):
            for phase in ("train", "val"):
                total = 0.0
                for x, y in loader:
                    optimizer.zero_grad()
                    with torch.set_grad_enabled(phase == "train"):
                        loss = F.mse_loss(model(x), y)
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
                    total += loss  # expect: TML101  # instead: total += loss.item()
                print(phase, total)
        """,
    "a flag that says whether to train": """
        def run(loader, train):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                if train:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                total += loss.item()
            return total

        def train(loader):
            run(loader, True)
            with torch.no_grad():
                run(loader, False)
        """,
    "a flag that turns gradients off": """
        def run(loader, train=True):
            model.train(train)
            with torch.set_grad_enabled(train):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    if train:
                        loss.backward()
                    print(loss.item())

        def train(loader):
            run(loader)
            run(loader, train=False)
        """,
    "gradients that are turned off for good": """
        def train(loader):
            torch.set_grad_enabled(False)
            model.eval()
            losses = []
            for x, y in loader:
                losses.append(F.mse_loss(model(x), y))
            print(len(losses))
            torch.set_grad_enabled(True)
        """,
    "gradients that are turned on inside": """
        def train(loader):
            with torch.no_grad():
                for x, y in loader:
                    with torch.enable_grad():
                        loss = F.mse_loss(model(x), y)
                        loss.backward()
                    print(loss.item())
        """,
    "a pass that only feeds argmax": """
        def train(loader):
            for x, y in loader:
                actions = model(x).argmax(1)  # expect: TML201  # instead: actions = torch.no_grad()(model)(x).argmax(1)
                loss = F.mse_loss(model(x + actions[:, None]), y)
                loss.backward()
        """,
    "a pass whose results are all detached": """
        def train(loader):
            for x, y in loader:
                goal = model(x).detach()  # expect: TML203  # instead: goal = torch.no_grad()(model)(x)
                loss = F.mse_loss(model(x), goal + y)
                loss.backward()
        """,
    "a target network": """
        target = nn.Linear(4, 1)
        target.load_state_dict(model.state_dict())

        def train(loader):
            for x, y in loader:
                goal = target(x).detach()  # expect: TML203  # instead: goal = torch.no_grad()(target)(x)
                loss = F.mse_loss(model(x), goal)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    "a target network that is a copy": """
        import copy

        target = copy.deepcopy(model)

        def train(loader):
            for x, y in loader:
                with torch.no_grad():
                    goal = target(x)
                loss = F.mse_loss(model(x), goal)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                for p, q in zip(target.parameters(), model.parameters()):
                    p.data.lerp_(q.data, 0.1)
        """,
    "a teacher that is frozen": """
        import copy

        teacher = copy.deepcopy(model)
        for p in teacher.parameters():
            p.requires_grad_(False)

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), teacher(x))
                loss.backward()
        """,
    "a teacher whose parameters requires_grad_ freezes": """
        teacher = nn.Linear(4, 1).requires_grad_(False)

        def train(loader):
            teacher.eval()
            for x, y in loader:
                print(teacher(x).mean().item())
                F.mse_loss(model(x), teacher(x)).backward()
        """,
    "a step of a GAN": """
        generator, critic = nn.Linear(4, 4), nn.Linear(4, 1)

        def train(loader):
            for x, y in loader:
                fake = generator(x)
                loss_d = critic(x).mean() - critic(fake.detach()).mean()
                loss_d.backward()
                loss_g = -critic(fake).mean()
                loss_g.backward()
        """,
    "a step of a GAN that makes twice": """
        generator, critic = nn.Linear(4, 4), nn.Linear(4, 1)

        def train(loader):
            for x, y in loader:
                fake = generator(x).detach()  # expect: TML203  # instead: fake = torch.no_grad()(generator)(x)
                loss_d = critic(x).mean() - critic(fake).mean()
                loss_d.backward()
                loss_g = -critic(generator(x)).mean()
                loss_g.backward()
        """,
    "a pass of which one result is detached": """
        def train(loader):
            for x, y in loader:
                out = model(x)
                weight = out.detach().abs()
                loss = (weight * (out - y) ** 2).mean()
                loss.backward()
        """,
    "a pass that is differentiated by autograd.grad": """
        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                gradients = torch.autograd.grad(loss, list(model.parameters()))
                print(gradients[0].norm())
        """,
    "a training loop that prints": """
        def train(loader):
            model.train()
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(step, loss.item(), f"{loss:.3f}")
        """,
    "an evaluation within training": """
        def evaluate(loader):
            model.eval()
            for x, y in loader:
                print(F.mse_loss(model(x), y).item())  # expect: TML201
                # instead: print(F.mse_loss(x[:, :1], y).item())
            model.train()

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            evaluate(loader)
        """,
    "losses of an evaluation in a list": """
        def train(loader):
            model.eval()
            losses = []
            for x, y in loader:
                losses.append(F.mse_loss(model(x), y))  # expect: TML102, TML201
                # instead: losses.append(torch.no_grad()(model)(x))
            print(torch.stack(losses).mean().item())
        """,
    "a second network that is only looked at": """
        probe = nn.Linear(4, 2)

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                print(probe(x).softmax(1).max().item())  # expect: TML201
                # instead: print(torch.no_grad()(probe)(x).max().item())
        """,
    "a target network that is a copy and detached": """
        import copy

        target = copy.deepcopy(model)

        def train(loader):
            for x, y in loader:
                goal = target(x).detach()  # expect: TML203  # instead: goal = torch.no_grad()(target)(x)
                loss = F.mse_loss(model(x), goal)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    "a mode that is made and dropped": """
        def scores(x):
            torch.no_grad()  # expect: TML202
            torch.autograd.inference_mode()  # expect: TML202
            return x + 1
        """,
    "modes that are entered, set, kept or put around a function": """
        import contextlib

        class Quiet:
            def __init__(self):
                self.mode = torch.no_grad()
                self.mode.__enter__()

        def scores(x, network):
            torch.set_grad_enabled(False)
            with contextlib.ExitStack() as stack:
                stack.enter_context(torch.no_grad())
            mode = torch.no_grad()
            mode.__enter__()
            torch.no_grad().__enter__()
            torch.no_grad()(network)(x)
            print(torch.no_grad())
            return torch.no_grad()
        """,
    "a block under the class of a mode": """
        def scores(x):
            with torch.no_grad:  # expect: TML202
                return x + 1

        def more(x):
            with torch.inference_mode(), torch.autograd.no_grad as mode:  # expect: TML202
                return x + 1
        """,
    "a class under a mode": """
        @torch.no_grad()  # expect: TML202
        class Teacher(nn.Module):
            def forward(self, x):
                return x + 1

            @torch.no_grad()
            def scores(self, x):
                return x + 1

        print(Teacher()(torch.zeros(1)))
        """,
    "tensors for which volatile is asked": """
        from torch.autograd import Variable

        def variable(x, volatile=False):
            return Variable(x, volatile=volatile)

        def given(x, **options):
            return Variable(x, **options)

        def scores(x):
            kept = variable(x)
            return variable(x, volatile=True) + kept  # expect: TML202

        def more(x):
            return given(x, requires_grad=False) + given(x, volatile=True)  # expect: TML202

        def never(x):
            return Variable(x, volatile=False)
        """,
    "modules of which requires_grad is set": """
        def freeze(network: nn.Module, part):
            network.requires_grad = False  # expect: TML202
            network.head.requires_grad = False  # perhaps a parameter
            part.requires_grad = False
            for layer in network.children():
                layer.requires_grad = False  # expect: TML202
            for parameter in network.parameters():
                parameter.requires_grad = False
            for parameter in network._parameters.values():
                parameter.requires_grad = False
            for layer in network.layers:
                layer.requires_grad = False  # perhaps a parameter of a ParameterList
            network.weight.requires_grad = False

        def helper(part):
            part.requires_grad = False  # expect: TML202

        freeze(model, model.weight)
        helper(nn.Linear(1, 1))
        """,
    "a flag that is no tensor's": """
        class Setting:
            def __init__(self):
                self.requires_grad = True

        def make(setting: Setting):
            setting.requires_grad = False
            return torch.zeros(3, requires_grad=setting.requires_grad)
        """,
    "an evaluation in the mode that was there before": """
        def evaluate(loader):
            model.eval()
            total = 0.0
            mode = torch.is_grad_enabled()
            with torch.set_grad_enabled(mode):
                for x, y in loader:
                    total += F.mse_loss(model(x), y).item()  # expect: TML201
            return total

        def train(loader):
            print(evaluate(loader))  # instead: print(torch.no_grad()(evaluate)(loader))
        """,
    "a mode that is set again": """
        def evaluate(loader):
            model.eval()
            total = 0.0
            mode = torch.is_grad_enabled()
            torch.set_grad_enabled(False)
            print(len(loader))
            torch.set_grad_enabled(mode)  # instead: print(mode)
            for x, y in loader:
                total += F.mse_loss(model(x), y).item()  # expect: TML201
            return total

        def train(loader):
            print(evaluate(loader))
        """,
    "a library's network whose forward is replaced by itself": """
        def evaluate(network, loader):
            network.eval()
            network.forward = torch.enable_grad()(network.forward)
            # instead: network.forward = torch.no_grad()(network.forward)
            kept = []
            for x, y in loader:
                kept.append(network(x))  # expect: TML102
            print(sum(kept))

        evaluate(nn.Linear(4, 1), torch.ones(9, 2, 4))
        """,
}
