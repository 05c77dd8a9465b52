"""The scripts in `tools/`, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

TOOLS = Path(__file__).resolve().parents[1] / "tools"


def tool(name: str) -> ModuleType:
    """A script by its name, run anew; it finds the others, and is known as `NAME_tool` to what looks for its module."""
    specification = importlib.util.spec_from_file_location(f"{name}_tool", TOOLS / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    sys.path.insert(0, str(TOOLS))
    try:
        specification.loader.exec_module(module)
    finally:
        sys.path.remove(str(TOOLS))
    return module
