"""Write the generated parts of the documentation: ``python docs/generate.py``.

Each generated part is between ``<!-- generated: NAME -->`` and ``<!-- end -->`` in its page. The
content comes from the catalogues, the functions and the command line.
``tests/docs/test_generated.py`` fails if a committed page is not current.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import abstain as ab
from abstain import streaming
from abstain.confidence import SCORES
from abstain.errors import UncountedError
from abstain.metrics import METRICS
from abstain.metrics.catalogue import FAMILIES
from abstain.metrics.entry import Need
from abstain.metrics.rank_weights import RANK_ONLY_WEIGHTS, trapezoid_weight
from abstain.predictions import LOSSES
from abstain_bench.data import glyph_families
from abstain_bench.studies import STUDIES
from abstain_bench.studies.requirements import READINGS, summary_rows
from abstain_bench.studies.requirements.decisions import is_in_scope, judge_metric

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

from command_pages import command_pages, command_table  # noqa: E402

#: Number of samples for the table of requirements, which examines all their orders. A larger number
#: gives the same table.
REQUIREMENTS_MAX_SAMPLES = 5

#: Example data of the table of conversions: ten samples, ordered from the most confident.
EXAMPLE_CONFIDENCE = (0.99, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4)
EXAMPLE_LOSS = (1, 0, 0, 0, 1, 0, 0, 1, 0, 1)

#: Descriptions of the computations that `benchmarks/many_rows.py` measures, by name.
_COMPUTATIONS = {
    "one_pass": "`one_pass`: AUGRC and both AURC with 95% intervals",
    "two_passes": "two passes: AUGRC and plug-in AURC with 95% intervals",
    "histogram": "`init`: AUGRC and both AURC with limits",
    "duckdb": "DuckDB: counts for each confidence, then AUGRC and AURC",
    "polars": "polars, streaming engine: counts for each confidence, then AUGRC and AURC",
}

#: Inputs of metrics that a stream of confidences and losses does not contain.
CLASS_NEEDS = {Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES, Need.UNKNOWN_CLASSES}

_ADDRESS = re.compile(r"https://[^\s,;]+")
_BLOCK = r"(<!-- generated: {} -->\n).*?(<!-- end -->)"


def metrics_table() -> str:
    """Return a table with one row for each metric of the catalogue."""
    page = (DOCS / "metrics.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.*)$", page, re.MULTILINE)
    rows = [
        (
            f"[`{m.name}`](#{anchor(m.name, headings)})",
            f"`{m.identity.function}`",
            f"{_bound(m.measurement.low)} to {_bound(m.measurement.high)}",
            "lower" if m.lower_is_better else "higher",
            _needs(m.measurement.needs),
            linked(m.identity.source),
        )
        for m in METRICS.values()
    ]
    header = ("metric", "function", "range", "better", "needs", "source")
    return _table(header, rows)


def parametric_metrics_table() -> str:
    """Return a table with an example for each family of metrics with numbers in their names."""
    examples = [family.parse(family.example_name) for family in FAMILIES]
    rows = [(f"`{metric.name}`", metric.title) for metric in examples if metric is not None]
    return _table(("example", "meaning"), rows)


def streaming_metrics_table() -> str:
    """Return a table of the streaming states that support each metric of confidences and losses."""
    batch = [0.9, 0.8, 0.7, 0.6, 0.5], [0, 1, 0, 0, 1]
    first_state = streaming.update(streaming.first_pass(), *batch)
    second_state = streaming.update(streaming.second_pass(first_state), *batch)
    chunkwise_weights = {*RANK_ONLY_WEIGHTS, trapezoid_weight}
    rows = []
    for metric in METRICS.values():
        measurement = metric.measurement
        if measurement.needs & CLASS_NEEDS:
            continue
        is_supported = (
            True,
            _supports_metric(second_state, metric.name),
            measurement.rank_weight in chunkwise_weights,
            measurement.binned is not None,
        )
        rows.append((f"`{metric.name}`", *("yes" if x else "" for x in is_supported)))
    header = (
        "metric",
        "`one_pass`; `sorted_runs` in memory",
        "two passes",
        "`sorted_runs` beyond memory",
        "`init`, with limits",
    )
    return _table(header, rows)


def _supports_metric(state: streaming.CutCounts, name: str) -> bool:
    """Whether a metric can be computed from the state of a stream."""
    try:
        streaming.compute(state, name)
    except UncountedError:
        return False
    return True


def streaming_costs_table() -> str:
    """Return a table with one row for each measurement of `benchmarks/many_rows.py`."""
    path = DOCS.parent / "benchmarks" / "many_rows.json"
    rows = [
        (
            _COMPUTATIONS[run["name"]],
            f"10^{len(str(run['rows'])) - 1}",
            f"{run['seconds']:.0f}",
            f"{run['cpu'] / run['rows'] * 1e9:.0f}",
            f"{run['ratio_seconds']:.1f}",
            f"{run['ratio_cpu']:.1f}",
            f"{run['peak'] / 1e9:.2f}",
            f"{run['load']:.0f}",
        )
        for run in json.loads(path.read_text(encoding="utf-8"))
    ]
    header = (
        "method",
        "rows",
        "time, s",
        "CPU time per row, ns",
        "time / reading time",
        "CPU time / reading CPU time",
        "peak memory, GB",
        "load average",
    )
    return _table(header, rows)


def scores_table() -> str:
    """Return a table with one row for each built-in score."""
    rows = [
        (
            f"`{s.name}`",
            s.title,
            f"`{s.function}`",
            s.unit,
            "yes" if s.compute_at_temperature else "",
            _needs(s.needs),
            linked(s.source),
        )
        for s in SCORES.values()
    ]
    header = ("score", "name", "function", "unit", "temperature", "needs", "source")
    return _table(header, rows)


def losses_table() -> str:
    """Return a table with one row for each named loss."""
    rows = [
        (
            f"`{loss.name}`",
            loss.meaning,
            f"0 to {_bound(loss.high)}",
            "class scores" if loss.needs_scores else "",
            linked(loss.source),
        )
        for loss in LOSSES.values()
    ]
    return _table(("loss", "value for a sample", "range", "needs", "source"), rows)


def conversions_table() -> str:
    """Return a table of the areas of other programs and of the equal values of our formulas."""
    n = len(EXAMPLE_LOSS)
    first_loss = EXAMPLE_LOSS[0]
    risk = sum(EXAMPLE_LOSS) / n
    aurc = ab.aurc(EXAMPLE_CONFIDENCE, EXAMPLE_LOSS)
    augrc = ab.augrc(EXAMPLE_CONFIDENCE, EXAMPLE_LOSS)
    without_first = aurc - first_loss / n
    plugin = aurc - (first_loss - risk) / (2 * n)
    mean_loss_by_rank = sum(loss / rank for rank, loss in enumerate(EXAMPLE_LOSS, start=1)) / n
    formulas = {
        ("AURC", "fd-shifts"): ("1000 A", 1000 * aurc),
        ("AURC", "fd-shifts-legacy"): ("1000 (A - f/n)", 1000 * without_first),
        ("AURC", "plugin"): ("P = A - (f - R)/(2n)", plugin),
        ("AURC", "geifman"): ("P - D + R/n", plugin - mean_loss_by_rank + risk / n),
        ("AURC", "cwsa"): ("A - f/n", without_first),
        ("AURC", "torch-uncertainty"): ("(A - f/n) / (1 - 1/n)", without_first / (1 - 1 / n)),
        ("AUGRC", "fd-shifts"): ("1000 G", 1000 * augrc),
        ("AUGRC", "torch-uncertainty"): (
            "(G - f/(2n²)) / (1 - 1/n)",
            (augrc - first_loss / (2 * n**2)) / (1 - 1 / n),
        ),
    }
    published = {"AURC": ab.published_aurc, "AUGRC": ab.published_augrc}
    rows = [
        (
            f"`published_{area.lower()}(..., convention='{program}')`",
            f"{published[area](EXAMPLE_CONFIDENCE, EXAMPLE_LOSS, convention=program):.10f}",
            f"`{formula}`",
            f"{value:.10f}",
        )
        for (area, program), (formula, value) in formulas.items()
    ]
    header = ("function", "value", "formula in terms of our functions", "value of the formula")
    return _table(header, rows)


def families_table() -> str:
    """Return a table with one row for each typeface of the glyphs."""
    roles = {"train": "training", "unseen": "unseen", "style": "unseen style"}
    rows = [(f.name, f.style, roles[f.role], f.license, f"`{f.package}`") for f in glyph_families()]
    return _table(("typeface", "style", "role", "license", "package"), rows)


def studies_table() -> str:
    """Return a table with one row for each study and a link to its page."""
    rows = [
        (
            f"[`{s.name}`](studies/{s.name}.md)",
            s.question,
            linked(s.source),
        )
        for s in STUDIES.values()
    ]
    return _table(("study", "question", "source"), rows)


@cache
def requirements_table() -> str:
    """Return a table with the verdicts on R1 to R5 for each metric over all thresholds."""
    judgments = [
        judge_metric(metric, REQUIREMENTS_MAX_SAMPLES)
        for metric in METRICS.values()
        if is_in_scope(metric)
    ]
    rows = [
        (
            f"`{row['metric']}`",
            *("yes" if row[reading.column] else "no" for reading in READINGS.values()),
            str(row["the_paper"]),
        )
        for row in summary_rows(judgments)
    ]
    columns = [reading.column for reading in READINGS.values()]
    return _table(("metric", *columns, "violated according to the paper"), rows)


#: Page, name of the generated part, and the function that returns its text.
BLOCKS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("metrics.md", "metrics", metrics_table),
    ("metrics.md", "numbers", parametric_metrics_table),
    ("scores.md", "scores", scores_table),
    ("conventions.md", "losses", losses_table),
    ("conventions.md", "conversions", conversions_table),
    ("glyphs.md", "families", families_table),
    ("studies.md", "studies", studies_table),
    ("choosing-a-metric.md", "requirements", requirements_table),
    ("cli.md", "commands", command_table),
    ("streaming.md", "states", streaming_metrics_table),
    ("streaming.md", "rows", streaming_costs_table),
)


def anchor(name: str, headings: list[str]) -> str:
    """Return the anchor of the heading that names a metric.

    The metrics of a family, such as those at several coverages, have one heading. GitHub and MyST
    derive the same anchor from a heading.
    """
    base_name = re.compile(rf"`{re.escape(name.partition('@')[0])}[`@]")
    matches = [heading for heading in headings if base_name.search(heading)]
    if len(matches) != 1:
        msg = f"docs/metrics.md must have one heading for {name!r}; it has {len(matches)}"
        raise ValueError(msg)
    return re.sub(r"[^\w\- ]", "", matches[0].lower()).replace(" ", "-")


def linked(source: str) -> str:
    """Replace the addresses in a text by links with short titles."""
    return _ADDRESS.sub(lambda match: f"[{_link_title(match[0])}]({match[0]})", source)


def _link_title(address: str) -> str:
    host, _, path = address.removeprefix("https://").partition("/")
    if host == "arxiv.org":
        return "arXiv:" + path.removeprefix("abs/")
    return "DOI" if host == "doi.org" else host


def _needs(needs: Iterable[str]) -> str:
    return ", ".join(sorted(need.removeprefix("needs ") for need in needs))


def _bound(value: float) -> str:
    return f"{value:g}".replace("inf", "∞").replace("-", "−")


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = []
    for row in [header, ("---",) * len(header), *rows]:
        cells = [cell.replace("|", "\\|") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def current(pages: Mapping[str, str]) -> dict[str, str]:
    """Return the pages with up-to-date generated parts, and the pages of all commands."""
    updated = dict(pages) | command_pages()
    for page, name, make_text in BLOCKS:
        pattern = re.compile(_BLOCK.format(name), re.DOTALL)
        matches = list(pattern.finditer(updated[page]))
        if len(matches) != 1:
            n = len(matches)
            msg = f"docs/{page} must have one block <!-- generated: {name} -->; it has {n}"
            raise ValueError(msg)
        start, end = matches[0].end(1), matches[0].start(2)
        updated[page] = f"{updated[page][:start]}\n{make_text()}\n\n{updated[page][end:]}"
    return updated


def read_pages() -> dict[str, str]:
    """Read the pages that have generated parts, and the pages of all commands."""
    names = [page for page, _, _ in BLOCKS]
    names += [f"cli/{path.name}" for path in (DOCS / "cli").glob("*.md")]
    return {page: (DOCS / page).read_text(encoding="utf-8") for page in names}


def main() -> None:
    """Write the pages whose generated parts changed, and delete pages of removed commands."""
    (DOCS / "cli").mkdir(exist_ok=True)
    previous = read_pages()
    for page, text in current(previous).items():
        if text != previous.get(page):
            (DOCS / page).write_text(text, encoding="utf-8")
    for page in previous.keys() - command_pages().keys():
        if page.startswith("cli/"):
            (DOCS / page).unlink()


if __name__ == "__main__":
    main()
