"""A census as one HTML page that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchmemlint import __version__
from torchmemlint.census.counting import SEVERITIES, Census, Rule
from torchmemlint.census.labels import Precision
from torchmemlint.census.table import cells
from torchmemlint.findings import Severity
from torchmemlint.report.html.charts import MOST, Bar, Chart, Part, counted
from torchmemlint.report.html.page import hash_of, part
from torchmemlint.report.message import rule_url

_STYLE = """
table.numbers { border-collapse: collapse; font-variant-numeric: tabular-nums; }
table.numbers th, table.numbers td { padding: .2rem .8rem .2rem 0; text-align: right; vertical-align: top; }
table.numbers th:first-child { text-align: left; }
"""
_TITLES = ("rule", "findings", *(f"{name}s" if name != "advice" else name for name in SEVERITIES))


def page(census: Census, precision: Mapping[str, Precision]) -> str:
    """The page, in ASCII, so that it survives any stream."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader("torchmemlint.census", "."), jinja2.PackageLoader("torchmemlint.report.html", ".")]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = part("page.css") + _STYLE
    rules = census.rules()
    read = ("true", "precision (95%)") if precision else ()
    text = environment.get_template("page.html.jinja").render(
        version=__version__,
        style=Markup(style),
        policy=f"default-src 'none'; style-src {hash_of(style)}; base-uri 'none'",
        census=census,
        tiles=_tiles(census),
        charts=[chart for chart in _charts(census, rules, precision) if chart.bars],
        titles=(*_TITLES, "projects", "share of projects", "per 1,000 lines", *read),
        rows=[
            [{"url": rule_url(rule.code), "text": f"{rule.code} {rule.name}"}, *cells(rule, precision)]
            for rule in rules
        ],
    )
    return text.strip().encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n"


def _tiles(census: Census) -> list[tuple[int, str]]:
    tiles = [(len(census.projects), "projects"), (census.looked_at, "mention torch"), (len(census.found), "findings")]
    return [*tiles, (census.torch_lines, "lines that mention torch")] if census.torch_lines is not None else tiles


def _charts(census: Census, rules: list[Rule], precision: Mapping[str, Precision]) -> list[Chart]:
    labels = {rule.code: f"{rule.code} {rule.name}" for rule in rules}
    by_rule = counted(((one.code, Severity(one.severity)) for one in census.found), labels)
    by_project = counted(((one.project, Severity(one.severity)) for one in census.found), {})
    common = _bars(((labels[rule.code], rule.prevalence) for rule in rules), "{:.1%}")
    dense = _bars(((labels[rule.code], rule.per_thousand_lines or 0.0) for rule in rules), "{:.3f}")
    right = _bars(
        ((labels.get(code, code), one.share) for code, one in precision.items() if one.share is not None), "{:.0%}"
    )
    return [
        Chart("Findings by rule", "findings", by_rule),
        Chart("Share of projects with a finding", "share", common),
        Chart("Findings per 1,000 lines", "findings", dense),
        Chart("Findings by project", "findings", by_project),
        Chart("Precision, as read by hand", "share", right),
    ]


def _bars(values: Iterable[tuple[str, float]], form: str) -> tuple[Bar, ...]:
    ranked = sorted((item for item in values if item[1] > 0), key=lambda item: (-item[1], item[0]))[:MOST]
    most = max((value for _, value in ranked), default=1.0)
    return tuple(
        Bar(label, form.format(value), (Part("advice", 0.0, round(100 * value / most, 2)),)) for label, value in ranked
    )
