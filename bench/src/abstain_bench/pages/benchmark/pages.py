"""The pages of a benchmark: first page, tables of all methods, and one page per study."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from abstain.report import document as doc
from abstain_bench.pages.benchmark.document import benchmark_document, compared
from abstain_bench.pages.benchmark.front import first_words, front_blocks
from abstain_bench.pages.benchmark.grids import back
from abstain_bench.pages.benchmark.leaderboard import Leaderboard, kind_title
from abstain_bench.pages.benchmark.studies import said_of, study_blocks
from abstain_bench.results import BenchmarkResults
from abstain_bench.runs.studies import Study

#: Addresses of the first page and of the page with all methods.
HOME: Final = "benchmark.html"
METHODS: Final = "pages/methods.html"


def benchmark_pages(
    results: BenchmarkResults, origin: doc.ReportOptions
) -> dict[str, doc.Document]:
    """Return the pages by their addresses, relative to the folder of the first page."""
    board = Leaderboard(results)
    whole = benchmark_document(results, origin)
    methods = replace(
        whole,
        title=f"{whole.title}: all methods",
        blocks=lambda: compared(board, origin),
    )
    studies = {
        f"pages/{board.places[study.name]}.html": _of_study(board, study, whole, origin)
        for study in results.headline
    }
    return {HOME: _first(board, whole, origin), METHODS: methods, **studies}


def _first(board: Leaderboard, whole: doc.Document, origin: doc.ReportOptions) -> doc.Document:
    first, *others = first_words(board)
    return replace(
        whole,
        blocks=lambda: _front(board, whole, origin),
        verdict=(doc.Span(first, "strong"), *others),
        facts=(),
        findings=(),
    )


def _of_study(
    board: Leaderboard, study: Study, whole: doc.Document, origin: doc.ReportOptions
) -> doc.Document:
    def sections() -> Iterator[doc.Block]:
        blocks = (
            back(("glance", "The benchmark"), ("tables", "All methods")),
            *study_blocks(board, study, origin.images),
        )
        yield doc.Section(board.places[study.name], "Values, ranks and curves", blocks)

    eyebrow = f"{whole.title}: {kind_title(study.kind)}"
    said = (said_of(board, study),)
    return doc.Document(study.title, eyebrow, sections, verdict=said)


def _front(
    board: Leaderboard, whole: doc.Document, origin: doc.ReportOptions
) -> Iterator[doc.Block]:
    """Yield the overview, links to all pages, warnings and facts."""
    yield doc.Section("glance", "At a glance", tuple(front_blocks(board, origin.images)))
    places = tuple((board.places[s.name], s.title) for s in board.results.headline)
    more = (
        " by every metric, in the order of their mean ranks, with descriptions. Pages of the "
        "sources of failures:"
    )
    words = doc.Prose((doc.Span("All methods", link="#tables"), more))
    yield doc.Section("studies", "More", (words, doc.Links(places)), nav_title="More")
    if whole.findings:
        known = (doc.Findings(whole.findings),)
        yield doc.Section("warnings", "Before you trust the numbers", known, nav_title="Warnings")
    yield doc.Section("facts", "Configuration", (doc.Facts(whole.facts),), nav_title=None)
    yield doc.reproduce_section(origin.command)
