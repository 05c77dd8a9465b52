"""Programs as they are written in practice."""

PRACTICE = {
    "a Wasserstein GAN": """
        generator, critic = nn.Linear(4, 4), nn.Linear(4, 1)
        opt_g = torch.optim.Adam(generator.parameters())
        opt_d = torch.optim.Adam(critic.parameters())

        def gradient_penalty(critic, real, fake):
            alpha = torch.rand(real.size(0), 1)
            mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
            score = critic(mixed)
            grad = torch.autograd.grad(score, mixed, torch.ones_like(score), create_graph=True, retain_graph=True)[0]
            return ((grad.norm(2, dim=1) - 1) ** 2).mean()

        def train(loader):
            for step, (x, y) in enumerate(loader):
                z = torch.randn(x.size(0), 4)
                with torch.no_grad():
                    fake = generator(z)
                loss_d = critic(fake).mean() - critic(x).mean() + 10 * gradient_penalty(critic, x, fake)
                opt_d.zero_grad()
                loss_d.backward()
                opt_d.step()
                if step % 5 == 0:
                    loss_g = -critic(generator(z)).mean()
                    opt_g.zero_grad()
                    loss_g.backward()
                    opt_g.step()
                    print(f"{step}: {loss_d.item():.3f} {loss_g.item():.3f}")
        """,
    "PPO": """
        class ActorCritic(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
                self.pi, self.v = nn.Linear(8, 2), nn.Linear(8, 1)

            def forward(self, x):
                h = self.body(x)
                return torch.distributions.Categorical(logits=self.pi(h)), self.v(h)

        class Memory:
            def __init__(self):
                self.clear()

            def clear(self):
                self.states, self.actions, self.logps, self.rewards = [], [], [], []

        agent, memory = ActorCritic(), Memory()
        opt = torch.optim.Adam(agent.parameters())

        def act(x):
            with torch.no_grad():
                dist, value = agent(x)
                action = dist.sample()
                return action, dist.log_prob(action)

        def update():
            states, actions = torch.cat(memory.states), torch.cat(memory.actions)
            old = torch.cat(memory.logps)
            rewards = torch.cat(memory.rewards)
            for _ in range(4):
                dist, value = agent(states)
                ratio = (dist.log_prob(actions) - old).exp()
                advantage = (rewards - value.squeeze(-1)).detach()
                loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
                loss = loss + F.mse_loss(value.squeeze(-1), rewards) - 0.01 * dist.entropy().mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
            memory.clear()

        def train(loader):
            for step, (x, y) in enumerate(loader):
                action, logp = act(x)
                memory.states.append(x)
                memory.actions.append(action)
                memory.logps.append(logp)
                memory.rewards.append(y[:, 0])
                if step % 4 == 3:
                    update()
        """,
    "DQN": """
        import random
        from collections import deque
        policy, target = nn.Linear(4, 2), nn.Linear(4, 2)
        target.load_state_dict(policy.state_dict())
        opt = torch.optim.Adam(policy.parameters())
        memory = deque(maxlen=1000)

        def select(x, eps):
            if random.random() < eps:
                return torch.randint(0, 2, (x.size(0),))
            with torch.no_grad():
                return policy(x).max(1)[1]

        def optimize():
            if len(memory) < 8:
                return
            batch = random.sample(list(memory), 4)
            states = torch.cat([b[0] for b in batch])
            actions = torch.cat([b[1] for b in batch])
            rewards = torch.cat([b[2] for b in batch])
            q = policy(states).gather(1, actions[:, None])
            with torch.no_grad():
                goal = rewards + 0.9 * target(states).max(1)[0][:, None]
            loss = F.smooth_l1_loss(q, goal)
            opt.zero_grad()
            loss.backward()
            for p in policy.parameters():
                p.grad.data.clamp_(-1, 1)
            opt.step()

        def train(loader):
            for step, (x, y) in enumerate(loader):
                action = select(x, 0.1)
                memory.append((x, action, y))
                optimize()
                if step % 10 == 0:
                    target.load_state_dict(policy.state_dict())
        """,
    "a variational autoencoder": """
        class VAE(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc, self.dec = nn.Linear(4, 8), nn.Linear(2, 4)
                self.mu, self.var = nn.Linear(8, 2), nn.Linear(8, 2)

            def encode(self, x):
                h = F.relu(self.enc(x))
                return self.mu(h), self.var(h)

            def reparameterize(self, mu, logvar):
                if self.training:
                    return mu + torch.randn_like(mu) * (0.5 * logvar).exp()
                return mu

            def forward(self, x):
                mu, logvar = self.encode(x)
                return self.dec(self.reparameterize(mu, logvar)), mu, logvar

        vae = VAE()
        opt = torch.optim.Adam(vae.parameters())

        def loss_function(recon, x, mu, logvar):
            return F.mse_loss(recon, x) - 0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()

        def train(loader):
            vae.train()
            total = 0
            for i, (x, _) in enumerate(loader):
                opt.zero_grad()
                recon, mu, logvar = vae(x)
                loss = loss_function(recon, x, mu, logvar)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
                opt.step()
            print(total / len(loader.dataset))
            vae.eval()
            with torch.no_grad():
                for x, _ in loader:
                    recon, mu, logvar = vae(x)
                    total += loss_function(recon, x, mu, logvar).item()
                sample = vae.dec(torch.randn(3, 2)).cpu()
        """,
    "the meters of the ImageNet example": """
        class AverageMeter:
            def __init__(self, name, fmt=":f"):
                self.name, self.fmt = name, fmt
                self.reset()

            def reset(self):
                self.val = self.avg = self.sum = self.count = 0

            def update(self, val, n=1):
                self.val = val
                self.sum += val * n  # expect: TML101
                self.count += n
                self.avg = self.sum / self.count

            def __str__(self):
                return ("{name} {val" + self.fmt + "}").format(**self.__dict__)

        class ProgressMeter:
            def __init__(self, meters):
                self.meters = meters

            def display(self, batch):
                print("\\t".join([str(batch)] + [str(meter) for meter in self.meters]))

        def accuracy(output, target, topk=(1,)):
            with torch.no_grad():
                _, pred = output.topk(max(topk), 1)
                return [(pred == target.long()).float().sum(0, keepdim=True).mul_(100.0) for k in topk]

        def validate(loader, criterion):
            losses, top1 = AverageMeter("Loss"), AverageMeter("Acc")
            model.eval()
            with torch.no_grad():
                for i, (x, y) in enumerate(loader):
                    output = model(x)
                    loss = criterion(output, y)
                    acc1, = accuracy(output, y)
                    losses.update(loss.item(), x.size(0))
                    top1.update(acc1.item(), x.size(0))
            return top1.avg

        def train(loader):
            criterion = nn.MSELoss()
            losses, top1 = AverageMeter("Loss"), AverageMeter("Acc")
            progress = ProgressMeter([losses, top1])
            model.train()
            for i, (x, y) in enumerate(loader):
                output = model(x)
                loss = criterion(output, y)
                acc1, = accuracy(output, y)
                losses.update(loss, x.size(0))  # instead: losses.update(loss.item(), x.size(0))
                top1.update(acc1.item(), x.size(0))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if i % 10 == 0:
                    progress.display(i)
            best = max(0, validate(loader, criterion))
        """,
    "a decoder of sequences": """
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.cell, self.out = nn.Embedding(10, 4), nn.GRUCell(4, 4), nn.Linear(4, 10)

            def forward(self, h, targets=None, steps=5):
                token = torch.zeros(h.size(0), dtype=torch.long)
                outputs = []
                for t in range(steps):
                    h = self.cell(self.embed(token), h)
                    logits = self.out(h)
                    outputs.append(logits)
                    token = targets[:, t] if targets is not None else logits.argmax(-1).detach()
                return torch.stack(outputs, 1), h

        decoder = Decoder()

        def train(loader):
            for x, y in loader:
                targets = torch.zeros(x.size(0), 5, dtype=torch.long)
                logits, _ = decoder(x, targets)
                loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
                loss.backward()
                decoder.eval()
                with torch.no_grad():
                    print(decoder(x)[0].argmax(-1)[0].tolist())
                decoder.train()
        """,
    "a diffusion model": """
        class Diffusion:
            def __init__(self, net, steps=10):
                self.net, self.steps = net, steps
                self.betas = torch.linspace(1e-4, 0.02, steps)

            def loss(self, x):
                t = torch.randint(0, self.steps, (x.size(0), 1))
                noise = torch.randn_like(x)
                noisy = x + self.betas[t] * noise
                return F.mse_loss(self.net(noisy), noise)

            @torch.no_grad()
            def sample(self, n):
                x = torch.randn(n, 4)
                images = []
                for t in reversed(range(self.steps)):
                    x = x - self.betas[t] * self.net(x)
                    images.append(x)
                return images

        diffusion = Diffusion(nn.Linear(4, 4))

        def train(loader):
            opt = torch.optim.AdamW(diffusion.net.parameters())
            for step, (x, _) in enumerate(loader):
                loss = diffusion.loss(x)
                opt.zero_grad()
                loss.backward()
                opt.step()
                if step % 8 == 0:
                    print(len(diffusion.sample(2)))
        """,
    "style transfer": """
        features = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).eval()
        for p in features.parameters():
            p.requires_grad = False

        def train(loader):
            image = torch.rand(8, 4, requires_grad=True)
            opt = torch.optim.LBFGS([image])
            goal = features(torch.rand(8, 4)).detach()
            run = [0]
            for x, y in loader:
                def closure():
                    opt.zero_grad()
                    loss = F.mse_loss(features(image), goal)
                    loss.backward()
                    run[0] += 1
                    return loss
                opt.step(closure)
            return image.detach()
        """,
    "a language model": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn, self.head = nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 1)

            def init_hidden(self, n):
                weight = next(self.parameters())
                return weight.new_zeros(1, n, 4), weight.new_zeros(1, n, 4)

            def forward(self, x, hidden):
                out, hidden = self.rnn(x, hidden)
                return self.head(out), hidden

        net = Model()

        def train(loader):
            hidden = net.init_hidden(8)
            for x, y in loader:
                hidden = tuple(h.data for h in hidden)
                out, hidden = net(x[:, None], hidden)
                loss = F.mse_loss(out[:, 0], y)
                net.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                with torch.no_grad():
                    for p in net.parameters():
                        p -= 0.1 * p.grad
        """,
    "distillation": """
        class Distiller(nn.Module):
            def __init__(self, student, teacher):
                super().__init__()
                self.student, self.teacher = student, teacher
                for p in self.teacher.parameters():
                    p.requires_grad = False

            def train(self, mode=True):
                super().train(mode)
                self.teacher.eval()
                return self

            def forward(self, x):
                with torch.no_grad():
                    goal = self.teacher(x)
                out = self.student(x)
                return F.mse_loss(out, goal), {"mse": F.mse_loss(out, goal)}

        def train(loader):
            distiller = Distiller(model, nn.Linear(4, 1))
            history = []
            for x, y in loader:
                loss, logs = distiller(x)
                loss.backward()
                optimizer.step()
                history.append({k: v.item() for k, v in logs.items()})
                history.append(logs)  # expect: TML102  # instead: history.append(len(logs))
        """,
    "metrics by name": """
        from collections import defaultdict

        class Metrics:
            def __init__(self):
                self.store = defaultdict(list)

            def add(self, **kwargs):
                for k, v in kwargs.items():
                    if torch.is_tensor(v):
                        v = v.cpu()  # instead: v = v.detach().cpu()
                    self.store[k].append(v)  # expect: TML102

            def means(self):
                return {k: torch.stack(v).mean().item() for k, v in self.store.items()}

        def train(loader):
            metrics = Metrics()
            for x, y in loader:
                out = model(x)
                loss = F.mse_loss(out, y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                metrics.add(loss=loss, out=out.mean())
            print(metrics.means())
        """,
    "the running loss of the tutorial": """
        def train(loader):
            running = 0.0
            for epoch in range(2):
                for i, data in enumerate(loader, 0):
                    inputs, labels = data
                    optimizer.zero_grad()
                    outputs = model(inputs)
                    loss = F.mse_loss(outputs, labels)
                    loss.backward()
                    optimizer.step()
                    running += loss.item()
                    if i % 10 == 9:
                        print(f"[{epoch + 1}, {i + 1:5d}] loss: {running / 10:.3f}")
                        running = 0.0
        """,
    "MoCo": """
        class MoCo(nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.k = nn.Linear(4, 4), nn.Linear(4, 4)
                for p, k in zip(self.q.parameters(), self.k.parameters()):
                    k.data.copy_(p.data)
                    k.requires_grad = False
                self.register_buffer("queue", torch.randn(4, 32))
                self.ptr = 0

            @torch.no_grad()
            def momentum(self):
                for p, k in zip(self.q.parameters(), self.k.parameters()):
                    k.data = k.data * 0.9 + p.data * 0.1

            @torch.no_grad()
            def enqueue(self, keys):
                n = keys.size(0)
                self.queue[:, self.ptr : self.ptr + n] = keys.T
                self.ptr = (self.ptr + n) % 32

            def forward(self, a, b):
                q = F.normalize(self.q(a), dim=1)
                with torch.no_grad():
                    self.momentum()
                    k = F.normalize(self.k(b), dim=1)
                logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.clone().detach()], 1)
                self.enqueue(k)
                return logits

        moco = MoCo()

        def train(loader):
            for x, y in loader:
                loss = F.cross_entropy(moco(x, x + 0.1), torch.zeros(x.size(0), dtype=torch.long))
                loss.backward()
        """,
    "early stopping": """
        import copy

        def evaluate(loader):
            was = model.training
            model.eval()
            try:
                with torch.no_grad():
                    return sum(F.mse_loss(model(x), y).item() for x, y in loader)
            finally:
                model.train(was)

        def train(loader):
            best, weights, patience = float("inf"), None, 0
            for epoch in range(3):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                score = evaluate(loader)
                if score < best:
                    best, weights, patience = score, copy.deepcopy(model.state_dict()), 0
                else:
                    patience += 1
                    if patience > 5:
                        break
            model.load_state_dict(weights)
        """,
    "REINFORCE": """
        class Policy(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 2)
                self.saved_log_probs = []
                self.rewards = []

            def forward(self, x):
                return F.softmax(self.layer(x), 1)

        policy = Policy()
        opt = torch.optim.Adam(policy.parameters())

        def select_action(state):
            probs = policy(state)
            m = torch.distributions.Categorical(probs)
            action = m.sample()
            policy.saved_log_probs.append(m.log_prob(action))
            return action[0].item()

        def finish_episode():
            R, loss, returns = 0, [], []
            for r in policy.rewards[::-1]:
                R = r + 0.9 * R
                returns.insert(0, R)
            for log_prob, R in zip(policy.saved_log_probs, returns):
                loss.append(-log_prob * R)
            opt.zero_grad()
            torch.cat(loss).sum().backward()
            opt.step()
            del policy.rewards[:]
            del policy.saved_log_probs[:]

        def train(loader):
            running = 10
            for episode in range(2):
                for x, y in loader:
                    action = select_action(x)
                    policy.rewards.append(y[0, 0].item())
                running = 0.05 * sum(policy.rewards) + 0.95 * running
                finish_episode()
        """,
    "MAML": """
        def inner(params, x, y):
            loss = F.mse_loss(F.linear(x, params[0], params[1]), y)
            grads = torch.autograd.grad(loss, params, create_graph=True)
            return [p - 0.1 * g for p, g in zip(params, grads)]

        def train(loader):
            for x, y in loader:
                fast = list(model.parameters())
                for _ in range(2):
                    fast = inner(fast, x, y)
                outer = F.mse_loss(F.linear(x, fast[0], fast[1]), y)
                optimizer.zero_grad()
                outer.backward()
                optimizer.step()
        """,
    "defaults that a file may replace": """
        from yacs.config import CfgNode

        config = CfgNode()
        config.train = CfgNode()
        config.train.keep = False
        config.merge_from_file("train.yaml")

        def train(loader):
            history = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                if config.train.keep:
                    history.append(loss)  # expect: TML102  # instead: history.append(loss.item())
            print(history)
        """,
}
