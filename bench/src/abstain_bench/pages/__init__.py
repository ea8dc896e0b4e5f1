"""Create the pages and tables that report the results of benchmarks and studies.

This package displays the numbers of `BenchmarkResults` and `StudyResult`; it computes no
statistics. The package `abstain.report` renders the pages.
"""

from typing import TYPE_CHECKING

from abstain._foundation.lazy_imports import lazy_exports

if TYPE_CHECKING:
    from abstain_bench.pages.benchmark.output import benchmark_latex as benchmark_latex
    from abstain_bench.pages.benchmark.output import benchmark_markdown as benchmark_markdown
    from abstain_bench.pages.benchmark.output import benchmark_site as benchmark_site
    from abstain_bench.pages.benchmark.output import benchmark_terminal as benchmark_terminal
    from abstain_bench.pages.benchmark.output import write_tables as write_tables
    from abstain_bench.pages.benchmark.pictures import benchmark_pictures as benchmark_pictures
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        benchmark__output=(
            "benchmark_latex",
            "benchmark_markdown",
            "benchmark_site",
            "benchmark_terminal",
            "write_tables",
        ),
        benchmark__pictures=("benchmark_pictures",),
    )
