"""What rounding does to a softmax: closed cases, the released arithmetic, the published table."""

import numpy as np
import pytest
from scipy.special import softmax

import abstain as ab
from abstain.errors import InputError, MissingInputError
from abstain_bench.studies import study_precision


def of_logits(z, labels):
    return study_precision(ab.Predictions(logits=z, labels=labels)).frame()


def test_a_gap_is_rounded_to_1_where_it_is_below_the_last_digit():
    """1 / (1 + exp(-gap)) is 1 when exp(-gap) is below half of the last digit before 1."""
    gaps = {"16bit": 11 * np.log(2), "32bit": 24 * np.log(2), "64bit": 53 * np.log(2)}
    for precision, edge in gaps.items():
        z = np.array([[edge * 1.1, 0.0], [edge * 0.9, 0.0]])
        result = of_logits(z, [0, 1]).filter(precision=precision)
        assert result["rounded_to_1"].to_list() == [0.5]
    odds = of_logits(z, [0, 1]).filter(precision="log-odds")
    assert odds["AUROC_f"].to_list() == [1.0]


def test_the_numbers_are_those_of_the_released_arithmetic():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 6)) * 7
    labels = np.where(rng.random(400) < 0.8, z.argmax(axis=1), rng.integers(6, size=400))
    result = of_logits(z, labels)
    for precision, kind in (("16bit", np.float16), ("32bit", np.float32), ("64bit", np.float64)):
        p = softmax(z.astype(kind), axis=1)
        assert p.dtype == kind
        wrong = p.argmax(axis=1) != labels
        (row,) = result.filter(precision=precision).rows(named=True)
        assert row["rounded_to_1"] == (p.max(axis=1) == 1).mean()
        assert row["AURC"] == pytest.approx(ab.aurc(p.max(axis=1).astype(float), wrong))
        assert row["accuracy"] == pytest.approx(1 - wrong.mean())


def test_more_bits_round_less_and_the_log_odds_never():
    result = study_precision(n=4000, temperatures=[1.0, 0.25])
    frame = result.frame()
    for name in ("T = 1", "T = 0.25"):
        shares = frame.filter(data=name)["rounded_to_1"].to_list()
        assert shares == sorted(shares, reverse=True)
        assert shares[-1] == 0
    sure = frame.filter(data="T = 0.25")["AURC"].to_list()
    assert sure[0] > sure[1] > sure[3]
    assert result.frame().equals(study_precision(n=4000, temperatures=[1.0, 0.25]).frame())


def test_the_published_table_stands_beside():
    result = study_precision(n=100, temperatures=[1.0]).frame("published")
    assert result.height == 2 * 6 * 3
    assert result["rounded_to_1"].null_count() == 0
    (row,) = result.filter(data="ViT, CIFAR-10", precision="32bit").rows(named=True)
    assert row["rounded_to_1"] == pytest.approx(0.8179)
    assert row["AURC"] == pytest.approx(0.003480)


def test_what_has_no_logits_is_refused():
    p = ab.Predictions(probabilities=[[0.5, 0.5]], labels=[0])
    with pytest.raises(MissingInputError, match="logits and labels"):
        study_precision(p)
    with pytest.raises(InputError, match="largest number of 16 bits"):
        of_logits(np.array([[1e5, 0.0]]), [0])
    half = ab.Predictions(logits=np.array([[2, 0], [0, 1]], np.float16), labels=[0, 0])
    assert "16 bits" in study_precision(half).notes[0]
