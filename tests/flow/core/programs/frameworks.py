"""Programs that frameworks and other libraries run, and epochs that train or evaluate."""

FRAMEWORKS = {
    "a LightningModule": """
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)

            def training_step(self, batch, i):
                x, y = batch
                loss = F.mse_loss(self.net(x), y)
                self.log("loss", loss)
                return loss

            def validation_step(self, batch, i):
                x, y = batch
                self.log("val", F.mse_loss(self.net(x), y))

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters())
        """,
    "a LightningModule of a checkpoint": """
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self, width):
                super().__init__()
                self.net = nn.Linear(width, 1)

            def forward(self, x):
                return self.net(x)

        def score(path, batches):
            lit = Lit.load_from_checkpoint(path)
            for x in batches:
                print(lit(x).argmax())  # expect: TML201
        """,
    "a LightningModule that is made, then loaded": """
        import lightning as L

        class Lit(L.LightningModule):
            def __init__(self, net):
                super().__init__()
                self.net = net

            def forward(self, x):
                return self.net(x)

        def score(path, batches):
            lit = Lit(nn.Linear(4, 1))
            lit = lit.load_from_checkpoint(path, net=nn.Linear(4, 1))
            for x in batches:
                print(lit(x).argmax())  # expect: TML201
        """,
    "a LightningModule that loads in its own way": """
        import lightning as L

        class Lit(L.LightningModule):
            @classmethod
            def load_from_checkpoint(cls, path):
                return open(path).read()

        def score(path, batches):
            told = Lit.load_from_checkpoint(path)
            for x in batches:
                print(told.count(x))
        """,
    "a pretrained network of the project": """
        from transformers import PreTrainedModel

        class Tagger(PreTrainedModel):
            def __init__(self, config):
                super().__init__(config)
                self.head = nn.Linear(config.size, 2)

            def forward(self, x):
                return self.head(x)

        def tag(name, batches):
            tagger = Tagger.from_pretrained(name)
            for x in batches:
                print(tagger(x).argmax())  # expect: TML201
        """,
    "a LightningModule that keeps its losses": """
        import lightning as L

        class Lit(L.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)
                self.outs = []

            def training_step(self, batch, i):
                x, y = batch
                loss = F.mse_loss(self.net(x), y)
                self.outs.append(loss)  # expect: TML701  # instead: self.outs.append(loss.detach())
                return loss

            def on_train_epoch_end(self):
                print(torch.stack(self.outs).mean())
        """,
    "a list of losses that is emptied when the epoch ends": """
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)
                self.outs = []

            def training_step(self, batch, i):
                loss = self.net(batch).mean()
                self.outs.append(loss)  # expect: TML701  # instead: self.outs.append(loss.detach())
                return loss

            def on_train_epoch_end(self):
                print(torch.stack(self.outs).mean())
                self.outs.clear()
        """,
    "a list of losses that is replaced after each batch": """
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)
                self.outs = []

            def training_step(self, batch, i):
                loss = self.net(batch).mean()
                self.outs.append(loss)
                return loss

            def on_train_batch_end(self, outputs, batch, i):
                print(torch.stack(self.outs).mean())
                self.outs = []
        """,
    "a list of losses that an epoch adds to": """
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)
                self.outs = []

            def training_step(self, batch, i):
                return self.net(batch).mean()

            def on_train_epoch_end(self):
                self.outs.append(self.net(torch.ones(4)))  # expect: TML102
                # instead: self.outs.append(torch.no_grad()(self.net)(torch.ones(4)))
        """,
    "what steps return beside the loss, for a hook": """
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)
                self.outs = []

            def training_step(self, batch, i):
                out = self.net(batch)
                return {
                    "loss": out.mean(),
                    "out": out,  # expect: TML701  # instead: "out": out.detach(),
                    "most": out.max(),  # expect: TML701  # instead: "most": out.max().item(),
                }

            def training_epoch_end(self, outputs):
                print(len(outputs))
        """,
    "what steps return beside the loss, by way of a method": """
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)
                self.outs = []

            def step(self, batch):
                out = self.net(batch)
                found = {"loss": out.mean()}
                found["out"] = out
                return found

            def training_step(self, batch, i):
                return self.step(batch)  # expect: TML701  # instead: return {"loss": self.step(batch)["loss"]}

            def training_epoch_end(self, outputs):
                print(len(outputs))
        """,
    "what steps return beside the loss, for nobody": """
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)
                self.outs = []

            def training_step(self, batch, i):
                out = self.net(batch)
                return {"loss": out.mean(), "out": out}
        """,
    "what steps return beside the loss, of which something else is made": """
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)
                self.outs = []

            def training_step(self, batch, i):
                out = self.net(batch)
                return {"loss": out.mean(), "out": out}

            def training_step_end(self, found):
                return {"loss": found["loss"], "size": len(found["out"])}

            def training_epoch_end(self, outputs):
                print(len(outputs))
        """,
    "a step that returns its loss, for a hook": """
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)
                self.outs = []

            def training_step(self, batch, i):
                return self.net(batch).mean()

            def training_epoch_end(self, outputs):
                print(len(outputs))
        """,
    "a metric that keeps what it is called with": """
        from torchmetrics import SpearmanCorrCoef

        def train(loader):
            metric = SpearmanCorrCoef()
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                optimizer.step()
                metric(out, y)  # expect: TML102  # instead: metric(out.detach(), y)
            print(metric.compute())
        """,
    "a metric that keeps sums": """
        from torchmetrics import MeanSquaredError

        def train(loader):
            metric = MeanSquaredError()
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                optimizer.step()
                metric(out, y)
            print(metric.compute())
        """,
    "a LightningModule that keeps what it validates": """
        import lightning as L

        class Lit(L.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 1)
                self.outs = []

            def validation_step(self, batch, i):
                x, y = batch
                self.outs.append(F.mse_loss(self.net(x), y))

            def on_validation_epoch_end(self):
                print(torch.stack(self.outs).mean())
                self.outs.clear()
        """,
    "an epoch with an optimizer and one without": """
        def run_epoch(loader, net, criterion, opt=None):
            training = opt is not None
            net.train(training)
            total = 0.0
            for x, y in loader:
                out = net(x)
                loss = criterion(out, y)
                if training:
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                total += loss.item()
            return total

        def train(loader, net, criterion, opt):
            for epoch in range(3):
                a = run_epoch(loader, net, criterion, opt)
                b = run_epoch(loader, net, criterion)  # expect: TML201
                # instead: b = torch.no_grad()(run_epoch)(loader, net, criterion)
        """,
    "an epoch without an optimizer in a context": """
        def run_epoch(loader, net, criterion, opt=None):
            training = opt is not None
            net.train(training)
            total = 0.0
            for x, y in loader:
                out = net(x)
                loss = criterion(out, y)
                if training:
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                total += loss.item()
            return total

        def train(loader, net, criterion, opt):
            for epoch in range(3):
                a = run_epoch(loader, net, criterion, opt)
                with torch.no_grad():
                    b = run_epoch(loader, net, criterion)
        """,
    "a context that is chosen": """
        import contextlib

        def run_epoch(loader, net, training):
            context = contextlib.nullcontext() if training else torch.no_grad()
            with context:
                for x, y in loader:
                    loss = F.mse_loss(net(x), y)
                    if training:
                        loss.backward()
                    print(loss.item())

        def train(loader):
            run_epoch(loader, model, True)
            run_epoch(loader, model, False)
        """,
    "a context that a flag chooses": """
        def run_epoch(loader, net, training):
            with torch.enable_grad() if training else torch.no_grad():
                for x, y in loader:
                    loss = F.mse_loss(net(x), y)
                    if training:
                        loss.backward()
                    print(loss.item())

        def train(loader):
            run_epoch(loader, model, True)
            run_epoch(loader, model, False)
        """,
    "a flag of the command line": """
        import argparse
        args = argparse.ArgumentParser().parse_args()

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                if not args.eval:
                    loss.backward()
                    optimizer.step()
                print(loss.item())
        """,
    "predictions that are returned": """
        def train(loader):
            model.eval()
            preds = []
            for x, y in loader:
                with torch.no_grad():
                    out = model(x)
                preds.append(out)
            return torch.cat(preds)
        """,
    "a pass to look at a shape": """
        def main():
            net = nn.Sequential(nn.Linear(4, 4))
            out = net(torch.randn(2, 4))
            print(out.shape)
        main()
        """,
    "a test of a shape": """
        def test_net():
            net = nn.Linear(4, 1)
            assert net(torch.randn(2, 4)).shape == (2, 1)
        """,
    "a prediction that is returned": """
        class P:
            def __init__(self):
                self.net = nn.Linear(4, 2).eval()

            def predict(self, x):
                return self.net(x)  # expect: TML201  # instead: return torch.no_grad()(self.net)(x)
        """,
    "an adversarial example": """
        def train(loader):
            model.eval()
            for x, y in loader:
                x.requires_grad = True
                loss = F.mse_loss(model(x), y)
                model.zero_grad()
                loss.backward()
                adv = x + 0.1 * x.grad.sign()
                with torch.no_grad():
                    print(model(adv).argmax(1))
        """,
    "an adversarial example that is classified": """
        def train(loader):
            model.eval()
            for x, y in loader:
                x.requires_grad = True
                loss = F.mse_loss(model(x), y)
                loss.backward()
                adv = x + 0.1 * x.grad.sign()
                print(model(adv).argmax(1))  # expect: TML201  # instead: print(torch.no_grad()(model)(adv).argmax(1))
        """,
    "a map of gradients": """
        def saliency(net, x):
            net.eval()
            x.requires_grad_()
            score = net(x).max()
            score.backward()
            return x.grad.abs()
        """,
    "a list for each epoch": """
        def train(loader):
            for epoch in range(3):
                losses = []
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
                print(sum(losses) / len(losses))
        """,
    "a progress bar": """
        from tqdm import tqdm

        def train(loader):
            bar = tqdm(loader)
            total = 0
            for x, y in bar:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
                bar.set_postfix(loss=loss.item())
        """,
    "a log of another library": """
        import wandb

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                wandb.log({"loss": loss})
        """,
    "accelerate": """
        from accelerate import Accelerator
        acc = Accelerator()
        model, optimizer = acc.prepare(model, optimizer)

        def train(loader):
            total = 0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                acc.backward(loss)
                optimizer.step()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total / len(loader))
        """,
    "a network of transformers": """
        from transformers import AutoModelForCausalLM

        def train(loader):
            net = AutoModelForCausalLM.from_pretrained("gpt2")
            losses = []
            for batch in loader:
                out = net(**batch)
                out.loss.backward()
                losses.append(out.loss)  # expect: TML102  # instead: losses.append(out.loss.item())
        """,
    "a network of transformers that is evaluated": """
        from transformers import AutoModelForCausalLM

        def train(loader):
            net = AutoModelForCausalLM.from_pretrained("gpt2").eval()
            for batch in loader:
                logits = net(**batch).logits  # expect: TML201
                # instead: logits = torch.no_grad()(net)(**batch).logits
                print(logits.argmax(-1))
        """,
    "a network of transformers that generates": """
        from transformers import AutoModelForCausalLM

        def train(loader):
            net = AutoModelForCausalLM.from_pretrained("gpt2").eval()
            for batch in loader:
                print(net.generate(**batch))
        """,
    "a network of timm": """
        import timm

        def train(loader):
            net = timm.create_model("resnet18")
            total = 0
            for x, y in loader:
                loss = F.cross_entropy(net(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            return total / len(loader)
        """,
    "features of a network of torchvision": """
        from torchvision import models

        def train(loader):
            net = models.resnet18(pretrained=True)
            net.eval()
            feats = []
            for x, y in loader:
                feats.append(net(x))  # expect: TML102, TML201  # instead: feats.append(torch.no_grad()(net)(x))
            return torch.cat(feats)
        """,
    "a class for averages of weights": """
        class EMA:
            def __init__(self, net, decay):
                self.net, self.decay = net, decay
                self.shadow = {}

            def register(self):
                for name, param in self.net.named_parameters():
                    if param.requires_grad:
                        self.shadow[name] = param.data.clone()

            def update(self):
                for name, param in self.net.named_parameters():
                    if param.requires_grad:
                        new = (1.0 - self.decay) * param.data + self.decay * self.shadow[name]
                        self.shadow[name] = new.clone()

        def train(loader):
            ema = EMA(model, 0.9)
            ema.register()
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
                optimizer.step()
                ema.update()
        """,
    "an evaluation step that a trainer calls with gradients": """
        from transformers import Trainer

        class Rewards(Trainer):
            def compute_loss(self, model: nn.Module, inputs, return_outputs=False):
                scores = model(**inputs)[0]
                loss = -F.logsigmoid(scores).mean()
                return (loss, scores) if return_outputs else loss

            def prediction_step(self, model: nn.Module, inputs, prediction_loss_only, ignore_keys=None):
                loss, scores = self.compute_loss(model, inputs, return_outputs=True)  # expect: TML201
                # instead: loss, scores = torch.no_grad()(self.compute_loss)(model, inputs, return_outputs=True)
                return loss.detach(), scores, None
        """,
    "an evaluation step that asks the trainer's own": """
        from transformers import Trainer

        class Rewards(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False):
                return -F.logsigmoid(model(**inputs)[0]).mean()

            def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
                loss, scores, _ = super().prediction_step(model, inputs, prediction_loss_only)
                return loss, scores, None
        """,
    "a step of a base class that is not seen": """
        from evaluation import Evaluation

        class Rewards(Evaluation):
            def prediction_step(self, network, inputs):
                return network(inputs).softmax(1)
        """,
    "a pipeline is given what its encoder makes": """
        from diffusers import FluxPipeline

        def validate(pipeline, prompt):
            pipeline = pipeline.to("cuda")
            embeds, pooled, _ = pipeline.encode_prompt(prompt, prompt_2=prompt)  # expect: TML201
            return [pipeline(prompt_embeds=embeds, pooled_prompt_embeds=pooled).images[0] for _ in range(4)]

        def main(prompts):
            pipeline = FluxPipeline.from_pretrained("name")
            for prompt in prompts:
                print(validate(pipeline, prompt))
        """,
    "a pipeline's frozen encoder, and what pipelines give": """
        import diffusers

        def main(encoder, prompts):
            encoder.requires_grad_(False)
            pipeline, images = diffusers.FluxPipeline.from_pretrained("name", text_encoder=encoder), []
            for prompt in prompts:
                embeds, pooled, _ = pipeline.encode_prompt(prompt)
                images.append(pipeline(prompt_embeds=embeds, pooled_prompt_embeds=pooled).images[0])
            return images
        """,
    "what is shown to be a pipeline": """
        def validate(pipeline, prompts):
            pipeline = pipeline.to("cuda")
            pipeline.set_progress_bar_config(disable=True)
            images = []
            for prompt in prompts:
                images.append(pipeline(prompt))
            return images
        """,
    "a pipeline that optimizes its input after a pass that it does not": """
        from diffusers import DiffusionPipeline

        class Editing(DiffusionPipeline):
            def __call__(self, latents, steps):
                unet, early = self.unet, latents
                for t in steps:
                    noise = unet(early, t)  # expect: TML201  # instead: noise = torch.no_grad()(unet)(early, t)
                    early = self.scheduler.step(noise, t, early)
                for t in steps:
                    x = latents.detach().clone()
                    x.requires_grad = True
                    loss = self.unet(x, t).pow(2).mean()
                    self.unet(x, t)
                    loss.backward()
                    latents = (x - 0.1 * x.grad).detach()
                return latents
        """,
}
