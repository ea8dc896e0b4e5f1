"""Compare abstain with the values that other programs compute for the same inputs."""

import json
from typing import Any

import numpy as np
import pytest
from tests.references.conformance import CASES, PATH

import abstain as ab

FD = 1000.0


def _fd_optimal(c: np.ndarray, loss: np.ndarray) -> float:
    if np.isin(loss, (0, 1)).all():
        return (
            ab.published_aurc(c, loss, convention="fd-shifts") - ab.published_e_aurc(c, loss)
        ) / FD
    oracle = np.argsort(np.argsort(-loss, kind="stable"))
    return ab.aurc(oracle, loss)


def _point(c: np.ndarray, loss: np.ndarray, **at: float) -> list[float]:
    point = ab.working_point(c, loss, **at)
    return [point.coverage, point.selective_risk, point.threshold]


WITHOUT_LABELS: dict[str, Any] = {
    "fdshifts_aurc": lambda c, x: ab.published_aurc(c, x, convention="fd-shifts") / FD,
    "fdshifts_augrc": lambda c, x: ab.published_augrc(c, x, convention="fd-shifts") / FD,
    "fdshifts_aurc_optimal": _fd_optimal,
    "fdshifts_augrc_optimal": lambda c, x: ab.augrc(c, x) - ab.excess_augrc(c, x),
    "fdshifts_eaurc": lambda c, x: ab.aurc(c, x) - _fd_optimal(c, x),
    "fdshifts_eaugrc": ab.excess_augrc,
    "fdshifts_aurc_achievable": lambda c, x: ab.published_achievable_aurc(c, x) / FD,
    "fdshifts_selective_risk@50cov": lambda c, x: _point(c, x, coverage=0.50),
    "fdshifts_selective_risk@80cov": lambda c, x: _point(c, x, coverage=0.80),
    "fdshifts_selective_risk@95cov": lambda c, x: _point(c, x, coverage=0.95),
    "fdshifts_coverage@1risk": lambda c, x: _point(c, x, max_risk=0.01),
    "fdshifts_coverage@5risk": lambda c, x: _point(c, x, max_risk=0.05),
    "fdshifts_coverage@10risk": lambda c, x: _point(c, x, max_risk=0.10),
    "aurc_plugin": lambda c, x: ab.aurc(c, x, estimator="plugin"),
    "aurc_log": lambda c, x: ab.aurc(c, x, estimator="log"),
    "sele": lambda c, x: ab.aurc(c, x, estimator="sele"),
    "tu_aurc": lambda c, x: ab.published_aurc(c, x, convention="torch-uncertainty"),
    "tu_augrc": lambda c, x: ab.published_augrc(c, x, convention="torch-uncertainty"),
    "failure_auroc": ab.failure_auroc,
    "failure_ap_success": ab.failure_ap_success,
    "failure_ap_error": ab.failure_ap_error,
}
WITH_LABELS: dict[str, Any] = {
    "fdshifts_aurc_ba": ab.balanced_aurc,
    "fdshifts_augrc_ba": ab.balanced_augrc,
}


@pytest.mark.parametrize("key", [*WITHOUT_LABELS, *WITH_LABELS])
def test_conformance(key: str) -> None:
    met = 0
    for case in CASES:
        if key not in case["expected"]:
            continue
        columns = [np.array(case["confidence"]), np.array(case["loss"])]
        if key in WITH_LABELS:
            got = WITH_LABELS[key](*columns, np.array(case["labels"]))
        else:
            got = WITHOUT_LABELS[key](*columns)
        assert got == pytest.approx(case["expected"][key], abs=1e-9), (case["name"], key)
        met += 1
    assert met > 0


def test_the_stored_cases_equal_those_of_the_shared_file(shared) -> None:
    text = (shared / "conformance" / PATH.name).read_text(encoding="utf-8")
    assert json.loads(text) == CASES


def test_every_key_of_the_file_is_tested() -> None:
    keys = {key for case in CASES for key in case["expected"]}
    assert keys == {*WITHOUT_LABELS, *WITH_LABELS}


def test_an_unattainable_risk_is_absent_there_and_an_error_here() -> None:
    met = 0
    for case in CASES:
        for risk in (1, 5, 10):
            if f"fdshifts_coverage@{risk}risk" not in case["expected"]:
                c, x = np.array(case["confidence"]), np.array(case["loss"])
                assert ab.coverage_at_risk(c, x, max_risk=risk / 100) == 0
                with pytest.raises(ab.errors.InputError, match="no threshold has a selective risk"):
                    ab.working_point(c, x, max_risk=risk / 100)
                met += 1
    assert met > 0


def test_the_weights_by_hand_give_the_values_of_the_file() -> None:
    met = 0
    for case in CASES:
        c, x = np.array(case["confidence"]), np.array(case["loss"])
        order = np.argsort(c, kind="stable")
        _, group = np.unique(c[order], return_inverse=True)
        for key, estimator in (("aurc_plugin", "plugin"), ("aurc_log", "log"), ("sele", "sele")):
            if key not in case["expected"]:
                continue
            weights = ab.metrics.rank_weights(c.size, estimator)
            tied = (np.bincount(group, weights) / np.bincount(group))[group]
            expected = case["expected"][key]
            assert tied @ x[order] / c.size == pytest.approx(expected, abs=1e-9), (case, key)
            met += 1
        if "sele" in case["expected"]:
            two_sele = ab.aurc(c, x, estimator="2sele")
            assert two_sele == pytest.approx(2 * case["expected"]["sele"], abs=1e-9)
    assert met >= 30
