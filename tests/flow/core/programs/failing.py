"""What runs, or lives on, while an exception holds the frames of a step that failed."""

FAILING = {
    "a step that is taken again in the clause": """
        def step(x):
            return model(x).sum()

        def train(loader):
            for x, y in loader:
                try:
                    step(x).backward()
                except torch.OutOfMemoryError:
                    for half in x.chunk(2):
                        step(half).backward()  # expect: TML109  # instead: print(half.shape)
                optimizer.step()
        """,
    "a step that is taken again after the clause": """
        def train(loader):
            for x, y in loader:
                again = False
                try:
                    model(x).sum().backward()
                except torch.OutOfMemoryError:
                    again = True
                if again:
                    model(x[:1]).sum().backward()
        """,
    "a message that is asked for": """
        def run(x):
            try:
                return model(x)
            except RuntimeError as error:
                if "out of memory" not in str(error) or len(x) == 1:
                    raise
                return model(x[:1])  # expect: TML109  # instead: return None
        """,
    "a message that says that it is something else": """
        def run(x):
            try:
                return model(x)
            except RuntimeError as error:
                if "out of memory" in str(error):
                    raise
                return model(x[None])
        """,
    "a function that says whether memory ran out": """
        def ran_out(error):
            return "out of memory" in str(error)

        def run(x):
            try:
                return model(x)
            except RuntimeError as error:
                exhausted = ran_out(error)
                if not exhausted:
                    raise
                return model(x[:1])  # expect: TML109  # instead: return None
        """,
    "an error in a list of an object": """
        class Trainer:
            def __init__(self, network):
                self.network = network.cuda()
                self.errors = []

            def step(self, x):
                try:
                    self.network(x).sum().backward()
                except RuntimeError as error:
                    self.errors.append(error)  # expect: TML109  # instead: self.errors.append(str(error))

        Trainer(model).step(torch.ones(2, 4))
        """,
    "an error of another kind, after which memory is freed": """
        def run(x):
            try:
                return model(x)
            except KeyboardInterrupt:
                torch.cuda.empty_cache()
                return model(x[:1])
        """,
    "an error that may be one of memory, after which that is freed": """
        def run(x):
            try:
                return model(x)
            except RuntimeError:
                torch.cuda.empty_cache()
                return model(x[:1])  # expect: TML109  # instead: return None
        """,
    "a function that is run again, whatever it is": """
        def robust(run, x):
            try:
                return run(x)
            except torch.cuda.OutOfMemoryError:
                print("again")
                return run(x[:1])  # expect: TML109  # instead: return None
        """,
    "a function of several that is run again": """
        def robust(run, note, x):
            try:
                note(x)
                return run(x)
            except torch.cuda.OutOfMemoryError:
                note(x)
                return None
        """,
    "on the processor": """
        def run(x):
            try:
                return model(x)
            except torch.OutOfMemoryError:
                return model.cpu()(x.cpu())
        """,
    "an exception in a list, and in an attribute": """
        class Runner:
            def __init__(self, net: nn.Module):
                self.net = net
                self.failed = []

            def run(self, loader):
                for x in loader:
                    try:
                        self.net(x).sum().backward()
                    except Exception as error:
                        self.failed.append((len(x), error))  # expect: TML109
                        # instead: self.failed.append((len(x), str(error)))
                        self.last = error  # expect: TML109  # instead: self.last = f"{error}"
        """,
    "an exception that lives through the next attempt": """
        def find(loader):
            last = None
            for x in loader:
                try:
                    model(x).sum().backward()
                    return x
                except RuntimeError as error:
                    last = error  # expect: TML109  # instead: last = str(error)
            raise last
        """,
    "an exception that is kept when all is over": """
        def find(loader):
            for x in loader:
                try:
                    model(x).sum().backward()
                except RuntimeError as error:
                    last = error
                    break
            return last
        """,
    "an exception that lets go of its frames": """
        import traceback

        failed = []

        def find(loader):
            for x in loader:
                try:
                    model(x).sum().backward()
                except RuntimeError as error:
                    traceback.clear_frames(error.__traceback__)
                    failed.append(error)
        """,
    "an exception of something that holds no tensors": """
        def fetch(client, urls):
            errors = []
            for url in urls:
                try:
                    client.get(url)
                except OSError as error:
                    errors.append(error)
            return errors
        """,
}
