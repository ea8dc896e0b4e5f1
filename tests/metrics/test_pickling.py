"""Metrics of the catalogue are pickled by name, also for another process."""

import copy
import pickle
import subprocess
import sys
from dataclasses import replace

import pytest

from abstain.metrics import METRICS, Metric
from abstain.metrics.entry import Measurement


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_of_the_catalogue_is_pickled_by_name(name):
    metric = METRICS[name]
    assert pickle.loads(pickle.dumps(metric)) is metric
    assert copy.deepcopy(metric) is metric


def test_a_new_process_loads_it():
    content = pickle.dumps(METRICS["augrc"])
    code = f"import pickle; print(pickle.loads({content!r}).title)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == METRICS["augrc"].title


def test_a_changed_metric_is_not_taken_for_that_of_the_catalogue():
    identity = replace(METRICS["accuracy"].identity, meaning="another")
    changed = pickle.loads(pickle.dumps(Metric(identity, Measurement(len))))
    assert changed.identity.meaning == "another"
