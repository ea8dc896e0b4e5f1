"""Write a page for each metric of the catalogue when the documentation is built.

A page contains the text of `metrics.md`, the facts of the catalogue, the row of the table of
requirements in `choosing-a-metric.md`, and a chart that is computed from the metric.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path

import numpy as np

from abstain.metrics import METRICS, Metric
from abstain.metrics.entry import Need
from abstain.typing import FloatArray
from abstain_bench.studies.requirements.systems import (
    N_LARGE,
    ClassInputs,
    systems_with_few_failures,
)

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "metrics"

#: Size of a chart, and width of the margins beside its bars.
_WIDTH, _HEIGHT, _MARGIN = 560, 190, 44


@dataclass(frozen=True)
class MetricPage:
    """The page of one metric, or of one metric at several numbers such as coverages."""

    heading: str
    description: str
    metrics: tuple[Metric, ...]
    #: Header and row of the table of requirements, by metric.
    requirement_rows: Mapping[str, tuple[str, str]]

    @property
    def name(self) -> str:
        """Name of the file without its suffix."""
        return self.metrics[0].name.partition("@")[0]

    def write(self) -> None:
        """Write the page, and the chart if the metric has a value for each position."""
        title = self.heading.partition(":")[0]
        parts = [f"# {title}", self.description, _facts_table(self.metrics)]
        metric = self.metrics[0]
        values = _values_by_failure_position(metric)
        if values is not None:
            (FOLDER / f"{self.name}.svg").write_text(_bar_chart(metric, values), encoding="utf-8")
            parts.append(_CHART_SECTION.format(name=metric.name, file=self.name, n=N_LARGE))
        rows = [
            self.requirement_rows[m.name] for m in self.metrics if m.name in self.requirement_rows
        ]
        if rows:
            header = rows[0][0]
            rule = "|" + " --- |" * (header.count("|") - 1)
            table = "\n".join([header, rule, *(row for _, row in rows)])
            parts += ["## Requirements", _REQUIREMENTS_TEXT, table]
        (FOLDER / f"{self.name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


_CHART_SECTION = """## Value by the position of a failure

![Values of {name}]({file}.svg)

*One of {n} predictions is wrong. The leftmost bar is the value of `{name}` if the most confident
prediction is wrong, and the rightmost bar is the value if the least confident prediction is wrong.
The confidences decrease in equal steps from 0.95 to 0.55. Dark bars have the best value. Bars of
equal height are positions that the metric does not distinguish.*"""

_REQUIREMENTS_TEXT = """The table shows which of the [five
requirements](../choosing-a-metric.md#five-requirements) the metric meets. The results are computed
from all orders of correct and wrong predictions."""


def write() -> None:
    """Write the pages and their charts into `docs/metrics`."""
    FOLDER.mkdir(exist_ok=True)
    for page in pages():
        page.write()


def pages() -> list[MetricPage]:
    """Return a page for each heading of `metrics.md` that names metrics of the catalogue."""
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    requirement_rows = _requirement_rows()
    result = []
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        lines = takewhile(lambda line: not line.startswith("## "), body.splitlines())
        description = _links_from_subfolder("\n".join(lines).strip())
        names = {name.partition("@")[0] for name in re.findall(r"`(\w+)[`@]", heading)}
        metrics = tuple(m for m in METRICS.values() if m.name.partition("@")[0] in names)
        result.append(MetricPage(heading, description, metrics, requirement_rows))
    return result


def _links_from_subfolder(text: str) -> str:
    """Change links relative to `docs` into links relative to a folder in `docs`."""
    return re.sub(r"\]\((?!https?:|#)", "](../", text).replace("](#", "](../metrics.md#")


def _facts_table(metrics: tuple[Metric, ...]) -> str:
    """Return a table with the facts of the catalogue, with one column per metric."""
    rows = {
        "name": [f"`{m.name}`" for m in metrics],
        "in Python": [
            f"{{py:obj}}`{m.identity.function} <abstain.{_function_name(m)}>`" for m in metrics
        ],
        "range": [
            f"{m.measurement.low:g} to {m.measurement.high:g}".replace("inf", "∞") for m in metrics
        ],
        "better": ["lower" if m.lower_is_better else "higher" for m in metrics],
        "needs": [_needs(m) or "a confidence and a loss" for m in metrics],
        "source": [re.sub(r"(https://[^\s,;]+)", r"<\1>", m.identity.source) for m in metrics],
    }
    header, *lines = [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    return "\n".join([header, "|" + " --- |" * (len(metrics) + 1), *lines])


def _function_name(metric: Metric) -> str:
    """Return the name of the function that computes the metric."""
    return re.split(r"[(,]", metric.identity.function)[0]


def _needs(metric: Metric) -> str:
    return ", ".join(sorted(need.removeprefix("needs ") for need in metric.measurement.needs))


@cache
def _requirement_rows() -> dict[str, tuple[str, str]]:
    """Return the header and the row of the table of requirements, by metric."""
    text = (DOCS / "choosing-a-metric.md").read_text(encoding="utf-8")
    table = text.partition("<!-- generated: requirements -->")[2].partition("<!-- end -->")[0]
    header, _, *rows = table.strip().splitlines()
    return {row.split("`")[1]: (header, row) for row in rows}


def _values_by_failure_position(metric: Metric) -> FloatArray | None:
    """Return the value of a metric for each position of a single failure.

    The result is None if the metric is undefined for one of the positions.
    """
    needs_classes = metric.measurement.needs & _CLASS_NEEDS
    class_inputs = ClassInputs.CLASSES if needs_classes else ClassInputs.NOTHING
    for inputs in dict.fromkeys((class_inputs, ClassInputs.OPEN)):
        systems = systems_with_few_failures(inputs)
        rows = np.flatnonzero(systems.n_failures == 1)
        values = np.array([float(metric.compute(systems.scored(int(row))).value) for row in rows])
        if np.isfinite(values).all() and len(values) == N_LARGE:
            positions = np.argmax(systems.is_failure[rows], axis=1)
            return np.asarray(values[np.argsort(positions)])
    return None


_CLASS_NEEDS = {Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES, Need.UNKNOWN_CLASSES}


def _bar_chart(metric: Metric, values: FloatArray) -> str:
    """Draw a bar for each position of the failure, in colors for light and dark pages."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    span = high - low or 1.0
    step = (_WIDTH - 2 * _MARGIN) / len(values)

    def y(value: float) -> float:
        return 16 + (_HEIGHT - 50) * (high - value) / span

    best = values.min() if metric.lower_is_better else values.max()
    bars = [
        f'<rect x="{_MARGIN + i * step + 2:.1f}" y="{min(y(v), y(0.0)):.1f}" '
        f'width="{step - 4:.1f}" height="{max(abs(y(v) - y(0.0)), 0.5):.1f}" fill="#2a6fb0" '
        f'fill-opacity="{1 if np.isclose(v, best) else 0.35}"/>'
        for i, v in enumerate(values.tolist())
    ]
    labels = [
        (_MARGIN - 6, y(high) + 4, "end", f"{high:.3g}"),
        (_MARGIN - 6, y(low) + 4, "end", f"{low:.3g}"),
        (_MARGIN, _HEIGHT - 8, "start", "the failure is the most confident"),
        (_WIDTH - _MARGIN, _HEIGHT - 8, "end", "the least confident"),
    ]
    texts = [
        f'<text x="{x:.0f}" y="{label_y:.1f}" text-anchor="{anchor}" fill="#808080">{text}</text>'
        for x, label_y, anchor, text in labels
    ]
    axis = f'<path d="M{_MARGIN} {y(0.0):.1f}H{_WIDTH - _MARGIN}" stroke="#808080"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="12">{"".join([*bars, axis, *texts])}</svg>\n'
    )
