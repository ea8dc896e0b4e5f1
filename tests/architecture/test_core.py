"""The evaluation needs no benchmark: only what is registered as an extension imports it."""

import re

from tests.architecture.source import ROOT

SOURCE = ROOT / "src" / "abstain"
#: Packages and modules that will be the distribution abstain-bench.
BENCH = (
    "benchmark",
    "studies",
    "published",
    "cli/benchmark",
    "cli/study",
    "cli/bench.py",
    "cli/data.py",
    "cli/job_lines.py",
    "report/subjects/benchmark",
    "report/subjects/study.py",
)
#: Modules that only offer public names of the benchmark, and import them when they are used.
LAZY = {"__init__.py", "report/__init__.py"}
IMPORT = re.compile(r"^\s*(?:from|import) abstain\.(?:benchmark|studies|published)\b", re.MULTILINE)


def test_nothing_else_imports_the_benchmark():
    importing = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if IMPORT.search(path.read_text(encoding="utf-8"))
    }
    assert not {name for name in importing - LAZY if not name.startswith(BENCH)}
