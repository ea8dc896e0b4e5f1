"""Write a page for each metric of the catalogue, while the pages are built.

A page joins what is known in one place each: the words of `metrics.md`, the entry of the catalogue,
the verdicts of `choosing-a-metric.md`, and a picture that is computed from the metric.
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
from abstain.typing import FloatArray, IntArray
from abstain_bench.studies.requirements.systems import (
    N_LARGE,
    ClassInputs,
    Systems,
    systems_with_few_failures,
)

DOCS = Path(__file__).resolve().parent
HOME = DOCS / "metrics"

#: Size of a picture, and of what stands around its bars.
_WIDTH, _HEIGHT, _MARGIN = 560, 190, 44


@dataclass(frozen=True)
class MetricPage:
    """What is said of one metric, or of the same one at several numbers."""

    heading: str
    words: str
    metrics: tuple[Metric, ...]
    #: The verdicts on requirements, by metric: the head of the table and the row.
    verdicts: Mapping[str, tuple[str, str]]

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.metrics[0].name.partition("@")[0]

    def text(self) -> str:
        """Return the page."""
        parts = [f"# {self.heading.partition(':')[0]}", self.words, _facts(self.metrics)]
        shown = self.metrics[0]
        if (values := _by_place(shown)) is not None:
            (HOME / f"{self.name}.svg").write_text(_picture(shown, values), encoding="utf-8")
            parts += [_PICTURED.format(name=shown.name, file=self.name, n=N_LARGE)]
        judged = [self.verdicts[m.name] for m in self.metrics if m.name in self.verdicts]
        if judged:
            head = judged[0][0]
            rule = "|" + " --- |" * (head.count("|") - 1)
            parts += [
                "## Requirements",
                _REQUIRED,
                "\n".join([head, rule, *(r for _, r in judged)]),
            ]
        return "\n\n".join(parts) + "\n"


_PICTURED = """## What it rewards

![Values of {name}]({file}.svg)

*One of {n} predictions is wrong. The bars are the values of `{name}` with it as the most confident
(left) to the least confident one (right), the confidences being even from 0.95 to 0.55. The filled
bar is the best; bars that stand alike are places that the metric does not tell apart.*"""

_REQUIRED = """What [five requirements](../choosing-a-metric.md#five-requirements) find, decided by
trying every order of right and wrong answers."""


def write() -> None:
    """Write the pages and their pictures into `docs/metrics`."""
    HOME.mkdir(exist_ok=True)
    for page in pages():
        (HOME / f"{page.name}.md").write_text(page.text(), encoding="utf-8")


def pages() -> list[MetricPage]:
    """Return the page of each heading of `metrics.md` that names metrics of the catalogue."""
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    verdicts = _verdicts()
    found = []
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = part.partition("\n")
        words = "\n".join(takewhile(lambda line: not line.startswith("## "), rest.splitlines()))
        names = {name.partition("@")[0] for name in re.findall(r"`(\w+)[`@]", heading)}
        metrics = tuple(m for m in METRICS.values() if m.name.partition("@")[0] in names)
        found.append(MetricPage(heading, _from_below(words.strip()), metrics, verdicts))
    return found


def _from_below(words: str) -> str:
    """Let the links of a page of `docs` lead from a folder in it."""
    return re.sub(r"\]\((?!https?:|#)", "](../", words).replace("](#", "](../metrics.md#")


def _facts(metrics: tuple[Metric, ...]) -> str:
    """Return a table of what the catalogue has of each: a column a metric."""
    rows = {
        "name": [f"`{m.name}`" for m in metrics],
        "in Python": [f"{{py:obj}}`{m.identity.function} <abstain.{_called(m)}>`" for m in metrics],
        "range": [
            f"{m.measurement.low:g} to {m.measurement.high:g}".replace("inf", "∞") for m in metrics
        ],
        "better": ["lower" if m.lower_is_better else "higher" for m in metrics],
        "needs": [_needs(m) or "a confidence and a loss" for m in metrics],
        "source": [re.sub(r"(https://[^\s,;]+)", r"<\1>", m.identity.source) for m in metrics],
    }
    head, *table = [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    return "\n".join([head, "|" + " --- |" * (len(metrics) + 1), *table])


def _called(metric: Metric) -> str:
    """Return the function that has the metric."""
    return re.split(r"[(,]", metric.identity.function)[0]


def _needs(metric: Metric) -> str:
    return ", ".join(sorted(need.removeprefix("needs ") for need in metric.measurement.needs))


@cache
def _verdicts() -> dict[str, tuple[str, str]]:
    """Return the rows of the table of requirements by metric, each with the head of the table."""
    text = (DOCS / "choosing-a-metric.md").read_text(encoding="utf-8")
    table = text.partition("<!-- generated: requirements -->")[2].partition("<!-- end -->")[0]
    head, _, *rows = table.strip().splitlines()
    return {row.split("`")[1]: (head, row) for row in rows}


def _by_place(metric: Metric) -> FloatArray | None:
    """Return the values with one failure among samples, by its place; None where it has none."""
    class_inputs = (
        ClassInputs.CLASSES if metric.measurement.needs & _OF_CLASSES else ClassInputs.NOTHING
    )
    for inputs in dict.fromkeys((class_inputs, ClassInputs.OPEN)):
        systems = systems_with_few_failures(inputs)
        rows = np.flatnonzero(systems.n_failures == 1)
        values = np.array([float(metric.compute(systems.scored(int(row))).value) for row in rows])
        if np.isfinite(values).all() and len(values) == N_LARGE:
            return _in_places(systems, rows, values)
    return None


def _in_places(systems: Systems, rows: IntArray, values: FloatArray) -> FloatArray:
    places = np.argmax(systems.is_failure[rows], axis=1)
    return np.asarray(values[np.argsort(places)])


_OF_CLASSES = {Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES, Need.UNKNOWN_CLASSES}


def _picture(metric: Metric, values: FloatArray) -> str:
    """Draw the values as bars over the place of the failure, in colors of either theme."""
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
    said = [
        (_MARGIN - 6, y(high) + 4, "end", f"{high:.3g}"),
        (_MARGIN - 6, y(low) + 4, "end", f"{low:.3g}"),
        (_MARGIN, _HEIGHT - 8, "start", "the failure is the most confident"),
        (_WIDTH - _MARGIN, _HEIGHT - 8, "end", "the least confident"),
    ]
    words = [
        f'<text x="{x:.0f}" y="{at:.1f}" text-anchor="{anchor}" fill="#808080">{text}</text>'
        for x, at, anchor, text in said
    ]
    axis = f'<path d="M{_MARGIN} {y(0.0):.1f}H{_WIDTH - _MARGIN}" stroke="#808080"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="12">{"".join([*bars, axis, *words])}</svg>\n'
    )
