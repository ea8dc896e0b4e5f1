"""`import abstain` is light: heavy libraries are imported where they are used."""

import ast
import json
import os
import subprocess
import sys

from tests.house.modules import module_name
from tests.house.source import FILES, ROOT

import abstain as ab
from abstain.cli.app import COMMANDS, application

HEAVY = {
    "altair", "cyclopts", "dask", "jinja2", "matplotlib", "narwhals", "numba", "pandas", "polars",
    "pyarrow", "rich", "sklearn", "torch", "torchmetrics", "vl_convert",
}  # fmt: skip

# Packages that only an extra installs, and the modules that are theirs.
EXTRAS = {
    "dask", "distributed", "lightning_fabric", "mlxtend", "numba", "pandas", "pooch", "pyarrow",
    "torch", "torchmetrics",
}  # fmt: skip
OF_EXTRAS = {"benchmark", "integrations", "streaming", "studies", "training"}
# These import numba, and are imported when numba is there.
COMPILED = {"_foundation/compiled.py", "inference/resampling/compiled.py"}


# The parts of SciPy that take as long to load as all the rest.
HEAVY_PARTS = {"scipy.optimize", "scipy.sparse", "scipy.stats"}


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


def test_a_name_is_there_under_the_checkers_eye_and_at_work():
    statements = ast.parse((ROOT / "src" / "abstain" / "__init__.py").read_text("utf-8")).body
    checked = next(node for node in statements if isinstance(node, ast.If))
    seen = {(n.module or "", alias.name) for n in checked.body for alias in n.names}
    lifted = {(f"abstain.{home}", name) for home, names in ab._LIFTED.items() for name in names}
    packages = {("abstain", name) for name in ab._PACKAGES + ab._HEAVY}
    assert seen == lifted | packages | {("abstain.metrics", "*")}
    assert {*ab.__all__} <= {*dir(ab)}
    assert all(hasattr(ab, name) for name in dir(ab))


def test_help_and_version_load_no_command():
    for option in ("--help", "--version"):
        loaded = modules_after(f"from abstain.cli.main import run\nrun(['{option}'])")
        assert not loaded & ((HEAVY | HEAVY_PARTS | {"numpy", "scipy"}) - {"cyclopts", "rich"})


def test_a_command_is_listed_with_its_own_words():
    app = application(list(COMMANDS))
    for name, said in COMMANDS.items():
        own = app[name].help.partition("\n\n")[0]
        assert " ".join(own.split()) == said, name


def test_computing_a_metric_loads_nothing_that_draws_or_prints():
    statement = "import abstain; abstain.augrc([0.9, 0.8, 0.7], [0.0, 1.0, 1.0])"
    # numba may serve large inputs; three samples are not worth its start.
    assert not modules_after(statement) & (HEAVY | {"scipy"})


def test_the_base_install_can_import_every_module_that_is_not_of_an_extra():
    # The minimal CI job skips doctests of modules that it cannot import; this keeps that honest.
    files = [f for f in FILES if f.top not in OF_EXTRAS | {"__main__"} and f.name not in COMPILED]
    absent = f"import sys; sys.modules.update(dict.fromkeys({sorted(EXTRAS)}))"
    names = ", ".join(module_name(file) for file in files)
    modules_after(f"{absent}\nimport {names}")
