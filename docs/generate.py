"""Write the generated parts of the documentation: ``python docs/generate.py``.

They stand between ``<!-- generated: NAME -->`` and ``<!-- end -->`` and come from the catalogues,
the functions and the command line, so they cannot tell another story than the code.
``tests/docs/test_generated.py`` fails when the committed pages are not current.
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

#: Samples of which every order is tried for the table of requirements; more give the same table.
REQUIREMENTS_ORDERS = 5

#: The data of the worked table: ten samples, most confident first, the first of them wrong.
WORKED_CONFIDENCE = (0.99, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4)
WORKED_LOSS = (1, 0, 0, 0, 1, 0, 0, 1, 0, 1)

#: What `benchmarks/many_rows.py` measures.
_MEASURED = {
    "one_pass": "`one_pass`: AUGRC, both AURC, their 95 % intervals",
    "two_passes": "two passes: AUGRC, plug-in AURC, their intervals",
    "histogram": "`init`: the three with limits",
    "duckdb": "DuckDB: counts of each confidence, AUGRC and AURC of them",
    "polars": "polars, streaming engine: the same",
}

#: What no stream of confidences and losses has.
OF_CLASSES = {Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES, Need.UNKNOWN_CLASSES}

_LINK = re.compile(r"https://[^\s,;]+")
_BLOCK = r"(<!-- generated: {} -->\n).*?(<!-- end -->)"


def metrics_table() -> str:
    """One row for each metric of the catalogue."""
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
    head = ("metric", "function", "range", "better", "needs", "source")
    return _table(head, rows)


def numbers_table() -> str:
    """One row for each family of metrics that takes numbers."""
    rows = [(f"`{made.name}`", made.title) for f in FAMILIES if (made := f.parse(f.example_name))]
    return _table(("for example", "is the"), rows)


def states_table() -> str:
    """One row for each metric of confidences and losses: which states of a stream have it."""
    batch = [0.9, 0.8, 0.7, 0.6, 0.5], [0, 1, 0, 0, 1]
    first = streaming.update(streaming.first_pass(), *batch)
    second = streaming.update(streaming.second_pass(first), *batch)
    in_blocks = {*RANK_ONLY_WEIGHTS, trapezoid_weight}

    def counted(name: str) -> bool:
        try:
            streaming.compute(second, name)
        except UncountedError:
            return False
        return True

    rows = [
        (f"`{m.name}`", "yes", *("yes" if x else "" for x in has))
        for m in METRICS.values()
        if not m.measurement.needs & OF_CLASSES
        for has in [
            (
                counted(m.name),
                m.measurement.rank_weight in in_blocks,
                m.measurement.binned is not None,
            )
        ]
    ]
    return _table(
        (
            "metric",
            "`one_pass`; `sorted_runs` that fit in memory",
            "two passes",
            "`sorted_runs` that do not",
            "`init`, with limits",
        ),
        rows,
    )


def rows_table() -> str:
    """One row for each measurement of `benchmarks/many_rows.py`."""
    kept = DOCS.parent / "benchmarks" / "many_rows.json"
    rows = [
        (
            _MEASURED[found["name"]],
            f"10^{len(str(found['rows'])) - 1}",
            f"{found['seconds']:.0f}",
            f"{found['cpu'] / found['rows'] * 1e9:.0f}",
            f"{found['ratio_seconds']:.1f}",
            f"{found['ratio_cpu']:.1f}",
            f"{found['peak'] / 1e9:.2f}",
            f"{found['load']:.0f}",
        )
        for found in json.loads(kept.read_text(encoding="utf-8"))
    ]
    head = (
        "what",
        "rows",
        "seconds",
        "processor, ns a row",
        "readings, by the clock",
        "readings, by the processor",
        "peak, GB",
        "load",
    )
    return _table(head, rows)


def scores_table() -> str:
    """One row for each built-in score."""
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
    head = ("score", "name", "function", "unit", "temperature", "needs", "source")
    return _table(head, rows)


def losses_table() -> str:
    """One row for each named loss."""
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
    """What each program prints for the worked data, and the same number from ours."""
    n = len(WORKED_LOSS)
    first, risk = WORKED_LOSS[0], sum(WORKED_LOSS) / n
    aurc = ab.aurc(WORKED_CONFIDENCE, WORKED_LOSS)
    augrc = ab.augrc(WORKED_CONFIDENCE, WORKED_LOSS)
    without_first = aurc - first / n
    plugin = aurc - (first - risk) / (2 * n)
    by_place = sum(loss / place for place, loss in enumerate(WORKED_LOSS, start=1)) / n
    ours = {
        ("AURC", "fd-shifts"): ("1000 A", 1000 * aurc),
        ("AURC", "fd-shifts-legacy"): ("1000 (A - f/n)", 1000 * without_first),
        ("AURC", "plugin"): ("P = A - (f - R)/(2n)", plugin),
        ("AURC", "geifman"): ("P - D + R/n", plugin - by_place + risk / n),
        ("AURC", "cwsa"): ("A - f/n", without_first),
        ("AURC", "torch-uncertainty"): ("(A - f/n) / (1 - 1/n)", without_first / (1 - 1 / n)),
        ("AUGRC", "fd-shifts"): ("1000 G", 1000 * augrc),
        ("AUGRC", "torch-uncertainty"): (
            "(G - f/(2n²)) / (1 - 1/n)",
            (augrc - first / (2 * n**2)) / (1 - 1 / n),
        ),
    }
    published = {"AURC": ab.published_aurc, "AUGRC": ab.published_augrc}
    rows = [
        (
            f"`published_{area.lower()}(..., convention='{program}')`",
            f"{published[area](WORKED_CONFIDENCE, WORKED_LOSS, convention=program):.10f}",
            f"`{formula}`",
            f"{value:.10f}",
        )
        for (area, program), (formula, value) in ours.items()
    ]
    return _table(("function", "prints", "from ours", "value"), rows)


def families_table() -> str:
    """One row for each typeface of the glyphs."""
    said = {"train": "training", "unseen": "unseen", "style": "unseen style"}
    rows = [(f.name, f.style, said[f.role], f.license, f"`{f.package}`") for f in glyph_families()]
    return _table(("typeface", "style", "role", "license", "package"), rows)


def studies_table() -> str:
    """One row for each study, with the page that is about it."""
    rows = [
        (
            f"[`{s.name}`](studies/{s.name}.md)",
            s.question,
            linked(s.source),
        )
        for s in STUDIES.values()
    ]
    return _table(("study", "its question", "source"), rows)


@cache
def requirements_table() -> str:
    """One row for each metric over all thresholds, with what is found of R1 to R5."""
    known = [
        judge_metric(metric, REQUIREMENTS_ORDERS)
        for metric in METRICS.values()
        if is_in_scope(metric)
    ]
    rows = [
        (
            f"`{row['metric']}`",
            *("yes" if row[reading.column] else "no" for reading in READINGS.values()),
            str(row["the_paper"]),
        )
        for row in summary_rows(known)
    ]
    head = ("metric", *(r.column for r in READINGS.values()), "breaks, says the paper")
    return _table(head, rows)


#: Page, name of the block, what goes into it.
BLOCKS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("metrics.md", "metrics", metrics_table),
    ("metrics.md", "numbers", numbers_table),
    ("scores.md", "scores", scores_table),
    ("conventions.md", "losses", losses_table),
    ("conventions.md", "conversions", conversions_table),
    ("glyphs.md", "families", families_table),
    ("studies.md", "studies", studies_table),
    ("choosing-a-metric.md", "requirements", requirements_table),
    ("cli.md", "commands", command_table),
    ("streaming.md", "states", states_table),
    ("streaming.md", "rows", rows_table),
)


def anchor(name: str, headings: list[str]) -> str:
    """Return the anchor of the heading that names a metric; those at a number share one.

    GitHub and MyST derive it from the heading in the same way.
    """
    base = re.compile(rf"`{re.escape(name.partition('@')[0])}[`@]")
    found = [heading for heading in headings if base.search(heading)]
    if len(found) != 1:
        msg = f"docs/metrics.md must have one heading for {name!r}; it has {len(found)}"
        raise ValueError(msg)
    return re.sub(r"[^\w\- ]", "", found[0].lower()).replace(" ", "-")


def linked(source: str) -> str:
    """Turn addresses into short links, the rest into plain text."""
    return _LINK.sub(lambda m: f"[{_short(m[0])}]({m[0]})", source)


def _short(address: str) -> str:
    host, _, path = address.removeprefix("https://").partition("/")
    if host == "arxiv.org":
        return "arXiv:" + path.removeprefix("abs/")
    return "DOI" if host == "doi.org" else host


def _needs(needs: Iterable[str]) -> str:
    return ", ".join(sorted(need.removeprefix("needs ") for need in needs))


def _bound(value: float) -> str:
    return f"{value:g}".replace("inf", "∞").replace("-", "−")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in lines)


def current(pages: Mapping[str, str]) -> dict[str, str]:
    """Return the pages with up-to-date generated parts, and the pages of all commands."""
    out = dict(pages) | command_pages()
    for page, name, make in BLOCKS:
        text = f"\n{make()}\n\n"
        pattern = re.compile(_BLOCK.format(name), re.DOTALL)
        out[page], found = pattern.subn(lambda m, text=text: m[1] + text + m[2], out[page])
        if found != 1:
            msg = f"docs/{page} must have one block <!-- generated: {name} -->; it has {found}"
            raise ValueError(msg)
    return out


def read_pages() -> dict[str, str]:
    """Read the pages that have generated parts, and the pages of all commands."""
    names = [page for page, _, _ in BLOCKS]
    names += [f"cli/{path.name}" for path in (DOCS / "cli").glob("*.md")]
    return {page: (DOCS / page).read_text(encoding="utf-8") for page in names}


def main() -> None:
    """Write the pages whose generated parts changed, and delete pages of removed commands."""
    (DOCS / "cli").mkdir(exist_ok=True)
    before = read_pages()
    after = current(before)
    for page, text in after.items():
        if text != before.get(page):
            (DOCS / page).write_text(text, encoding="utf-8")
    for page in before.keys() - command_pages().keys():
        if page.startswith("cli/"):
            (DOCS / page).unlink()


if __name__ == "__main__":
    main()
