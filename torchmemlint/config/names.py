"""Names of files that lie beside a configuration."""

BASELINE = "torchmemlint-baseline.json"
