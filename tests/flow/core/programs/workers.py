"""What threads, processes and pools run: with gradients, whatever whoever starts them has turned off."""

_EVALUATES = """
        {imports}

        def evaluate(batch, rank=0):
            print(rank, F.mse_loss(model(batch[0]), batch[1]).item())  # expect: TML201
            # instead: print(rank, F.mse_loss(batch[0][:, :1], batch[1]).item())

        def of_rank(rank, batch):
            evaluate(batch, rank)

        {started}
        def train(loader):
            model.eval()
            with torch.no_grad():
                for batch in loader:
                    {start}
        """

_STARTS = {
    "a thread": ("from threading import Thread", "Thread(target=evaluate, args=(batch,)).start()"),
    "a thread with positions": ("from threading import Thread", "Thread(None, evaluate, None, (batch, 1)).start()"),
    "a thread with names": ("from threading import Thread", "Thread(target=evaluate, kwargs={'batch': batch}).start()"),
    "a timer": ("import threading", "threading.Timer(3, evaluate, (batch,)).start()"),
    "a process": ("import multiprocessing", "multiprocessing.Process(target=evaluate, args=(batch,)).start()"),
    "a process of torch": (
        "import torch.multiprocessing as mp",
        "worker = mp.Process(target=evaluate, args=(batch,)); worker.start(); worker.join()",
    ),
    "a process of a context": (
        "import torch.multiprocessing as mp",
        "mp.get_context('spawn').Process(target=evaluate, args=(batch,)).start()",
    ),
    "processes in a list": (
        "import torch.multiprocessing as mp",
        "[w.start() for w in [mp.Process(target=evaluate, args=(batch, r)) for r in range(2)]]",
    ),
    "spawn": ("import torch.multiprocessing as mp", "mp.spawn(of_rank, args=(batch,), nprocs=2)"),
    "a launcher": ("from accelerate import notebook_launcher", "notebook_launcher(evaluate, (batch,))"),
    "submit": (
        "from concurrent.futures import ProcessPoolExecutor",
        "ProcessPoolExecutor(2).submit(evaluate, batch).result()",
    ),
    "apply": ("import torch.multiprocessing as mp", "mp.Pool(2).apply(evaluate, (batch,))"),
    "starmap that nobody reads": ("import torch.multiprocessing as mp", "mp.Pool(2).starmap(evaluate, [(batch, 0)])"),
    "to_thread": ("import asyncio", "asyncio.run(asyncio.to_thread(evaluate, batch))"),
    "an executor of a loop": ("import asyncio", "asyncio.get_event_loop().run_in_executor(None, evaluate, batch)"),
}

_CLASS = """class Evaluator({base}):
            def __init__(self, batch):
                super().__init__({given})
                self.batch = batch

            def {name}(self):
                evaluate(self.batch)
        """
_CLASSES = {
    "a class of threads": ("from threading import Thread", "Thread", "", "run"),
    "a class of processes": ("import multiprocessing as mp", "mp.Process", "", "run"),
    "a class of processes of torch": ("import torch.multiprocessing as mp", "mp.Process", "", "run"),
    "a class of threads with a target": ("from threading import Thread", "Thread", "target=self.work", "work"),
}

_ADDS = """
        {imports}

        def learn(x, y, kept):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            kept.append(loss){mark}

        def train(loader):
            kept = []
            for x, y in loader:
                worker = {start}(target=learn, args=(x, y, kept))
                worker.start()
                worker.join()
            print(len(kept))
        """

WORKERS = {
    **{
        f"gradients in {name}": _EVALUATES.format(imports=imports, started="", start=start)
        for name, (imports, start) in _STARTS.items()
    },
    **{
        f"gradients in {name}": _EVALUATES.format(
            imports=imports,
            started=_CLASS.format(base=base, given=given, name=method),
            start="Evaluator(batch).start()",
        )
        for name, (imports, base, given, method) in _CLASSES.items()
    },
    "a list that a thread adds to": _ADDS.format(
        imports="from threading import Thread",
        start="Thread",
        mark="  # expect: TML102  # instead: kept.append(loss.item())",
    ),
    "a list of which each process has a copy": _ADDS.format(
        imports="from multiprocessing import Process", start="Process", mark=""
    ),
    "a thread pool": """
        from concurrent.futures import ThreadPoolExecutor

        def learn(batch):
            loss = F.mse_loss(model(batch[0]), batch[1])
            loss.backward()
            return loss  # instead: return loss.item()

        def train(loader):
            with ThreadPoolExecutor(1) as pool:
                kept = list(pool.map(learn, loader))  # expect: TML102
            print(len(kept))
        """,
    "gradients in another thread": """
        from concurrent.futures import ThreadPoolExecutor

        def evaluate(batch):
            return F.mse_loss(model(batch[0]), batch[1]).item()  # expect: TML201
            # instead: return F.mse_loss(batch[0][:, :1], batch[1]).item()

        def train(loader):
            model.eval()
            with torch.no_grad(), ThreadPoolExecutor(1) as pool:
                for value in pool.map(evaluate, loader):
                    print(value)
        """,
}
