"""The catalogue: names, needs, direction, own columns, temperatures."""

import pickle

import numpy as np
import pytest
from scipy.special import expit

from abstain import confidence
from abstain.confidence import SCORES, applicable, find_score, score
from abstain.errors import DomainError, InputError, MissingInputError, UnknownNameError
from abstain.predictions import Predictions, softmax

Z = np.random.default_rng(4).normal(size=(30, 5)) * 3
LABELS = np.zeros(30, int)
DETERMINISTIC = [
    "msr", "mls", "pe", "margin", "logit_margin", "gini", "gen", "energy", "pnorm",
]  # fmt: skip
SAMPLED = ["mcd_msr", "mcd_mls", "mcd_pe", "mcd_ee", "mcd_mi", "mcd_sv", "mcd_waic"]


def probabilities(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def everything():
    return Predictions(logits=Z, logit_samples=np.stack([Z, Z[:, ::-1] / 9], axis=1), labels=LABELS)


def test_the_catalogue():
    assert list(SCORES) == DETERMINISTIC + SAMPLED
    for entry in SCORES.values():
        assert entry.title
        assert entry.meaning
        assert entry.source
        assert entry.needs


@pytest.mark.parametrize("name", DETERMINISTIC + SAMPLED)
def test_every_score_is_finite_float64_and_leaves_its_input(name):
    p = everything()
    result = score(name, p)
    assert result.name == name
    assert result.values.shape == (30,)
    assert result.values.dtype == np.float64
    assert np.isfinite(result.values).all()
    assert np.array_equal(p.logits, Z)
    assert pickle.loads(pickle.dumps(SCORES[name])).name == name


@pytest.mark.parametrize("name", DETERMINISTIC + SAMPLED)
def test_sharper_is_never_less_confident(name):
    """Row 0 is sharp and its samples agree; row 1 is softer, or its samples disagree."""
    sharp, soft = [6.0, 0.0, 0.0], [1.0, 0.5, 0.4]
    samples = [[sharp, [6.1, 0.0, 0.0]], [soft, [0.2, 1.5, 0.1]]]
    p = Predictions(logits=[sharp, soft], logit_samples=samples, labels=[0, 0])
    values = score(name, p).values
    assert values[0] > values[1]


@pytest.mark.parametrize(
    "name", ["msr", "pe", "margin", "logit_margin", "gini", "gen", "mcd_msr", "mcd_pe", "mcd_ee"]
)
def test_sharpening_a_softmax_raises_confidence(name):
    z = np.repeat(Z, 2, axis=0).reshape(30, 2, 5)
    values = [
        score(name, Predictions(logits=c * Z, logit_samples=c * z, labels=LABELS)).values
        for c in (0.5, 1.0, 2.0)
    ]
    assert (values[0] < values[1]).all()
    assert (values[1] < values[2]).all()


def test_functions_and_names_agree():
    p = everything()
    pairs = {
        "msr": confidence.max_softmax_response(Z),
        "mls": confidence.max_logit(Z),
        "pe": confidence.negative_predictive_entropy(Z),
        "margin": confidence.probability_margin(Z),
        "logit_margin": confidence.logit_margin(Z),
        "gini": confidence.negative_gini(Z),
        "gen": confidence.negative_generalized_entropy(Z),
        "energy": confidence.negative_energy(Z),
        "pnorm": confidence.normalized_max_logit(Z),
        "mcd_msr": confidence.mean_softmax_response(p.logit_samples),
        "mcd_mls": confidence.mean_max_logit(p.logit_samples),
        "mcd_pe": confidence.negative_entropy_of_mean(p.logit_samples),
        "mcd_ee": confidence.negative_expected_entropy(p.logit_samples),
        "mcd_mi": confidence.negative_mutual_information(p.logit_samples),
        "mcd_sv": confidence.negative_softmax_deviation(p.logit_samples),
        "mcd_waic": confidence.penalized_softmax_response(p.logit_samples),
    }
    assert pairs.keys() == SCORES.keys()
    for name, values in pairs.items():
        assert np.array_equal(score(name, p).values, values), name


def test_only_the_softmax_responses_are_probabilities():
    p = everything()
    for name in SCORES:
        result = score(name, p)
        if name in {"msr", "mcd_msr"}:
            np.testing.assert_array_equal(result.probability, expit(result.values))
        else:
            assert result.probability is None
    np.testing.assert_allclose(score("msr", p).probability, probabilities(Z).max(1), rtol=1e-13)


def test_applicable():
    assert applicable(everything()) == tuple(DETERMINISTIC + SAMPLED)
    from_p = Predictions(probabilities=probabilities(Z), labels=LABELS)
    assert applicable(from_p) == ("msr", "pe", "margin", "logit_margin", "gini", "gen")
    sampled = Predictions(probability_samples=probabilities(Z)[:, None].repeat(2, 1), labels=LABELS)
    assert applicable(sampled) == (
        "msr", "pe", "margin", "logit_margin", "gini", "gen", "mcd_msr", "mcd_pe", "mcd_ee", "mcd_mi", "mcd_sv",
        "mcd_waic",
    )  # fmt: skip
    np.testing.assert_allclose(score("msr", sampled).values, score("mcd_msr", sampled).values)
    own = Predictions(prediction=[0], labels=[0], confidence={"b": [1], "a": [2]})
    assert applicable(own) == ("b", "a")


def test_own_columns_pass_through():
    inside, outside = np.linspace(0, 1, 30), np.linspace(-3, 3, 30)
    p = Predictions(logits=Z, labels=LABELS, confidence={"mine": inside, "margin": outside})
    result = score("mine", p)
    assert (result.name, result.values.tolist()) == ("mine", inside.tolist())
    assert result.probability is result.values
    # An own column hides the built-in score of its name.
    assert score("margin", p).values.tolist() == outside.tolist()
    assert score("margin", p).probability is None
    assert applicable(p).count("margin") == 1
    with pytest.raises(InputError, match="confidence column 'mine' has no temperature"):
        score("mine", p, temperature=2)


@pytest.mark.parametrize("name", ["msr", "pe", "margin", "gini", "gen", "energy"])
def test_temperatures(name):
    p = everything()
    spelled = score(f"{name}@T=2.5", p)
    given = score(name, p, temperature=2.5)
    assert spelled.name == given.name == f"{name}@T=2.5"
    assert np.array_equal(spelled.values, given.values)
    factor = 2.5 if name == "energy" else 1.0
    cooled = score(name, Predictions(logits=Z / 2.5, labels=LABELS)).values
    np.testing.assert_allclose(given.values, factor * cooled, rtol=1e-12)
    assert np.array_equal(score(f"{name}@T=1", p).values, score(name, p).values)
    assert pickle.loads(pickle.dumps(find_score(f"{name}@T=2.5"))).name == f"{name}@T=2.5"


def test_refusals():
    p = Predictions(probabilities=probabilities(Z), labels=LABELS)
    with pytest.raises(UnknownNameError, match=r"no score named 'mrs'. Did you mean 'msr'\?"):
        score("mrs", p)
    with pytest.raises(
        MissingInputError, match=r"'energy' needs logits; these .* allow 'msr', 'pe'"
    ):
        score("energy", p)
    with pytest.raises(MissingInputError, match="'mcd_mi' needs Monte-Carlo samples"):
        score("mcd_mi", p)
    with pytest.raises(MissingInputError, match=r"'msr' needs .*; these predictions allow none"):
        score("msr", Predictions(prediction=[0], labels=[0]))
    with pytest.raises(InputError, match="'mls' has no temperature"):
        score("mls@T=2", everything())
    with pytest.raises(InputError, match="set twice: by the name 'msr@T=2' and as 3"):
        score("msr@T=2", p, temperature=3)
    with pytest.raises(InputError, match="`temperature` must be a number; got 'hot'"):
        score("msr@T=hot", p)
    with pytest.raises(DomainError, match=r"`temperature` must be above 0; got -1.0"):
        score("msr", p, temperature=-1)


def test_blocks_change_nothing(monkeypatch):
    whole = {name: score(name, everything()).values for name in SCORES}
    monkeypatch.setattr(softmax, "BLOCK_ENTRIES", 21)
    for name, values in whole.items():
        np.testing.assert_array_equal(score(name, everything()).values, values)
