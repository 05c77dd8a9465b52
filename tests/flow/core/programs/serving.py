"""Calls that manage memory or watch the program, for every batch or in every run."""

SERVING = {
    "a function that a loop calls": """
        import gc

        def clean():
            gc.collect()  # expect: TML503  # instead: gc.collect(0)

        for x in torch.utils.data.DataLoader(data):
            loss = model(x).sum()
            loss.backward()
            clean()
        """,
    "a function in a function that a loop calls": """
        def clean():
            torch.cuda.empty_cache()  # expect: TML502  # instead: torch.cuda.synchronize()

        def step(x):
            model(x).sum().backward()
            clean()

        for x in torch.utils.data.DataLoader(data):
            step(x)
        """,
    "a loop over layers in the network": """
        class Deep(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x

        deep = Deep()
        with torch.inference_mode():
            for x in torch.utils.data.DataLoader(data):
                print(deep(x).sum().item())
                torch.cuda.empty_cache()  # expect: TML502  # instead: torch.cuda.synchronize()
        """,
    "a test for a device": """
        def clean(device):
            if torch.cuda.is_available() and device.type == "cuda":
                torch.cuda.empty_cache()  # expect: TML502  # instead: torch.cuda.synchronize()

        for x in torch.utils.data.DataLoader(data):
            model(x).sum().backward()
            clean(x.device)
        """,
    "a switch that a caller sets": """
        def prepare(debug):
            torch.autograd.set_detect_anomaly(debug)  # expect: TML605  # instead: print(debug)
            model.train()

        prepare(True)
        """,
}
NOT_SERVING = {
    "once in a few rounds": """
        for step, x in enumerate(torch.utils.data.DataLoader(data)):
            model(x).sum().backward()
            if step % 100 == 0:
                torch.cuda.empty_cache()
        """,
    "where memory ran out": """
        for x in torch.utils.data.DataLoader(data):
            try:
                model(x).sum().backward()
            except RuntimeError:
                torch.cuda.empty_cache()
        """,
    "another network each time": """
        for width in range(1, 9):
            network = nn.Linear(4, width)
            network(torch.ones(2, 4)).sum().backward()
            torch.cuda.empty_cache()
        """,
    "a switch that nobody is seen to set": """
        def prepare(debug):
            torch.autograd.set_detect_anomaly(debug)
            model.train()
        """,
    "a loop in the loop": """
        while True:
            for x in torch.utils.data.DataLoader(data):
                model(x).sum().backward()
            torch.cuda.empty_cache()
        """,
}
