"""Where programs have their settings from: parsers, namespaces, and what counts the CPUs of a machine."""

from __future__ import annotations

PARSERS = frozenset({"argparse.ArgumentParser", "configargparse.ArgumentParser", "configargparse.ArgParser"})
OPTIONS = frozenset({"click.option", "rich_click.option", "click.decorators.option"})
# Mappings whose entries are attributes as well.
NAMESPACES = frozenset(
    "argparse.Namespace easydict.EasyDict addict.Dict munch.Munch munch.munchify box.Box ml_collections.ConfigDict "
    "ml_collections.config_dict.ConfigDict attrdict.AttrDict omegaconf.OmegaConf.create omegaconf.DictConfig "
    "omegaconf.OmegaConf.structured".split()
)
# All CPUs, also those that a process may not use.
COUNTING = frozenset(
    {"os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count", "psutil.cpu_count"}
)
