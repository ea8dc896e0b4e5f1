"""Docstrings of public names have a summary, and those of functions parameters and returns."""

import inspect
from importlib import import_module

import pytest

from abstain._foundation.lazy_imports import is_installed

numpydoc_validate = pytest.importorskip("numpydoc.validate")

MODULES = (
    "abstain",
    "abstain_bench.data",
    "abstain_bench.data.corruptions",
    "abstain_bench.data.fetching",
    "abstain_bench.data.published",
    "abstain_bench.results",
    "abstain.calibration",
    "abstain.confidence",
    "abstain.curves",
    "abstain.evaluation",
    "abstain.integrations.sklearn",
    "abstain.metrics",
    "abstain.plots",
    "abstain.predictions",
    "abstain_bench.published",
    "abstain.report",
    "abstain.shift",
    "abstain.simulate",
    "abstain.streaming",
    "abstain_bench.studies",
    "abstain.tables",
    "abstain.thresholds",
)
if is_installed("torch"):
    MODULES += ("abstain.training",)
if is_installed("torchmetrics"):
    MODULES += ("abstain.integrations.torchmetrics",)
# GL08 no docstring; SS no summary, no capital, no full stop; PR02 documents what is not there.
EVERYTHING = {"GL08", "SS01", "SS02", "SS03", "PR02"}
# PR01, PR03 a parameter undocumented, out of order; PR07, RT03 without a description; RT01 no
# Returns.
FUNCTIONS = EVERYTHING | {"PR01", "PR03", "PR07", "RT01", "RT03"}


def public_names(module_name: str) -> list[str]:
    """Functions and classes that the module offers and abstain defines, by their public name."""
    module = import_module(module_name)
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    objects = [(name, getattr(module, name)) for name in names]
    return [
        f"{module_name}.{name}"
        for name, item in objects
        if (inspect.isroutine(item) or inspect.isclass(item))
        and item.__module__.startswith("abstain")
    ]


#: What the pages use of modules of abstain-bench that are internal otherwise.
BENCH_NAMES = {
    "abstain_bench.runs.importing.add_scores", "abstain_bench.runs.methods.score_all",
    "abstain_bench.runs.studies.studies_of", "abstain_bench.runs.specification.default_config",
    "abstain_bench.runs.specification.read_config",
}  # fmt: skip
NAMES = sorted(BENCH_NAMES | {name for module in MODULES for name in public_names(module)})


@pytest.mark.parametrize("name", NAMES)
def test_docstring_is_complete(name):
    result = numpydoc_validate.validate(name)
    module, _, attribute = name.rpartition(".")
    is_function = inspect.isroutine(getattr(import_module(module), attribute))
    codes = FUNCTIONS if is_function else EVERYTHING
    assert not [f"{code} {text}" for code, text in result["errors"] if code in codes]


@pytest.mark.parametrize("module_name", MODULES)
def test_all_names_exist_once(module_name):
    module = import_module(module_name)
    names = list(module.__all__)
    assert len(names) == len(set(names))
    assert all(hasattr(module, name) for name in names)
