"""`import abstain` is light: heavy libraries are imported where they are used."""

import ast
import json
import os
import subprocess
import sys
from importlib import import_module

import pytest
from tests.architecture.source import ABSTAIN_FILES, ROOT

import abstain as ab
from abstain.cli.app import all_commands, complete_application

HEAVY = {
    "altair", "cyclopts", "dask", "jinja2", "matplotlib", "narwhals", "numba", "pandas", "polars",
    "pyarrow", "rich", "sklearn", "torch", "torchmetrics", "vl_convert",
}  # fmt: skip

# Packages that only an extra installs, and the modules that are theirs.
EXTRAS = {
    "dask", "distributed", "lightning_fabric", "mlxtend", "numba", "pandas", "pooch", "pyarrow",
    "torch", "torchmetrics",
}  # fmt: skip
OF_EXTRAS = {"integrations", "streaming", "training"}
# These import numba, and are imported when numba is there.
COMPILED = {"_foundation/compiled.py", "inference/resampling/numba_kernels.py"}


# The parts of SciPy that take as long to load as all the rest.
HEAVY_PARTS = {"scipy.optimize", "scipy.sparse", "scipy.stats"}


# What a table of an evaluation needs nothing of.
WITHOUT_A_PAGE = (
    "abstain.calibration", "abstain.evaluation.calibration", "abstain.evaluation.comparison",
    "abstain.evaluation.rules", "abstain.inference.permutation", "abstain.inference.rank_tests",
    "abstain.report.subjects.comparison", "abstain.report.subjects.rule", "abstain.simulate",
    "abstain.thresholds", "abstain.training", "abstain_bench",
)  # fmt: skip


def modules_after(statement: str) -> set[str]:
    """Names in sys.modules of a new interpreter that ran the statement."""
    code = f"{statement}\nimport json, sys\nprint()\nprint(json.dumps(list(sys.modules)))"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_abstain_loads_nothing_else():
    loaded = modules_after("import abstain")
    assert not loaded & (HEAVY | HEAVY_PARTS | {"numpy", "scipy"})
    assert {name for name in loaded if name.startswith("abstain")} == {"abstain"}


def test_all_public_names_load_nothing_heavy():
    assert not modules_after("from abstain import *") & (HEAVY | {"scipy"})


def names_checked(package: str) -> set[tuple[str, str]]:
    """Module and name of what a checker of types finds imported in a package."""
    path = ROOT.joinpath("src", *package.split("."), "__init__.py")
    results = [n for n in ast.parse(path.read_text("utf-8")).body if isinstance(n, ast.If)]
    return {(n.module or "", alias.name) for n in results[0].body for alias in n.names}


def test_a_name_is_there_under_the_checkers_eye_and_at_work():
    lifted = {(f"abstain.{home}", name) for home, names in ab._REEXPORTED.items() for name in names}
    packages = {("abstain", name) for name in ab._PACKAGES + ab._HEAVY_PACKAGES}
    assert names_checked("abstain") == lifted | packages | {("abstain.metrics", "*")}
    # Somebody may have asked for these, which are then there.
    assert ab.Metric.__module__ == ab.Need.__module__ == "abstain.metrics.entry"
    assert {*ab.__all__} <= {*dir(ab)}
    assert all(hasattr(ab, name) for name in dir(ab))
    offered = {name for name in dir(ab) if not name.startswith("__")}
    assert all(
        name in ab.__all__ or getattr(ab, name).__name__ == f"abstain.{name}" for name in offered
    )


#: What a package imports at once: nothing to wait for, or a module of the same name.
AT_ONCE = {
    "abstain.evaluation": {"Note", "Split", "evaluate"},
    "abstain.inference": {"NonInferiority", "non_inferiority"},
    "abstain.report": {"render"},
    "abstain.tables": {"Split", "split_name"},
}  # fmt: skip


@pytest.mark.parametrize("package", ["abstain.plots", *AT_ONCE])
def test_a_name_that_waits_is_there_under_the_checkers_eye_and_at_work(package):
    waiting, checked = import_module(package), dict(map(reversed, names_checked(package)))
    assert {*waiting.__all__} - AT_ONCE.get(package, set()) == {*checked}
    assert {*waiting.__all__} <= {*dir(waiting)}
    for name, home in checked.items():
        assert getattr(waiting, name) is getattr(import_module(home), name)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = waiting.nothing


def test_help_and_version_load_no_command():
    for option in ("--help", "--version"):
        loaded = modules_after(f"from abstain.cli.main import run\nrun(['{option}'])")
        assert not loaded & ((HEAVY | HEAVY_PARTS | {"numpy", "scipy"}) - {"cyclopts", "rich"})


def test_the_help_of_a_command_loads_nothing_that_reads_or_computes():
    for command in ("evaluate", "list"):
        loaded = modules_after(f"from abstain.cli.main import run\nrun(['{command}', '--help'])")
        assert not loaded & ((HEAVY | HEAVY_PARTS | {"numpy", "scipy"}) - {"cyclopts", "rich"})
    for words in (["compare", "--help"], ["threshold", "--help"], ["list", "metrics"]):
        loaded = modules_after(f"from abstain.cli.main import run\nrun({words})")
        assert not loaded & ((HEAVY | {"scipy"}) - {"cyclopts", "rich"})
        assert not loaded & {"abstain.evaluation", "abstain.report", "abstain.tables"}


def test_a_command_is_listed_with_its_own_words():
    app = complete_application()
    for name, command in all_commands().items():
        own = app[name].help.partition("\n\n")[0]
        assert " ".join(own.split()) == command.help, name


def test_computing_a_metric_loads_nothing_that_draws_or_prints():
    statement = "import abstain; abstain.augrc([0.9, 0.8, 0.7], [0.0, 1.0, 1.0])"
    # numba may serve large inputs; three samples are not worth its start.
    assert not modules_after(statement) & (HEAVY | {"scipy"})


def test_evaluating_a_file_in_the_terminal_loads_what_it_needs(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("confidence,correct\n" + "0.9,1\n0.8,0\n0.7,1\n" * 9, encoding="utf-8")
    loaded = modules_after(
        f"from abstain.cli.main import run\nassert run(['evaluate', {str(path)!r}]) == 0"
    )
    assert not loaded & ((HEAVY | HEAVY_PARTS) - {"cyclopts", "polars", "rich"})
    assert not {name for name in loaded if name.startswith(WITHOUT_A_PAGE)}


def test_a_page_is_written_without_the_libraries_that_draw_figures(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("confidence,correct\n" + "0.9,1\n0.8,0\n0.7,1\n" * 9, encoding="utf-8")
    words = ["evaluate", str(path), "--out", str(tmp_path / "out")]
    loaded = modules_after(f"from abstain.cli.main import run\nassert run({words!r}) == 0")
    assert not loaded & ((HEAVY | HEAVY_PARTS) - {"cyclopts", "jinja2", "polars", "rich"})


def test_the_base_install_can_import_every_module_that_is_not_of_an_extra():
    # The minimal CI job skips doctests of modules that it cannot import; this keeps that honest.
    files = [
        f for f in ABSTAIN_FILES if f.top not in OF_EXTRAS | {"__main__"} and f.name not in COMPILED
    ]
    absent = f"import sys; sys.modules.update(dict.fromkeys({sorted(EXTRAS)}))"
    names = ", ".join(file.module for file in files)
    modules_after(f"{absent}\nimport {names}")
