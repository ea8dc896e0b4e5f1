"""Benchmarks and published studies of confidence scores.

This is the distribution ``abstain-bench``. It adds the commands ``abstain benchmark``, ``abstain
study`` and ``abstain data`` to `abstain`. Its packages load data (`abstain_bench.data`), define
networks (`abstain_bench.networks`), run benchmarks (`abstain_bench.runs`), evaluate them
(`abstain_bench.results`) and write reports (`abstain_bench.pages`).
"""

__version__ = "0.1.0"
