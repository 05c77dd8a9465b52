"""What is added up."""

SUMS = {
    "a sum in a variable": """
        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total / len(loader))
        """,
    "a sum written out": """
        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total = total + loss  # expect: TML101  # instead: total = total + loss.detach()
            return float(total)
        """,
    "a sum over temporaries": """
        def train(loader):
            total = torch.zeros(())
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                value = loss  # instead: value = float(loss)
                more = total + value
                total = more  # expect: TML101
            print(total)
        """,
    "a running mean": """
        def train(loader):
            mean = None
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                if mean is None:
                    mean = loss  # instead: mean = loss.item()
                else:
                    mean = 0.9 * mean + 0.1 * loss  # expect: TML101  # instead: mean = 0.9 * mean + 0.1 * loss.item()
            print(float(mean))
        """,
    "the greatest so far": """
        def train(loader):
            worst = torch.zeros(())
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                worst = torch.maximum(worst, loss)  # expect: TML101  # instead: worst = torch.maximum(worst, loss.data)
            print(worst.item())
        """,
    "a sum in a key of a dictionary": """
        def train(loader):
            totals = {"loss": 0.0, "steps": 0}
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                totals["loss"] += loss  # expect: TML101  # instead: totals["loss"] += loss.item()
                totals["steps"] += 1
            print(totals["loss"] / totals["steps"])
        """,
    "a sum in an element of a list": """
        def train(loader):
            totals = [0.0, 0]
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                totals[0] += loss  # expect: TML101  # instead: totals[0] += float(loss)
                totals[1] += 1
            print(totals[0] / totals[1])
        """,
    "sums of which only one keeps graphs": """
        def train(loader):
            loss_sum, count = 0.0, 0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss_sum, count = loss_sum + loss, count + len(x)  # expect: TML101
                # instead: loss_sum, count = loss_sum + loss.item(), count + len(x)
            print(loss_sum / count)
        """,
    "a tensor that is added to in place": """
        def train(loader):
            total = torch.zeros(())
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total.add_(loss)  # expect: TML101  # instead: total.add_(loss.detach())
            print(total)
        """,
    "rows of a tensor that are written in place": """
        def train(loader):
            losses = torch.zeros(len(loader))
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses[step] = loss  # expect: TML102  # instead: losses[step] = loss.detach()
            print(losses.mean())
        """,
    "a tensor that is concatenated": """
        def train(loader):
            outputs = torch.zeros(0, 1)
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                outputs = torch.cat([outputs, out])  # expect: TML101
                # instead: outputs = torch.cat([outputs, out.detach()])
            print(outputs.mean())
        """,
    "a sum by a function": """
        def plus(total, loss):
            return total + loss

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total = plus(total, loss)  # expect: TML101  # instead: total = plus(total, loss.item())
            print(total)
        """,
    "a sum of a generator that is differentiated": """
        def losses(x, y):
            for part in range(3):
                yield F.mse_loss(model(x) + part, y)

        def train(loader):
            for x, y in loader:
                optimizer.zero_grad()
                sum(losses(x, y)).backward()
                optimizer.step()
        """,
    "a sum that is differentiated once": """
        def train(loader):
            total = 0.0
            optimizer.zero_grad()
            for x, y in loader:
                total = total + F.mse_loss(model(x), y)
            total.backward()
            optimizer.step()
        """,
    "a sum that is differentiated every few steps": """
        def train(loader):
            total = 0.0
            for step, (x, y) in enumerate(loader):
                total = total + F.mse_loss(model(x), y)
                if step % 4 == 3:
                    optimizer.zero_grad()
                    total.backward()
                    optimizer.step()
                    total = 0.0
        """,
    "a sum that is set anew for each epoch": """
        def train(loader):
            for epoch in range(3):
                total = 0.0
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    total += loss  # expect: TML101  # instead: total += loss.item()
                print(total)
        """,
    "a sum that lasts for many epochs": """
        def train(loader):
            total = 0.0
            for epoch in range(3):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a value that is replaced": """
        def train(loader):
            last = None
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                last = loss
            print(last.item())
        """,
    "a sum in a while loop": """
        def train(loader):
            batches, total, step = iter(loader), 0.0, 0
            while step < 20:
                x, y = next(batches)
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
                step += 1
            print(total / step)
        """,
    "a sum in an endless loop": """
        def train(loader):
            batches, total = iter(loader), 0.0
            while True:
                try:
                    x, y = next(batches)
                except StopIteration:
                    break
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a sum over enumerate and zip": """
        from itertools import count

        def train(loader):
            total = 0.0
            for step, ((x, y), weight) in enumerate(zip(loader, count())):
                loss = weight * F.mse_loss(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total / step)
        """,
    "a sum over islice": """
        from itertools import islice

        def train(loader):
            total = 0.0
            for x, y in islice(loader, 20):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a loss of several terms": """
        def train(loader):
            for x, y in loader:
                out = model(x)
                loss = 0.0
                for power in range(3):
                    loss = loss + (out - y).abs().pow(power).mean()
                loss.backward()
        """,
    "a penalty over all parameters": """
        def train(loader):
            for x, y in loader:
                penalty = 0.0
                for p in model.parameters():
                    penalty = penalty + p.pow(2).sum()
                (F.mse_loss(model(x), y) + penalty).backward()
        """,
    "a sum under a condition": """
        def train(loader):
            total = 0.0
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                if step % 2 == 0:
                    total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a sum that is differentiated in every iteration": """
        def train(loader):
            total = torch.zeros(())
            for x, y in loader:
                total = total + F.mse_loss(model(x), y)  # expect: TML104
                # instead: total = total.detach() + F.mse_loss(model(x), y)
                optimizer.zero_grad()
                total.backward(retain_graph=True)  # instead: total.backward()
                optimizer.step()
        """,
    "an average of named parameters": """
        def average(shadow, network):
            for name, p in network.named_parameters():
                shadow[name] = 0.9 * shadow[name] + 0.1 * p  # expect: TML101
                # instead: shadow[name] = 0.9 * shadow[name] + 0.1 * p.detach()

        def train(loader):
            shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
                optimizer.step()
                average(shadow, model)
            model.load_state_dict({name: value.detach() for name, value in shadow.items()})
        """,
    "a sum of named parameters, once": """
        def train(loader):
            sizes = {}
            for name, p in model.named_parameters():
                sizes[name] = p.square().sum()
            print(sizes["weight"].item())
        """,
    "meters that a method makes when they are first used": """
        class Meter:
            def __init__(self):
                self.total = 0

            def update(self, value):
                self.total += value  # expect: TML101  # instead: self.total += float(value)

        class Trainer:
            def __init__(self, loader):
                self.loader = loader
                self.meters = None

            def note(self, stats):
                if self.meters is None:
                    self.meters = {name: Meter() for name in stats}
                for name, value in stats.items():
                    self.meters[name].update(value)

            def train(self):
                for x, y in self.loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    self.note({"loss": loss, "double": loss * 2})

        def main(loader):
            Trainer(loader).train()
        """,
}
