"""Benchmarks and published studies of confidence scores.

This is the distribution ``abstain-bench``. It adds the commands ``abstain benchmark``,
``abstain study`` and ``abstain data`` to `abstain`. Data flows from `abstain_bench.data`,
`abstain_bench.networks` and `abstain_bench.published` through `abstain_bench.runs` (what trains and
stores) to `abstain_bench.results`, `abstain_bench.studies` and `abstain_bench.pages`.
"""

__version__ = "0.1.0"
