"""Holds reports against their schemas."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

_PLACES = (
    ("torchmemlint.report", "schema.json"),
    ("torchmemlint.runtime", "schema.json"),
    ("torchmemlint.runtime", "trace_schema.json"),
    ("torchmemlint.snapshot", "schema.json"),
)
REPORT, VERIFY, TRACE, OOM = (
    json.loads((files(package) / name).read_text(encoding="utf-8")) for package, name in _PLACES
)


def validate(report: Any, schema: Any) -> None:
    """Raise where a report is not as its schema says; nothing where no validator is installed (with older torch)."""
    try:
        import jsonschema
        import referencing
    except ImportError:
        return
    resources = [(one["$id"], referencing.Resource.from_contents(one)) for one in (REPORT, VERIFY, TRACE, OOM)]
    registry = referencing.Registry().with_resources(resources)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema, registry=registry).validate(report)
