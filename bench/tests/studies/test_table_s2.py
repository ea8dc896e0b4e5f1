"""The six scores of table S2, against formulas written out here; two of them are printed wrong."""

import numpy as np
import pytest
from scipy.special import softmax

import abstain as ab
from abstain.confidence import score
from abstain_bench.published import table
from abstain_bench.studies._sources import TABLE_S2_SCORES, SoftmaxNorm, compute_confidence

RNG = np.random.default_rng(7)
Z = RNG.normal(scale=3.0, size=(500, 6))
P = softmax(Z, axis=1)
TOP = np.sort(P, axis=1)[:, ::-1]
#: Cattelan & Silva take the norm of centered logits, with p of 4 where nothing is tuned.
CENTERED = Z - Z.mean(axis=1, keepdims=True)
OUTPUTS = ab.Predictions(logits=Z, labels=RNG.integers(6, size=500))

#: What each row of the table means, by its name there: from class probabilities or logits.
MEANT = {
    "MSP": P.max(axis=1),
    "MaxLogit": Z.max(axis=1),
    "Softmax Margin": TOP[:, 0] - TOP[:, 1],
    "Negative Entropy": (P * np.log(P)).sum(axis=1),
    "MaxLogit-l_p Norm": CENTERED.max(axis=1) / (CENTERED**4).sum(axis=1) ** 0.25,
    "Negative Gini Score": (P**2).sum(axis=1) - 1,
}


def order(values):
    assert np.unique(values).size == values.size
    return np.argsort(values).tolist()


@pytest.mark.parametrize("row", table("population_aurc_table_S2"), ids=lambda row: row["printed"])
def test_a_score_orders_as_the_table_means_it(row):
    result = score(row["method"], OUTPUTS).values
    meant = MEANT[row["printed"]]
    assert order(result) == order(meant)
    if row["method"] in {"mls", "pnorm"}:
        np.testing.assert_allclose(result, meant, rtol=1e-12)


def test_the_table_has_six_scores_and_all_are_meant():
    assert {row["printed"] for row in table("population_aurc_table_S2")} == set(MEANT)


def test_the_norm_that_the_code_takes_is_that_of_the_softmax():
    result = SoftmaxNorm().score(OUTPUTS).values
    np.testing.assert_allclose(np.exp(result), np.sqrt((P**2).sum(axis=1)), rtol=1e-12)
    assert order(result) == order(MEANT["Negative Gini Score"])
    # The studies take what the code does, and the five others of the table.
    methods = {row["method"] for row in table("population_aurc_table_S2")}
    assert set(TABLE_S2_SCORES) == methods - {"pnorm"} | {"l2_norm"}
    assert order(compute_confidence("l2_norm", OUTPUTS).values) == order(result)


def test_the_entropy_of_logits_is_none():
    """Printed is the sum of z log z, with logits z: a negative one has no logarithm."""
    with np.errstate(invalid="ignore"):
        assert np.isnan((Z * np.log(Z)).sum(axis=1)).sum() > 400
    # The released code clamps them into (0, 1), after which confident answers are no higher.
    clamped = np.clip(Z, 1e-9, 1 - 1e-9)
    code = (clamped * np.log(clamped)).sum(axis=1)
    correct = np.corrcoef(np.argsort(np.argsort(code)), np.argsort(np.argsort(MEANT["MSP"])))[0, 1]
    assert abs(correct) < 0.5


def test_the_norm_of_logits_alone_is_no_confidence():
    """Printed is the norm alone: one large negative logit raises it and says nothing."""
    sure, unsure = np.array([[4.0, 0.0, 0.0]]), np.array([[1.0, 0.9, -9.0]])
    assert np.linalg.norm(sure) < np.linalg.norm(unsure)
    result = score(
        "pnorm", ab.Predictions(logits=np.concatenate([sure, unsure]), labels=[0, 0])
    ).values
    assert result[0] > result[1]
