"""Graphs that a backward pass keeps for another one, which follows or does not."""

RETAINED = {
    "a graph retained for a second loss": """
        def train(loader, other):
            for x, y in loader:
                z = model(x)
                loss = F.mse_loss(z, y)
                loss.backward(retain_graph=True)  # expect: TML105
                more = other(x).mean()  # instead: more = other(z).mean()
                more.backward()
                optimizer.step()
        """,
    "a graph that every iteration goes through": """
        def train(x, ys):
            z = model(x)  # instead: z = 0
            for y in ys:
                loss = F.mse_loss(z, y)
                loss.backward(retain_graph=True)
            optimizer.step()
        """,
    "a graph that every iteration goes through, of parameters that have changed": """
        def train(x, ys):
            z = model(x)
            for y in ys:
                loss = F.mse_loss(z, y)
                loss.backward(retain_graph=True)  # expect: TML105
                optimizer.step()  # instead: pass
        """,
    "a graph of parameters that have changed, in a list": """
        def train(xs, ys):
            zs = [model(x) for x in xs]
            for y in ys:
                loss = F.mse_loss(torch.cat(zs), y)
                loss.backward(retain_graph=True)  # expect: TML105
                optimizer.step()  # instead: print(loss.item())
        """,
    "a graph of parameters that another optimizer changes": """
        def train(loader, head):
            fast = torch.optim.SGD(head.parameters(), 0.1)
            for x, ys in loader:
                z = model(x)
                for y in ys:
                    loss = F.mse_loss(head(z), y)
                    loss.backward(retain_graph=True)  # expect: TML105
                    fast.step()
                optimizer.step()
        """,
    "a graph that is made anew in every iteration": """
        def train(x, ys):
            for y in ys:
                z = model(x)
                F.mse_loss(z, y).backward(retain_graph=True)  # expect: TML105
                optimizer.step()
        """,
    "a graph of an inner loop's start": """
        def train(loader, head):
            for x, ys in loader:
                z = model(x)
                for y in ys:
                    F.mse_loss(head(z), y).backward(retain_graph=True)  # expect: TML105
                optimizer.step()
        """,
    "retained on one of two branches": """
        def train(loader, scale):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                if scale > 1:
                    (scale * loss).backward(retain_graph=True)  # expect: TML105
                else:
                    loss.backward()
                optimizer.step()
        """,
    "retained for what may follow a branch": """
        def train(loader, twice):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward(retain_graph=True)  # expect: TML105
                if twice:
                    loss = F.mse_loss(model(x), y)  # instead: loss = 2 * loss
                    loss.backward()
                optimizer.step()
        """,
    "an option that a caller decides about": """
        def train(loader, again):
            for x, y in loader:
                F.mse_loss(model(x), y).backward(retain_graph=again)
                optimizer.step()
        """,
    "retained by a helper, for two callers": """
        def backward(loss):
            loss.backward(retain_graph=True)  # expect: TML105

        def first(loader):
            for x, y in loader:
                backward(F.mse_loss(model(x), y))
                optimizer.step()

        def second(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                backward(loss)
                print(loss.item())  # instead: backward(loss)
                optimizer.step()
        """,
    "retained for another method, in another file": """
        class Pair:
            def __init__(self):
                self.encoder, self.head, self.critic = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)

            def encode(self, x):
                self.z = self.encoder(x)

            def first(self, y):
                F.mse_loss(self.head(self.z), y).backward(retain_graph=True)

            def second(self, y):
                F.mse_loss(self.critic(self.z), y).backward()

        # file: train.py
        from main import Pair

        def train(loader):
            pair = Pair()
            for x, y in loader:
                pair.encode(x)
                pair.first(y)
                pair.second(y)
        """,
    "a gradient with a graph, of which numbers are read": """
        def norms(loader):
            found = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                grads = torch.autograd.grad(loss, model.parameters(), create_graph=True)  # expect: TML105
                found.append(grads[0].norm().item())  # instead: grads[0].norm().backward()
            return found
        """,
    "gradients that a second-order optimizer may differentiate": """
        def train(loader, curvature):
            for x, y in loader:
                optimizer.zero_grad()
                F.mse_loss(model(x), y).backward(create_graph=True)  # expect: TML105
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # instead: curvature.step()
                optimizer.step()
        """,
    "gradients that are read with their graph": """
        def penalty():
            return sum(p.grad.pow(2).sum() for p in model.parameters())

        def train(loader):
            for x, y in loader:
                optimizer.zero_grad()
                F.mse_loss(model(x), y).backward(create_graph=True)  # expect: TML105
                optimizer.step()  # instead: penalty().backward(); optimizer.step()
        """,
    "a loss that a caller may differentiate again": """
        class Learner:
            def __init__(self, net):
                self.net = net

            def learn(self, x, y):
                loss = F.mse_loss(self.net(x), y)
                loss.backward(retain_graph=True)  # expect: TML105
                return loss.item()  # instead: return loss
        """,
    "a part of the graph that a library trains with": """
        def train(loader, critic):
            for x, y in loader:
                z = model(x)
                F.mse_loss(z, y).backward(retain_graph=True)  # expect: TML105
                critic.log(z)  # instead: critic.step(z)
                optimizer.step()
        """,
    "a module that runs with other parameters": """
        def adapt(net, x, y):
            weights = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}
            for _ in range(5):
                loss = F.mse_loss(torch.func.functional_call(net, weights, (x,)), y)
                grads = torch.autograd.grad(loss, list(weights.values()), retain_graph=True)  # expect: TML105
                weights = {n: (p - g).detach().requires_grad_() for (n, p), g in zip(weights.items(), grads)}
            return weights
        """,
}
