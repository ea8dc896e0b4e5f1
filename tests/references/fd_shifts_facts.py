"""The values that FD-Shifts computes for random predictions, stored because FD-Shifts is on no package index.

`python -m tests.references.fd_shifts_facts CHECKOUT` computes them again with the program in CHECKOUT
(https://github.com/IML-DKFZ/fd-shifts) and writes `fd_shifts_facts.json`; it needs loguru. The stored values come from commit
c4467aec134e99691359da209f811d91283fc1e3. Only its files with metrics are imported; the package itself needs
libraries that cannot be installed beside NumPy 2.
"""

import ast
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from tests.references.random_predictions import draw_graded_losses, draw_predictions

PATH = Path(__file__).with_suffix(".json")
SEEDS = range(6)


def key(seed, *, tied):
    return f"seed {seed}, {'tied' if tied else 'distinct'}"


def load():
    return json.loads(PATH.read_text(encoding="utf-8"))


def compute_values(module, analysis_source, d):
    """Compute every metric of FD-Shifts for one set of predictions."""
    cache = module.StatsCache(d.c, d.correct, 20, d.labels)
    names = [name for name in module._metric_funcs if name != "*" and "CI95" not in name]
    values = {name: module.get_metric_function(name)(cache) for name in names}
    values |= _performance_values(analysis_source, d)
    values["aurc_achievable"] = cache.aurc_achievable
    values["risk@80cov"] = 100 * cache.selective_risks[cache.coverages >= 0.8].min()
    return {name: float(value) for name, value in values.items()}


def compute_graded_values(module, seed):
    """Compute the excess areas of FD-Shifts for losses between 0 and 1."""
    d = draw_predictions(seed)

    class GradedLosses(module.RiskCoverageStatsMixin):
        confids, residuals, labels = d.c, draw_graded_losses(seed, d), d.labels

    theirs = GradedLosses()
    return {"e-aurc": float(theirs.eaurc), "e-augrc": float(theirs.eaugrc)}


def _performance_values(analysis_source, d):
    """Run the method of FD-Shifts' class `Analysis` without importing its module."""
    name = "_compute_performance_metrics"
    [method] = [
        node
        for node in ast.walk(ast.parse(analysis_source))
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    namespace = {"np": np}
    exec(compile(ast.unparse(method), "analysis", "exec"), namespace)
    analysis = SimpleNamespace(
        num_classes=4,
        study_name="iid_study",
        query_performance_metrics=["accuracy", "b-accuracy", "nll", "brier_score"],
    )
    return namespace[name](analysis, d.probabilities, d.labels, d.correct)


def main(checkout):
    from loguru import logger
    from tests.references.import_files import import_files

    # FD-Shifts was written for NumPy 1, which had two more names.
    vars(np).update(trapz=np.trapezoid, infty=np.inf)
    sys.path.insert(0, str(checkout))
    modules = ["fd_shifts.analysis.metrics", "fd_shifts.analysis.rc_stats"]
    module, graded_module = import_files(modules, {"logger": logger})
    source = Path(module.__file__).with_name("__init__.py").read_text(encoding="utf-8")
    values = {
        key(seed, tied=tied): compute_values(module, source, draw_predictions(seed, tied=tied))
        for seed in SEEDS
        for tied in (False, True)
    }
    for seed in SEEDS:
        values[f"seed {seed}, graded losses"] = compute_graded_values(graded_module, seed)
    PATH.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
