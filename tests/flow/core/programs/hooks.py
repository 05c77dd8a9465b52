"""What hooks keep."""

HOOKS = {
    "a hook that appends outputs": """
        kept = []

        def keep(module, inputs, output):
            kept.append(output)  # expect: TML106  # instead: kept.append(output.detach().cpu())

        model.register_forward_hook(keep)

        def train(loader):
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
        """,
    "a hook that is a method": """
        class Probe:
            def __init__(self, module):
                self.outputs = []
                module.register_forward_hook(self.keep)

            def keep(self, module, inputs, output):
                self.outputs.append(output)  # expect: TML106  # instead: self.outputs.append(output.detach().cpu())

        probe = Probe(model)

        def train(loader):
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
        """,
    "a hook that is a closure": """
        def watch(module, kept):
            def keep(module, inputs, output):
                kept.append(output)  # expect: TML106  # instead: kept.append(output.mean().item())

            module.register_forward_hook(keep)

        def train(loader):
            kept = []
            watch(model, kept)
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
            print(len(kept))
        """,
    "a hook that sums": """
        stats = {"total": 0.0}

        def add(module, inputs, output):
            stats["total"] += output.mean()  # expect: TML106  # instead: stats["total"] += output.mean().item()

        model.register_forward_hook(add)

        def train(loader):
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
        """,
    "a hook that looks": """
        def look(module, inputs, output):
            print(output.mean().item())

        model.register_forward_hook(look)

        def train(loader):
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
        """,
    "a hook of a tensor": """
        norms = []

        def train(loader):
            for x, y in loader:
                out = model(x)
                out.register_hook(lambda gradient: norms.append(gradient.norm()))
                F.mse_loss(out, y).backward()
            print(len(norms))
        """,
    "a hook whose features are used": """
        features = {}

        def keep(module, inputs, output):
            features["last"] = output

        model.register_forward_hook(keep)

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y) + features["last"].pow(2).mean()
                loss.backward()
                features.clear()
        """,
    "a hook on a part of what is trained": """
        class Probe:
            def __init__(self, layer):
                self.inputs = []
                layer.register_forward_pre_hook(self.keep)

            def keep(self, module, given):
                self.inputs.append(given[0])  # expect: TML106  # instead: self.inputs.append(given[0].detach())

        def train(network, loader):
            probe = Probe(network.head)
            for x, y in loader:
                F.mse_loss(network(x), y).backward()
            print(len(probe.inputs))
        """,
    "hooks on parts whose outputs are penalised": """
        def train(network: nn.Module, loader):
            hidden = []
            for module in network.modules():
                module.register_forward_hook(lambda module, given, output: hidden.append(output))
            for x, y in loader:
                hidden.clear()
                loss = F.mse_loss(network(x), y)
                loss = loss + sum(h.abs().mean() for h in hidden)
                loss.backward()
        """,
    "hooks on a network that is not run here": """
        kept = {}

        def keep(name):
            def hook(module, given, output):
                kept[name] = output
            return hook

        def backbone(network: nn.Module, blocks):
            for number, block in enumerate(blocks):
                network.blocks[block].register_forward_hook(keep(str(number)))
            return network
        """,
}
