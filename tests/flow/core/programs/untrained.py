"""Passes that are differentiated, through networks that nothing trains."""

UNTRAINED = {
    "a target network that is differentiated": """
        target = nn.Linear(4, 1)
        target.load_state_dict(model.state_dict())

        for step in range(90):
            x, following, reward = torch.rand(8, 4), torch.rand(8, 4), torch.rand(8, 1)
            goal = reward + 0.9 * target(following)  # expect: TML206
            # instead: goal = reward + 0.9 * torch.no_grad()(target)(following)
            optimizer.zero_grad()
            F.mse_loss(model(x), goal).backward()
            optimizer.step()
            if step % 10 == 0:
                target.load_state_dict(model.state_dict())
        """,
    "a target network that an optimizer has, too": """
        target = nn.Linear(4, 1)
        both = torch.optim.SGD([*model.parameters(), *target.parameters()], 0.1)

        for step in range(90):
            x, following = torch.rand(8, 4), torch.rand(8, 4)
            both.zero_grad()
            F.mse_loss(model(x), target(following)).backward()
            both.step()
        """,
    "an agent with a target that follows": """
        import copy

        class Agent:
            def __init__(self):
                self.network = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
                self.target = copy.deepcopy(self.network)
                self.optimizer = torch.optim.Adam(self.network.parameters())

            def update(self, batch):
                x, following, reward = batch
                goal = reward + self.target(following)  # expect: TML206
                # instead: goal = reward + torch.no_grad()(self.target)(following)
                self.optimizer.zero_grad()
                F.mse_loss(self.network(x), goal).backward()
                self.optimizer.step()
                for old, new in zip(self.target.parameters(), self.network.parameters()):
                    old.data.lerp_(new.data, 0.01)
        """,
    "a teacher that is a copy of what is trained": """
        import copy

        def train(loader):
            teacher = copy.deepcopy(model)
            for x, y in loader:
                goal = teacher(x)  # expect: TML206  # instead: goal = torch.no_grad()(teacher)(x)
                optimizer.zero_grad()
                F.mse_loss(model(x), goal).backward()
                optimizer.step()

        train(torch.load('data'))
        """,
    "targets that feed each other": """
        actor, critic = nn.Linear(4, 4), nn.Linear(4, 1)

        def train(loader):
            for x, following in loader:
                goal = critic(actor(following))  # expect: TML206
                # instead: goal = torch.no_grad()(critic)(torch.no_grad()(actor)(following))
                optimizer.zero_grad()
                F.mse_loss(model(x), goal).backward()
                optimizer.step()

        train(torch.load('data'))
        """,
    "a loss that looks through a network": """
        features = nn.Sequential(nn.Linear(1, 4), nn.ReLU())

        def train(loader):
            for x, y in loader:
                seen = features(model(x))
                goal = features(y)  # expect: TML206  # instead: goal = torch.no_grad()(features)(y)
                optimizer.zero_grad()
                F.l1_loss(seen, goal).backward()
                optimizer.step()

        train(torch.load('data'))
        """,
    "an image that is optimised": """
        features = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        image = torch.rand(4, requires_grad=True)
        painter = torch.optim.Adam([image, *model.parameters()])

        for _ in range(90):
            painter.zero_grad()
            features(image).sum().backward()
            painter.step()
        """,
    "only the last layer is trained": """
        backbone = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

        def train(loader):
            for x, y in loader:
                states = backbone(x)  # expect: TML206  # instead: states = torch.no_grad()(backbone)(x)
                optimizer.zero_grad()
                F.mse_loss(model(states), y).backward()
                optimizer.step()

        train(torch.load('data'))
        """,
    "only a part of a network is trained": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

            def forward(self, x):
                return self.head(self.body(x))

        def main(loader):
            net = Net()
            trained = torch.optim.SGD(net.head.parameters(), 0.1)
            for x, y in loader:
                trained.zero_grad()
                F.mse_loss(net(x), y).backward()
                trained.step()
        """,
    "gradients that are handed on": """
        def share(worker, shared):
            for own, other in zip(worker.parameters(), shared.parameters()):
                if other.grad is not None:
                    return
                other._grad = own.grad

        def work(loader):
            worker = nn.Linear(4, 1)
            for x, y in loader:
                worker.load_state_dict(model.state_dict())
                optimizer.zero_grad()
                F.mse_loss(worker(x), y).backward()
                share(worker, model)
                optimizer.step()
        """,
    "gradients that are applied by hand": """
        def descend(parameters):
            for parameter in parameters:
                parameter.data -= 0.1 * parameter.grad

        def train(loader):
            other = nn.Linear(4, 1)
            for x, y in loader:
                optimizer.zero_grad()
                F.mse_loss(model(x), other(y)).backward()
                optimizer.step()
                descend(other.parameters())
        """,
    "gradients that are asked for": """
        def train(loader):
            other = nn.Linear(4, 1)
            for x, y in loader:
                loss = F.mse_loss(model(x), other(y))
                gradients = torch.autograd.grad(loss, [*other.parameters()], retain_graph=True)
                loss.backward()
                optimizer.step()
                print(gradients[0].norm().item())
        """,
    "an optimizer of the project": """
        class Plain(torch.optim.Optimizer):
            def __init__(self, parameters):
                super().__init__(parameters, {})

        def train(loader):
            other = nn.Linear(4, 1)
            plain = Plain(other.parameters())
            for x, y in loader:
                F.mse_loss(model(x), other(y)).backward()
                optimizer.step()
                plain.step()
        """,
    "an optimizer of a library that is not seen": """
        from optimizers import make_optimizer

        def train(loader):
            other = nn.Linear(4, 1)
            second = make_optimizer(other, 0.1)
            for x, y in loader:
                F.mse_loss(model(x), other(y)).backward()
                optimizer.step()
                second.step()
        """,
    "an optimizer of a network that a table names": """
        KINDS = {"small": nn.Linear}

        def train(loader, network, trained):
            for x, y in loader:
                trained.zero_grad()
                F.mse_loss(model(network(x)), y).backward()
                optimizer.step()
                trained.step()

        def main():
            network = KINDS["small"](4, 4).to("cpu")
            trained = torch.optim.SGD(network.parameters(), 0.1)
            train([], network, trained)

        main()
        """,
    "an optimizer that a caller gives": """
        def train(loader, optimizers):
            other = nn.Linear(4, 1)
            optimizers.append(torch.optim.SGD(other.parameters(), 0.1))
            for x, y in loader:
                F.mse_loss(model(x), other(y)).backward()
                for one in optimizers:
                    one.step()
        """,
    "a network that is given by its annotation": """
        def train(loader, network: nn.Linear):
            for x, y in loader:
                optimizer.zero_grad()
                F.mse_loss(model(network(x)), y).backward()
                optimizer.step()
        """,
    "what a trainer holds beside its model": """
        from transformers import PreTrainedModel, Trainer

        class Preferences(Trainer):
            def __init__(self, model, reference: PreTrainedModel | None = None, **kwargs):
                super().__init__(model, **kwargs)
                self.reference = reference

            def compute_loss(self, model, inputs, return_outputs=False):
                wanted = self.reference(inputs["ids"])[0]  # expect: TML206
                # instead: wanted = torch.no_grad()(self.reference)(inputs["ids"])[0]
                return F.mse_loss(model(inputs["ids"])[0], wanted)
        """,
    "what a trainer moves and holds beside its model": """
        from transformers import Trainer

        class Distilled(Trainer):
            def __init__(self, *args, teacher=None, **kwargs):
                super().__init__(*args, **kwargs)
                self.teacher = teacher
                self.teacher.to(self.args.device)

            def compute_loss(self, model, inputs, return_outputs=False):
                goal = self.teacher(inputs["ids"])  # expect: TML206
                # instead: goal = torch.no_grad()(self.teacher)(inputs["ids"])
                return F.mse_loss(model(inputs["ids"]), goal)
        """,
    "a trainer's reward, which looks at what the model gives": """
        from transformers import PreTrainedModel, Trainer

        class Rewarded(Trainer):
            def __init__(self, model, reward: PreTrainedModel, **kwargs):
                super().__init__(model, **kwargs)
                self.reward = reward

            def compute_loss(self, model, inputs, return_outputs=False):
                return -self.reward(model(inputs["ids"])).mean()
        """,
    "a trainer with an optimizer of its own": """
        from transformers import PreTrainedModel, Trainer

        class Both(Trainer):
            def __init__(self, model, other: PreTrainedModel, **kwargs):
                super().__init__(model, **kwargs)
                self.other = other

            def create_optimizer(self):
                self.optimizer = torch.optim.SGD([*self.model.parameters(), *self.other.parameters()], 0.1)

            def compute_loss(self, model, inputs, return_outputs=False):
                return F.mse_loss(model(inputs["ids"])[0], self.other(inputs["ids"])[0])
        """,
    "a trainer's value network, which is a part of its model": """
        from transformers import PreTrainedModel, Trainer

        class Joined(nn.Module):
            def __init__(self, policy, value):
                super().__init__()
                self.policy, self.value = policy, value

        class Together(Trainer):
            def __init__(self, policy: PreTrainedModel, value: PreTrainedModel, **kwargs):
                self.value = value
                super().__init__(Joined(policy, value), **kwargs)

            def compute_loss(self, model, inputs, return_outputs=False):
                return F.mse_loss(model.policy(inputs["ids"])[0], self.value(inputs["ids"])[0])
        """,
    "a trainer's reference that may be a frozen copy": """
        import copy
        from transformers import PreTrainedModel, Trainer

        class Frozen(Trainer):
            def __init__(self, model, reference: PreTrainedModel | None = None, **kwargs):
                super().__init__(model, **kwargs)
                self.reference = reference
                if reference is None:
                    self.reference = copy.deepcopy(model).requires_grad_(False)

            def compute_loss(self, model, inputs, return_outputs=False):
                return F.mse_loss(model(inputs["ids"])[0], self.reference(inputs["ids"])[0])
        """,
    "a part of what a trainer holds beside its model": """
        from transformers import PreTrainedModel, Trainer

        class Hidden(Trainer):
            def __init__(self, model, reference: PreTrainedModel, **kwargs):
                super().__init__(model, **kwargs)
                self.reference = self.accelerator.prepare_model(reference, evaluation_mode=True)

            def compute_loss(self, model, inputs, return_outputs=False):
                decoder = self.reference.get_decoder()
                wanted = decoder(inputs["ids"])[0]  # expect: TML206
                # instead: wanted = torch.no_grad()(decoder)(inputs["ids"])[0]
                return F.mse_loss(model.get_decoder()(inputs["ids"])[0], wanted)
        """,
    "what a trainer holds beside its model, without what it was wrapped in": """
        from transformers import PreTrainedModel, Trainer

        class Hidden(Trainer):
            def __init__(self, model, reference: PreTrainedModel, **kwargs):
                super().__init__(model, **kwargs)
                self.reference = self.accelerator.prepare_model(reference, evaluation_mode=True)

            def compute_loss(self, model, inputs, return_outputs=False):
                reference = self.accelerator.unwrap_model(self.reference)
                wanted = reference(inputs["ids"])[0]  # expect: TML206
                # instead: wanted = torch.no_grad()(reference)(inputs["ids"])[0]
                return F.mse_loss(self.accelerator.unwrap_model(model)(inputs["ids"])[0], wanted)
        """,
    "what runs a part of a network, by a name that it says itself": """
        from transformers import PreTrainedModel, Trainer

        class Hidden(Trainer):
            def __init__(self, model, reward: PreTrainedModel, **kwargs):
                super().__init__(model, **kwargs)
                self.reward = reward

            def compute_loss(self, model, inputs, return_outputs=False):
                backbone = getattr(self.reward, self.reward.base_model_prefix)
                wanted = backbone(inputs["ids"])[0]  # expect: TML206
                # instead: wanted = torch.no_grad()(backbone)(inputs["ids"])[0]
                return F.mse_loss(model(inputs["ids"])[0], wanted)
        """,
    "a trainer's step with two ways to its loss": """
        from transformers import PreTrainedModel, Trainer

        class Both(Trainer):
            def __init__(self, model, reference: PreTrainedModel, fast, **kwargs):
                super().__init__(model, **kwargs)
                self.reference = reference
                self.fast = fast

            def slow(self, model, inputs):
                loss = model(inputs["ids"])[0].mean()
                return loss, {"loss": loss.detach()}

            def compute_loss(self, model, inputs, return_outputs=False):
                if not self.fast:
                    return self.slow(model, inputs)
                wanted = self.reference(inputs["ids"])[0]  # expect: TML206
                # instead: wanted = torch.no_grad()(self.reference)(inputs["ids"])[0]
                return F.mse_loss(model(inputs["ids"])[0], wanted)
        """,
}
