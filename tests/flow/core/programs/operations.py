"""What keeps a graph and what cuts it off."""

from __future__ import annotations


def _kept(expression: str) -> str:
    return f"""
        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append({expression})  # expect: TML102
            print(len(kept))
        """


def _cut(expression: str) -> str:
    return _kept(expression).replace("  # expect: TML102", "")


KEEPING = (
    "loss.cpu()",
    "loss.clone()",
    "loss.float()",
    "loss.to('cpu')",
    "loss.double().mean()",
    "loss * 2",
    "-loss",
    "loss[None]",
    "loss.view(1)",
    "loss / len(x)",
    "torch.sqrt(loss)",
    "torch.stack([loss, loss])",
    "F.relu(loss)",
    "loss.squeeze().cpu()",
    "loss or 0.0",
    "max(loss, loss)",
    "(loss,)[0]",
    "{'a': loss}['a']",
    "[loss][-1]",
    "(lambda value: value)(loss)",
    "sum([loss, loss])",
    "torch.where(loss > 0, loss, loss)",
    "model(x)",
    "next(value for value in [loss])",
    "loss.abs().pow(2).log1p()",
    "x.mean() + loss",
    "torch.cat([loss[None], x.mean()[None].detach()])",
    "dict(value=loss).get('value')",
    "(loss.detach(), loss)",
    "[loss for _ in range(2)]",
    "tuple(map(lambda v: v * 2, [loss]))",
    "list(reversed([loss, 0]))",
    "sorted([loss, loss * 2])[0]",
    "torch.sum(input=loss)",
    "loss.unsqueeze(0).expand(3)",
    "(first := loss)",
    "torch.nn.MSELoss()(loss, y[0, 0])",
    "torch.mean(model(x))",
)
CUTTING = (
    "loss.item()",
    "loss.detach()",
    "loss.data",
    "float(loss)",
    "loss.tolist()",
    "loss.detach().cpu().numpy()",
    "loss.cpu().detach()",
    "int(loss > 0)",
    "f'{loss}'",
    "str(loss)",
    "loss > 0",
    "loss.shape",
    "loss.dtype",
    "loss.argmax()",
    "loss.sign().bool()",
    "torch.tensor(float(loss))",
    "loss.new_zeros(3)",
    "torch.zeros_like(loss)",
    "torch.is_tensor(loss)",
    "loss.detach().clone().requires_grad_()",
    "round(loss.item(), 3)",
    "(loss, loss.item())[1]",
    "{'a': loss, 'b': 1}['b']",
    "[loss.item(), 1.0]",
    "len([loss])",
    "x.mean()",
    "y",
    "model.weight.grad.norm()",
    "model.weight.grad.clone()",
    "isinstance(loss, torch.Tensor)",
    "loss is None",
    "type(loss).__name__",
    "id(loss)",
    "loss.requires_grad",
    "{k: v.item() for k, v in {'a': loss}.items()}",
    "[v.detach() for v in (loss, loss)]",
    "torch.stack([loss, loss]).detach()",
    "(loss * 2).max().item()",
    "sum([loss, loss]).item()",
    "None if loss is None else loss.item()",
    "torch.no_grad()(model)(x)",
    "torch.argmax(loss)",
    "loss.ge(0)",
    "loss.size()",
    "list(map(float, [loss]))",
)
OPERATIONS = {
    **{f"{expression} keeps the graph": _kept(expression) for expression in KEEPING},
    **{f"{expression} does not": _cut(expression) for expression in CUTTING},
}
