"""What torch's own tools do."""

TORCH_THINGS = {
    "a network of the project without parameters, within another": """
        class Absolute(nn.Module):
            def __init__(self, scale):
                super().__init__()
                self.scale = scale
                self.activation = nn.ReLU()

            def forward(self, x):
                return self.activation(x).abs()

        def test(loader):
            net = nn.Sequential(Absolute(2), nn.Softmax(1))
            net.eval()
            for x, y in loader:
                print(net(x).max().item())
        """,
    "a network of the project with parameters, within another": """
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4))

            def forward(self, x):
                return x * self.scale

        def test(loader):
            net = nn.Sequential(Scaled(), nn.Softmax(1))
            net.eval()
            for x, y in loader:
                print(net(x).max().item())  # expect: TML201  # instead: net(x).sum().backward()
        """,
    "a jacobian is numbers": """
        from torch.autograd.functional import jacobian

        def train(loader):
            found = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                found.append(jacobian(model, x).sum())  # instead: found.append(jacobian(model, x, False).sum())
            print(len(found))
        """,
    "integers have no graph": """
        def train(loader):
            kept = []
            for x, y in loader:
                scores = model(x)
                F.mse_loss(scores, y).backward()
                kept.append(scores.to(torch.uint8))
                kept.append(scores.to(dtype=torch.int64))
                kept.append(scores.type(torch.LongTensor))
            print(len(kept))
        """,
    "other types have a graph": """
        def train(loader):
            kept = []
            for x, y in loader:
                scores = model(x)
                F.mse_loss(scores, y).backward()
                kept.append(scores.to(torch.float16))  # expect: TML102
                # instead: kept.append(scores.detach().to(torch.float16))
            print(len(kept))
        """,
    "a network of parameters": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.zeros(4, 4))

            def forward(self, x):
                return torch.mm(x, self.weight)

        def test(loader):
            net = Net()
            net.eval()
            for x, y in loader:
                print(net(x).argmax(1))  # expect: TML201  # instead: print(net(x).sum().backward())
        """,
    "a result that is filled part by part, beside another": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                found = torch.zeros(8, 4)
                found[0] = self.layer(x)
                return found, x

        def test(loader):
            net = Net()
            net.eval()
            for x, y in loader:
                found, _ = net(x)  # expect: TML201
                print(found.argmax(1))  # instead: found.sum().backward()
        """,
    "mixed precision": """
        scaler = torch.amp.GradScaler(enabled=False)

        def train(loader):
            total = 0.0
            for x, y in loader:
                with torch.autocast("cpu", enabled=False):
                    loss = F.mse_loss(model(x), y)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "checkpointing": """
        from torch.utils.checkpoint import checkpoint

        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(checkpoint(model, x, use_reentrant=False), y)
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses))
        """,
    "a function of autograd": """
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return 2 * x

            @staticmethod
            def backward(context, gradient):
                return 2 * gradient

        def train(loader):
            losses = []
            for x, y in loader:
                loss = Double.apply(F.mse_loss(model(x), y))
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses))
        """,
    "a penalty on gradients": """
        def train(loader):
            for x, y in loader:
                x = x.requires_grad_()
                out = model(x)
                gradient, = torch.autograd.grad(out.sum(), x, create_graph=True)
                loss = F.mse_loss(out, y) + gradient.norm()
                loss.backward()
                print(loss.item())
        """,
    "gradients that keep a graph in a list": """
        deep = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))

        def train(loader):
            norms = []
            for x, y in loader:
                x = x.requires_grad_()
                gradient, = torch.autograd.grad(deep(x).sum(), x, create_graph=True)
                gradient.norm().backward()
                norms.append(gradient)  # expect: TML102  # instead: norms.append(gradient.detach())
            print(len(norms))
        """,
    "a sequential network": """
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a loss module": """
        criterion = nn.MSELoss()

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = criterion(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "an average of weights": """
        average = [p.detach().clone() for p in model.parameters()]

        def train(loader):
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
                optimizer.step()
                with torch.no_grad():
                    for mine, p in zip(average, model.parameters()):
                        mine.mul_(0.9).add_(p, alpha=0.1)
        """,
    "weights that are kept": """
        def train(loader):
            history = []
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
                optimizer.step()
                history.append({name: p.detach().clone() for name, p in model.named_parameters()})
                history.append(model.state_dict())
            print(len(history))
        """,
    "a replay buffer": """
        class Buffer:
            def __init__(self):
                self.items = []

            def push(self, *item):
                self.items.append(item)  # expect: TML102

        def train(loader):
            buffer = Buffer()
            for x, y in loader:
                value = model(x)
                F.mse_loss(value, y).backward()
                buffer.push(x, value)  # instead: buffer.push(x, value.detach())
        """,
    "a module of its own loss": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)

            def forward(self, x, y):
                out = self.layer(x)
                return {"loss": F.mse_loss(out, y), "out": out}

        net = Net()

        def train(loader):
            losses = []
            for x, y in loader:
                result = net(x, y)
                result["loss"].backward()
                losses.append(result["out"])  # expect: TML102  # instead: losses.append(result["out"].detach())
            print(len(losses))
        """,
    "a list that is detached when it is read": """
        def train(loader):
            outputs = []
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                outputs.append(out)  # expect: TML102  # instead: outputs.append(out.detach())
            print(torch.cat(outputs).detach().mean())
        """,
    "data parallel": """
        net = nn.DataParallel(nn.Linear(4, 1))

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "in place on the loss": """
        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss.detach_())
            print(len(losses))
        """,
    "weights of an embedding": """
        table = nn.Embedding(10, 1)

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(table(x.abs().long() % 10).mean(1), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a tensor that requires gradients": """
        weight = torch.zeros(4, 1, requires_grad=True)

        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(x @ weight, y)
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses))
        """,
    "a buffer of a module": """
        class Mean(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)
                self.register_buffer("mean", torch.zeros(1))

            def forward(self, x):
                out = self.layer(x)
                self.mean = 0.9 * self.mean + 0.1 * out.mean()  # expect: TML101
                # instead: self.mean = 0.9 * self.mean + 0.1 * out.mean().detach()
                return out

        net = Mean()

        def train(loader):
            for x, y in loader:
                F.mse_loss(net(x), y).backward()
        """,
    "a frozen backbone": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.backbone, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

            def forward(self, x):
                with torch.no_grad():
                    features = self.backbone(x)
                return self.head(features)

        net = Net()

        def train(loader):
            for x, y in loader:
                F.mse_loss(net(x), y).backward()
        """,
    "policies and values": """
        policy, value = nn.Linear(4, 2), nn.Linear(4, 1)

        def train(loader):
            for x, y in loader:
                scores = F.log_softmax(policy(x), 1)
                estimate = value(x)
                advantage = (y - estimate).detach()
                loss = -(scores[:, :1] * advantage).mean() + F.mse_loss(estimate, y)
                loss.backward()
        """,
    "a teacher in eval mode": """
        teacher = nn.Linear(4, 1).eval()

        def train(loader):
            for x, y in loader:
                goal = teacher(x)  # expect: TML203  # instead: goal = torch.no_grad()(teacher)(x)
                loss = F.mse_loss(model(x), goal.detach())
                loss.backward()
        """,
    "straight through": """
        def train(loader):
            for x, y in loader:
                soft = model(x).sigmoid()
                hard = (soft > 0.5).float()
                loss = F.mse_loss(hard + soft - soft.detach(), y)
                loss.backward()
        """,
    "contrastive pairs": """
        def train(loader):
            for x, y in loader:
                first, second = model(x), model(x + 0.1)
                loss = F.mse_loss(first, second.detach()) + F.mse_loss(second, first.detach())
                loss.backward()
        """,
    "a beam": """
        def train(loader):
            model.eval()
            with torch.no_grad():
                for x, y in loader:
                    beams = [x]
                    for _ in range(3):
                        beams = [beam + model(beam) for beam in beams]
                    print(len(beams))
        """,
    "a generation without no_grad": """
        decoder = nn.Linear(4, 4)

        def train(loader):
            decoder.eval()
            for x, y in loader:
                for _ in range(3):
                    scores = decoder(x)  # expect: TML201  # instead: scores = torch.no_grad()(decoder)(x)
                    x = F.one_hot(scores.argmax(1), 4).float()
                print(x.sum().item())
        """,
    "a parameter of a module": """
        class Scale(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(1))

            def forward(self, x):
                return self.scale * x.mean(1, keepdim=True)

        scale = Scale()

        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(scale(x), y)
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses))
        """,
    "values and their indices": """
        def train(loader):
            total, kept = 0.0, []
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                values, indices = out.max(1)
                total += indices.sum()
                kept.append(out.topk(1)[1])
                kept.append(torch.sort(out, 0).indices)
                kept.append(torch.max(out, dim=-1)[1])
                kept.append(torch.max(out, dim=-1)[0])  # expect: TML102  # instead: kept.append(values.detach())
            print(total, len(kept))
        """,
    "an operation with a gradient of its own": """
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor):
                return x * factor

            @staticmethod
            def backward(ctx, gradient):
                return gradient, None

        def reduced(x):
            return Scaled.apply(x, 2.0)

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += reduced(loss)  # expect: TML101  # instead: total += reduced(loss.detach())
            print(total)
        """,
    "an operation with a gradient of its own, by another name": """
        from torch.autograd import Function

        class Rounded(Function):
            @staticmethod
            def forward(ctx, x):
                return x.round()

            @staticmethod
            def backward(ctx, gradient):
                return gradient

        rounded = Rounded.apply

        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(rounded(model(x)), y)
                loss.backward()
                kept.append(rounded(loss))  # expect: TML102  # instead: kept.append(rounded(loss.item()))
            print(len(kept))
        """,
    "initialisers in a loop": """
        from torch.nn import init

        kept = []

        def reset(networks):
            for network in networks:
                network.weight.data = init.xavier_uniform(network.weight.data, init.calculate_gain("relu"))
                kept.append(init.zeros_(network.bias))

        def norms(n):
            weight = torch.ones(4, 4, requires_grad=True)
            for _ in range(n):
                kept.append(init.xavier_uniform_(weight).pow(2).sum())  # expect: TML102
                # instead: kept.append(init.xavier_uniform_(weight).detach().pow(2).sum())
            print(len(kept))

        reset([nn.Linear(4, 4) for _ in range(9)])
        norms(100)
        """,
    "normalisation with and without parameters": """
        plain, scaled = nn.InstanceNorm2d(3), nn.InstanceNorm2d(3, affine=True)
        bare, shifted = nn.LayerNorm(4, elementwise_affine=False), nn.LayerNorm(4)
        seen = []
        for _ in range(90):
            x = torch.rand(2, 3, 4, 4)
            seen.append(plain(x) + bare(x))
        print(len(seen))
        kept = []
        for _ in range(90):
            x = torch.rand(2, 3, 4, 4)
            kept.append(scaled(x) + shifted(x))  # expect: TML102
        """,
}
