"""Three worked cases with the numbers that other programs print for them.

Values from the shared conformance file; here so that a checkout by itself is tested against them.
Those of Geifman et al. and of FD-Shifts' old code were printed by the released functions; where
confidences tie, with their sorts made stable.
"""

import numpy as np
import pytest

import abstain as ab

TIED = {
    "confidence": [
        0.3,
        0.5,
        0.3,
        0.3,
        0.0,
        0.9,
        1.0,
        0.9,
        0.5,
        0.2,
        0.4,
        0.4,
        0.9,
        0.2,
        0.4,
        0.1,
        0.8,
        0.9,
        0.1,
        0.2,
    ],
    "loss": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    "labels": [2, 1, 1, 1, 0, 2, 2, 1, 0, 0, 0, 2, 2, 0, 2, 0, 1, 0, 1, 1],
    "expected": {
        "fdshifts_aurc": 0.03581490490933216,
        "fdshifts_legacy_aurc": 0.03172149122807018,
        "geifman_aurc": 0.033159399724802203,
        "fdshifts_augrc": 0.030000000000000006,
        "fdshifts_eaurc": 0.03063936900137558,
        "fdshifts_eaugrc": 0.025000000000000005,
        "fdshifts_aurc_achievable": 0.02693103324097973,
        "fdshifts_aurc_optimal": 0.00517553590795658,
        "fdshifts_augrc_optimal": 0.005000000000000001,
        "fdshifts_aurc_ba": 0.034523809523809526,
        "fdshifts_augrc_ba": 0.03154761904761904,
        "fdshifts_selective_risk@50cov": [0.55, 0.0, 0.4],
        "fdshifts_selective_risk@80cov": [1.0, 0.1, 0.0],
        "fdshifts_selective_risk@95cov": [1.0, 0.1, 0.0],
        "fdshifts_coverage@1risk": [0.55, 0.0, 0.4],
        "fdshifts_coverage@5risk": [0.55, 0.0, 0.4],
        "fdshifts_coverage@10risk": [1.0, 0.1, 0.0],
        "failure_auroc": 0.7222222222222223,
        "failure_ap_success": 0.9617401346503514,
        "failure_ap_error": 0.19444444444444442,
    },
}

DISTINCT = {
    "confidence": [
        2.3372847678123083,
        1.9459596383390416,
        0.9444351067382015,
        1.807936456205148,
        1.772889689661652,
        4.261020064481514,
        1.4476963060659487,
        -0.9932621896365215,
        -0.3336182799024128,
        -1.0612379658313633,
        2.824700472126996,
        0.6081342478794636,
        1.8030730738683851,
        1.5143023033462157,
        2.0103472260528235,
        -0.6805498945891881,
        2.0045461503682973,
        0.4316456709673592,
        0.6995685900489761,
        1.4606489977240171,
    ],
    "loss": [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0],
    "labels": [1, 0, 2, 0, 0, 0, 0, 2, 1, 2, 0, 1, 0, 2, 1, 0, 1, 1, 0, 2],
    "expected": {
        "fdshifts_aurc": 0.09894868783607175,
        "fdshifts_legacy_aurc": 0.09894868783607175,
        "geifman_aurc": 0.10205648797367065,
        "fdshifts_augrc": 0.07875,
        "fdshifts_eaurc": 0.028957583296166822,
        "fdshifts_eaugrc": 0.01750000000000001,
        "fdshifts_aurc_achievable": 0.08638280934144385,
        "fdshifts_aurc_optimal": 0.06999110453990492,
        "fdshifts_augrc_optimal": 0.06124999999999999,
        "fdshifts_aurc_ba": 0.12513227513227512,
        "fdshifts_augrc_ba": 0.08425925925925927,
        "fdshifts_selective_risk@50cov": [0.55, 0.09090909090909091, 1.4606489977240171],
        "fdshifts_selective_risk@80cov": [0.8, 0.1875, 0.4316456709673592],
        "fdshifts_selective_risk@95cov": [0.95, 0.3157894736842105, -0.9932621896365215],
        "fdshifts_coverage@1risk": [0.45, 0.0, 1.772889689661652],
        "fdshifts_coverage@5risk": [0.45, 0.0, 1.772889689661652],
        "fdshifts_coverage@10risk": [0.55, 0.09090909090909091, 1.4606489977240171],
        "aurc_plugin": 0.10769868783607177,
        "aurc_log": 0.10439101221846607,
        "sele": 0.0875,
        "tu_aurc": 0.10415651351165447,
        "tu_augrc": 0.08289473684210527,
        "failure_auroc": 0.9230769230769231,
        "failure_ap_success": 0.9599272522349445,
        "failure_ap_error": 0.9004329004329004,
    },
}

GRADED = {
    "confidence": [0.7, 0.4, 1.0, 0.3, 0.8],
    "loss": [
        1.9578537296062184,
        1.5846376566949163,
        0.019736236751509945,
        0.19602627406761414,
        1.0143385023514124,
    ],
    "labels": None,
    "expected": {
        "fdshifts_aurc": 0.6330703971093246,
        "fdshifts_legacy_aurc": 0.6291231497590222,
        "geifman_aurc": 0.5944747040458322,
        "fdshifts_augrc": 0.4403440707881387,
        "fdshifts_eaurc": 0.2873777593078839,
        "fdshifts_eaugrc": 0.17367868557444033,
        "fdshifts_aurc_achievable": 0.65083139803666,
        "fdshifts_aurc_optimal": 0.34569263780144066,
        "fdshifts_augrc_optimal": 0.26666538521369837,
        "fdshifts_selective_risk@50cov": [1.0, 0.9545184798943342, 0.3],
        "fdshifts_selective_risk@80cov": [1.0, 0.9545184798943342, 0.3],
        "fdshifts_selective_risk@95cov": [1.0, 0.9545184798943342, 0.3],
        "fdshifts_coverage@5risk": [0.2, 0.019736236751510594, 1.0],
        "fdshifts_coverage@10risk": [0.2, 0.019736236751510594, 1.0],
        "aurc_plugin": 0.7265486214236067,
        "aurc_log": 0.6370126439017669,
        "sele": 0.535795918777572,
        "tu_aurc": 0.7864039371987777,
        "tu_augrc": 0.5499366825663854,
    },
}


@pytest.mark.parametrize("case", [TIED, DISTINCT, GRADED], ids=["tied", "distinct", "graded"])
def test_worked_case(case: dict) -> None:
    c, loss, expected = np.array(case["confidence"]), np.array(case["loss"]), case["expected"]
    got = {
        "fdshifts_aurc": ab.published_aurc(c, loss, convention="fd-shifts") / 1000,
        "fdshifts_legacy_aurc": ab.published_aurc(c, loss, convention="fd-shifts-legacy") / 1000,
        "geifman_aurc": ab.published_aurc(c, loss, convention="geifman"),
        "fdshifts_augrc": ab.published_augrc(c, loss, convention="fd-shifts") / 1000,
        "fdshifts_aurc_achievable": ab.published_achievable_aurc(c, loss) / 1000,
        "fdshifts_eaugrc": ab.excess_augrc(c, loss),
        "aurc_plugin": ab.aurc(c, loss, estimator="plugin"),
        "aurc_log": ab.aurc(c, loss, estimator="log"),
        "sele": ab.aurc(c, loss, estimator="sele"),
        "tu_aurc": ab.published_aurc(c, loss, convention="torch-uncertainty"),
        "tu_augrc": ab.published_augrc(c, loss, convention="torch-uncertainty"),
    }
    if case is not GRADED:
        got |= {
            "fdshifts_eaurc": ab.published_e_aurc(c, loss) / 1000,
            "fdshifts_aurc_ba": ab.balanced_aurc(c, loss, case["labels"]),
            "fdshifts_augrc_ba": ab.balanced_augrc(c, loss, case["labels"]),
            "failure_auroc": ab.failure_auroc(c, loss),
            "failure_ap_success": ab.failure_ap_success(c, loss),
            "failure_ap_error": ab.failure_ap_error(c, loss),
        }
    shared = got.keys() & expected.keys()
    assert len(shared) >= 4
    for key in shared:
        assert got[key] == pytest.approx(expected[key], abs=1e-9), key


@pytest.mark.parametrize("case", [TIED, DISTINCT], ids=["tied", "distinct"])
def test_worked_working_points(case: dict) -> None:
    c, loss, expected = case["confidence"], case["loss"], case["expected"]
    for name, option in (("selective_risk", "coverage"), ("coverage", "max_risk")):
        for key in [key for key in expected if key.startswith(f"fdshifts_{name}@")]:
            percent = float(key.split("@")[1].rstrip("covrisk"))
            point = ab.working_point(c, loss, **{option: percent / 100})
            got = [point.coverage, point.selective_risk, point.threshold]
            assert got == pytest.approx(expected[key], abs=1e-9), key
