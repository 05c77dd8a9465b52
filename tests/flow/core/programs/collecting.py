"""Tensors without a graph that a loop collects on a device."""

COLLECTING = {
    "results of a pass, joined and brought to the host": """
        @torch.no_grad()
        def embed(model, loader, device):
            found = []
            for x in loader:
                found.append(model(x.to(device)))  # expect: TML508  # instead: found.append(model(x.to(device)).cpu())
            return torch.cat(found).cpu()
        """,
    "results of a network of the project, taken to the host one by one": """
        import numpy as np

        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return self.layer(x)

        def classify(network: Encoder, loader):
            found = []
            with torch.inference_mode():
                for batch in loader:
                    x = batch.cuda()
                    found.append(network(x).softmax(-1))  # expect: TML508
            return np.concatenate([row.cpu().numpy() for row in found])
        """,
    "detached results, collected by a function": """
        def keep(found, out):
            found.append(out.detach())  # expect: TML508

        def watch(network, loader, device):
            found = []
            for x in loader:
                out = network(x.to(device))
                out.mean().backward()
                keep(found, out)
            return torch.cat(found).to("cpu")
        """,
    "a loader that a framework prepares": """
        from accelerate import Accelerator
        from torch.utils.data import DataLoader

        @torch.no_grad()
        def compare(network, dataset):
            accelerator = Accelerator()
            network, loader = accelerator.prepare(network, DataLoader(dataset))
            found = []
            for x in loader:
                every = accelerator.gather(network(x))  # instead: every = accelerator.gather(network(x)).cpu()
                found.append(every)  # expect: TML508
            return torch.cat(found).float().cpu()
        """,
    "results that are wanted on the device, returned, few, or on the host": """
        @torch.no_grad()
        def neighbours(network, loader, device):
            found = []
            for x in loader:
                found.append(network(x.to(device)))
            bank = torch.cat(found)
            return (bank @ bank.t()).topk(5).indices.cpu()

        @torch.no_grad()
        def returned(network, loader, device):
            found = []
            for x in loader:
                found.append(network(x.to(device)))
            print(torch.cat(found).cpu())
            return found

        @torch.no_grad()
        def losses(network, loader, device):
            found = []
            for x in loader:
                found.append(network(x.to(device)).mean())
            return torch.stack(found).cpu()

        @torch.no_grad()
        def on_the_host(network, loader, device):
            found, labels, lengths = [], [], []
            for x, y in loader:
                lengths.append((x != 0).sum(1))
                labels.append(y)
                found.append(network(x.to(device)).cpu().flatten(1))
            return torch.cat(found).cpu(), torch.cat(labels).cpu(), torch.cat(lengths).cpu()

        @torch.no_grad()
        def another_type(network, loader):
            found = []
            for x in loader:
                found.append(network(x.to(torch.float16)))
            return torch.cat(found).cpu()

        @torch.no_grad()
        def flushed(network, loader, device):
            found = []
            for x in loader:
                found.append(network(x.to(device)))
                if len(found) == 10:
                    print(torch.cat(found).cpu())
                    found = []
            return torch.cat(found).cpu()
        """,
}
