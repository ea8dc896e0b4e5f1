"""Who is timed: each turns a case into a call that computes from arrays in memory to a number.

What a contender needs in its own form (tensors, class labels) is prepared outside the clock.
An absent one raises `AbsentError` with the reason, and its column stays empty.
"""

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cases import Case

Call = Callable[[], float]


class AbsentError(Exception):
    """A contender cannot be imported, or does not take this kind of data."""


def abstain(case: Case) -> list[Call]:
    """AURC and AUGRC together, validation included."""
    from abstain.metrics.areas.pair import risk_coverage_areas

    confidence = _brain_tensor(case) if case.format == "bfloat16" else case.confidence
    return [lambda: risk_coverage_areas(confidence, case.loss).augrc]


def abstain_compiled(case: Case) -> list[Call]:
    """With the kernels of numba."""
    if importlib.util.find_spec("numba") is None:
        msg = "numba is not installed"
        raise AbsentError(msg)
    return abstain(case)


def torch_uncertainty(case: Case) -> list[Call]:
    """AUGRC alone: a new metric, update, compute; class probabilities of shape (n, 1) and (n, 2).

    Both shapes are timed and the faster one counts.
    """
    torch = _torch()
    metric = _augrc()
    confidence = torch.from_numpy(case.confidence)
    if case.format == "bfloat16":
        confidence = confidence.to(torch.bfloat16)
    wrong = torch.from_numpy(case.loss.astype(np.int64))
    inputs = (
        (confidence[:, None].contiguous(), wrong),
        (torch.stack([1 - confidence, confidence], dim=1), 1 - wrong),
    )
    return [lambda given=given: _updated(metric, *given) for given in inputs]


def scikit_learn(case: Case) -> list[Call]:
    """Failure AUROC: another number, but the same sort and no better treatment of ties."""
    try:
        from sklearn.metrics import roc_auc_score
    except ImportError as error:
        raise AbsentError(str(error)) from error

    right = ~case.loss
    confidence = np.asarray(case.confidence, dtype=np.result_type(case.confidence, np.float32))
    return [lambda: float(roc_auc_score(right, confidence))]


#: Column -> (what prepares its calls, the value of ABSTAIN_NO_NUMBA while it runs).
CONTENDERS = {
    "abstain (numba)": (abstain_compiled, "0"),
    "abstain (NumPy)": (abstain, "1"),
    "torch-uncertainty": (torch_uncertainty, "0"),
    "scikit-learn": (scikit_learn, "0"),
}


def prepare(name: str, case: Case) -> list[Call]:
    """Build the calls of a contender, and compile or import what it needs on a first call."""
    maker, no_numba = CONTENDERS[name]
    os.environ["ABSTAIN_NO_NUMBA"] = no_numba
    calls = maker(case)
    calls[0]()
    return calls


def choose(name: str) -> None:
    """Set the environment a contender runs in."""
    os.environ["ABSTAIN_NO_NUMBA"] = CONTENDERS[name][1]


def _updated(metric: Callable[[], object], probabilities: object, target: object) -> float:
    state = metric()
    state.update(probabilities, target)
    return float(state.compute())


def _torch():
    try:
        import torch
    except ImportError as error:
        raise AbsentError(str(error)) from error
    return torch


def _brain_tensor(case: Case):
    torch = _torch()
    return torch.from_numpy(case.confidence).to(torch.bfloat16)


def _augrc():
    """Return the metric class of torch-uncertainty.

    The package imports lightning and torchvision; where those are missing, the one file with
    the metric is loaded by itself.
    """
    spec = importlib.util.find_spec("torch_uncertainty")
    if spec is None:
        msg = "torch-uncertainty is not installed"
        raise AbsentError(msg)
    name = "torch_uncertainty_risk_coverage"
    if name not in sys.modules:
        folder = Path(spec.submodule_search_locations[0])
        path = folder / "metrics" / "classification" / "risk_coverage.py"
        alone = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(alone)
        try:
            alone.loader.exec_module(module)
        except ImportError as error:
            raise AbsentError(str(error)) from error
        sys.modules[name] = module
    return sys.modules[name].AUGRC
