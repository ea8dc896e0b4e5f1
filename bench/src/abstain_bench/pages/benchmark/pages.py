"""The pages of a benchmark: first page, tables of all methods, and one page per study."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from abstain.report import document as doc
from abstain_bench.pages.benchmark.document import benchmark_document, method_sections
from abstain_bench.pages.benchmark.front import front_blocks, summary_sentences
from abstain_bench.pages.benchmark.grids import back
from abstain_bench.pages.benchmark.leaderboard import Leaderboard, kind_title
from abstain_bench.pages.benchmark.studies import study_blocks, study_sentence
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
    full_document = benchmark_document(results, origin)
    methods = replace(
        full_document,
        title=f"{full_document.title}: all methods",
        blocks=lambda: method_sections(board, origin),
    )
    studies = {
        f"pages/{board.anchors[study.name]}.html": _study_page(board, study, full_document, origin)
        for study in results.headline
    }
    return {HOME: _overview_page(board, full_document, origin), METHODS: methods, **studies}


def _overview_page(
    board: Leaderboard, full_document: doc.Document, origin: doc.ReportOptions
) -> doc.Document:
    return replace(
        full_document,
        blocks=lambda: _overview_blocks(board, origin),
        answer=tuple(summary_sentences(board)),
    )


def _study_page(
    board: Leaderboard, study: Study, full_document: doc.Document, origin: doc.ReportOptions
) -> doc.Document:
    def sections() -> Iterator[doc.Block]:
        blocks = (
            back(("glance", "The benchmark"), ("tables", "All methods")),
            *study_blocks(board, study, origin.images),
        )
        yield doc.Section(board.anchors[study.name], "Values, ranks and curves", blocks)

    context = (full_document.title, kind_title(study.kind))
    return doc.Document(study.title, context, sections, answer=(study_sentence(board, study),))


def _overview_blocks(board: Leaderboard, origin: doc.ReportOptions) -> Iterator[doc.Block]:
    """Yield the overview and links to all pages."""
    yield doc.Section("glance", "At a glance", tuple(front_blocks(board, origin.images)))
    links = tuple((board.anchors[s.name], s.title) for s in board.results.headline)
    text = (
        " by every metric, in the order of their mean ranks, with descriptions. Pages of the "
        "sources of failures:"
    )
    introduction = doc.Prose((doc.Span("All methods", link="#tables"), text))
    yield doc.Section("studies", "More", (introduction, doc.Links(links)), nav_title="More")
