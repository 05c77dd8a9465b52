"""More programs for `test_tempting.py`: graphs that leave otherwise than by a name, and code that asks for the mode."""

from __future__ import annotations

STORE = """
class Store:
    def __init__(self):
        self.rows = {{}}

    def get(self, i{make}):
        if i not in self.rows:
            self.rows[i] = {made}
        return self.rows[i]

    def items(self):
        if not self.rows:
            self.rows[0] = enc(x)
        return self.rows.items()


store = Store()
"""
GENERATOR = """
def features():
    h = enc(x)
    while True:
        yield h


it = features()
"""
ASKS = """
class Asks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        out = self.layer(x)
        {asks}
        return out


asks = Asks()
parameters += asks.parameters()
opt.add_param_group({{"params": asks.parameters()}})
nxt = asks(x).detach()
train((asks(y) - nxt).square().mean())
"""
VALIDATE = """
{before}


def validate():
    net.eval()
    h = enc(x)
    {keeps}
    right = (net(h).argmax(1) == 0).sum().item()
    net.train()
    return right


print(validate())
train(head({kept}).square().mean())
"""
RAISES = """
class Found(Exception):
    pass


def validate():
    net.eval()
    h = enc(x)
    if (net(h).argmax(1) == 0).sum().item() >= 0:
        raise Found(h)


try:
    validate()
except Found as error:
    train(head(error.args[0]).square().mean())
"""
IMPLICIT = """
class Features:
{method}


features = Features()


def validate():
    net.eval()
    print({used})
    return (net(x).argmax(1) == 0).sum().item()


print(validate())
train(head(features.h).square().mean())
"""

AUTOCAST = """
with torch.autocast("cpu", dtype=torch.bfloat16):
    nxt = {network}(x).detach()
{between}    out = net(y)
train((out - nxt).float().square().mean())
"""

OWN = """
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.h = nn.Linear(4, 4), None

{method}

    def forward(self, x):
        return self.layer(x)


own = Own()
parameters += own.parameters()
opt.add_param_group({{"params": own.parameters()}})


def validate():
    own.eval()
    right = own(x).argmax().item()
    own.train()
    return right


print(validate())
"""
LATER = """
import contextlib, operator, weakref
def keep(key):
    cache[key] = enc(x)


def validate():
    net.eval()
    {later}
        return (net(x).argmax(1) == 0).sum().item()


print(validate())
train(head(cache["h"]).square().mean())
"""

ELSEWHERE = {
    "an own method named as a dict's": STORE.format(make="", made="enc(data[i])")
    + """
def validate():
    net.eval()
    return (net(store.get(0)).argmax(1) == 0).sum().item()


print(validate())
train(net(store.get(0)).square().mean())
""",
    "what is made by what a store is given": STORE.format(make=", make", made="make(i)")
    + """
def validate():
    net.eval()
    return (net(store.get(0, lambda i: enc(data[i]))).argmax(1) == 0).sum().item()


print(validate())
train(net(store.get(0, lambda i: enc(data[i]))).square().mean())
""",
    "own items": STORE.format(make="", made="enc(data[i])")
    + """
def validate():
    net.eval()
    return sum((net(h).argmax(1) == 0).sum().item() for _, h in store.items())


print(validate())
train(sum(net(h).square().mean() for _, h in store.items()))
""",
    "a dict that makes what it lacks": """
class Features(dict):
    def __missing__(self, key):
        self[key] = enc(data[key])
        return self[key]


features = Features()
nxt = target(features[0]).detach()
train((net(features[0]) - nxt).square().mean())
""",
    "a generator that waits": GENERATOR
    + """
nxt = target(next(it)).detach()
train((net(next(it)) - nxt).square().mean())
""",
    "a generator in a loop that is left": GENERATOR
    + """
def validate():
    target.eval()
    for h in it:
        right = (target(h).argmax(1) == 0).sum().item()
        break
    return right


print(validate())
train(net(next(it)).square().mean())
""",
    "a generator of an object": """
class Trainer:
    def __init__(self):
        self.it = self.features()

    def features(self):
        h = enc(x)
        while True:
            yield h

    def fit(self):
        nxt = target(next(self.it)).detach()
        train((net(next(self.it)) - nxt).square().mean())


Trainer().fit()
""",
    "what a generator ends with": """
def validate():
    net.eval()
    h = enc(x)
    yield (net(h).argmax(1) == 0).sum().item()
    return h


it = validate()
print(next(it))
try:
    next(it)
except StopIteration as stop:
    train(head(stop.value).square().mean())
""",
    "an iterator that is split": """
import itertools

a, b = itertools.tee(map(enc, data))
nxt = target(next(a)).detach()
train((net(next(b)) - nxt).square().mean())
""",
    "an exception": RAISES,
    "a name that the program makes": VALIDATE.format(before="", keeps='globals()["kept"] = h', kept="kept"),
    "an attribute of a module": VALIDATE.format(before="import sys", keeps="sys.kept = h", kept="sys.kept"),
    "an attribute of a parameter": VALIDATE.format(before="", keeps="net.weight.kept = h", kept="net.weight.kept"),
    "an attribute of a tensor": VALIDATE.format(before="", keeps="x.kept = h", kept="x.kept"),
    "the state of an optimizer": VALIDATE.format(before="", keeps='opt.state["h"] = h', kept='opt.state.pop("h")'),
    "the dict of a network": """
class Notes:
    def note(self, key, value):
        self.__dict__.setdefault("notes", {})[key] = value
        return value


class Net(nn.Module, Notes):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.note("h", self.layer(x)).relu()


noting = Net()
parameters += noting.parameters()
opt.add_param_group({"params": noting.parameters()})
nxt = noting(x).detach()
train((net(x) - nxt).square().mean() + noting.notes["h"].mean())
""",
    "a function that sorts": """
def key(i):
    cache[i] = enc(data[i])
    return i


def validate():
    net.eval()
    return (net(data[sorted([0, 1], key=key)[0]]).argmax(1) == 0).sum().item()


print(validate())
train(net(cache[0]).square().mean())
""",
    "a mode that is asked for": ASKS.format(asks="out = out * 2 if torch.is_grad_enabled() else out"),
    "a graph that is asked for": ASKS.format(asks="out = out * 2 if out.requires_grad else out"),
    "a leaf that is asked for": ASKS.format(asks="out = out if out.is_leaf else out * 2"),
    "a length": IMPLICIT.format(
        method="    def __len__(self):\n        self.h = enc(x)\n        return 1", used="len(features)"
    ),
    "a text": IMPLICIT.format(
        method="    def __str__(self):\n        self.h = enc(x)\n        return 'f'", used="f'{features}'"
    ),
    "weights that autocast keeps": AUTOCAST.format(network="net", between=""),  # as releases before torch 2.11 do
    "a program in a text": """
def validate():
    net.eval()
    exec("cache['h'] = enc(x)")
    return (net(x).argmax(1) == 0).sum().item()


print(validate())
train(head(cache["h"]).square().mean())
""",
    "weights that `parametrize.cached` keeps": """
from torch.nn.utils import parametrize
nn.utils.parametrizations.weight_norm(net)
parameters = [*net.parameters()]
opt = torch.optim.SGD(parameters, lr=0.1)
with parametrize.cached():
    nxt = net(x).detach()
    train((net(y) - nxt).square().mean())
""",
    "an own list that trains as it grows": """
class Losses(list):
    def append(self, loss):
        super().append(loss)
        train(self[-1])


class Trainer:
    def __init__(self):
        self.losses = Losses()

    def fit(self):
        for one in data:
            self.losses.append(net(one).square().mean())
        print(round(float(sum(self.losses)), 3))


Trainer().fit()
""",
    "an object that trains as it goes": """
class Pending:
    def __del__(self):
        train(net(x).square().mean())


def evaluate(one):
    pending = Pending()
    return target(one).argmax().item()


for one in data:
    print(evaluate(one))
""",
    "what is set on an exception later": """
def find(one):
    out = net(one)
    print(out.argmax().item())
    error = ValueError("stop")
    error.result = out
    raise error


for one in data:
    try:
        find(one)
    except ValueError as stop:
        train(stop.result.square().mean())
""",
    "what an exit stack calls": LATER.format(
        later="with contextlib.ExitStack() as stack:\n        stack.callback(keep, 'h')"
    ),
    "what a text is replaced with": LATER.format(
        later="import re\n    re.sub('h', lambda found: keep(found[0]) or '', 'h')\n    if True:"
    ),
    "a method that is called by its name": LATER.format(
        later="operator.methodcaller('update', h=enc(x))(cache)\n    if True:"
    ),
    "what runs when an object goes": LATER.format(
        later="gone = nn.Linear(1, 1)\n    weakref.finalize(gone, keep, 'h')\n    if gone:\n        del gone"
    ),
}
MADE_ANYWAY = {  # the fix is safe there
    "an own `eval` that keeps what training takes": OWN.format(
        method="    def eval(self):\n        self.h = self.layer(x)\n        return super().eval()"
    )
    + "train(own.h.square().mean())\n",
    "an own `train` that trains": OWN.format(
        method="""
    def train(self, mode=True):
        if mode:
            train(self.layer(x).square().mean())
        return super().train(mode)
"""
    ),
    "own methods that are named as what calls others": """
class Own:
    def callback(self, number):
        return number

    def finalize(self, number):
        return number


own = Own()
nxt = target(x * own.callback(2) * own.finalize(1)).detach()
train((net(x) - nxt).square().mean())
""",
    "weights of another network": AUTOCAST.format(network="target", between=""),
    "weights that autocast casts again": AUTOCAST.format(
        network="net", between='with torch.autocast("cpu", dtype=torch.bfloat16):\n'
    ),
    "a case of a match": """
match len(data):
    case 2: nxt = target(x).detach(); z = enc(x)
train((z - nxt).square().mean())
""",
    "a generator of what is new each time": """
def features():
    for one in data:
        h = enc(one)
        yield h


it = features()
nxt = target(next(it)).detach()
train((net(next(it)) - nxt).square().mean())
""",
    "an object that reads for itself": """
class Reads:
    def __len__(self):
        return 2


reads = Reads()
nxt = target(x * len(reads)).detach()
train((net(x) - nxt).square().mean())
""",
}
