"""The catalogue of methods, and the edges that all of them share."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thresholds.cases import DTYPES, agrees, cases

from abstain import thresholds
from abstain.errors import DomainError, InputError, MissingInputError, UnknownNameError
from abstain.evaluation import check_rule
from abstain.report import threshold_html
from abstain.thresholds import RULES, DecisionRule, Rule

OPTIONS = {
    "coverage": {"coverage": 0.5},
    "risk": {"max_risk": 0.2},
    "cost": {"abstention_cost": 0.2},
    "chow": {"abstention_cost": 0.2},
    "sgr": {"max_risk": 0.3, "delta": 0.1},
    "learn_then_test": {"max_risk": 0.3, "delta": 0.1},
    "conformal_risk_control": {"max_risk": 0.2},
    "coverage_guarantee": {"coverage": 0.5, "delta": 0.1},
}
GUARANTEED = [name for name, entry in RULES.items() if entry.guarantee != "none"]


@pytest.mark.parametrize("name", RULES)
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_row_order_does_not_matter(name, case, seed):
    confidence, loss = case
    order = np.random.default_rng(seed).permutation(loss.size)
    one = thresholds.fit(name, confidence, loss, **OPTIONS[name])
    assert thresholds.fit(name, confidence[order], loss[order], **OPTIONS[name]) == one


def test_the_catalogue_is_complete():
    assert set(RULES) == set(OPTIONS)
    for name, entry in RULES.items():
        rule = thresholds.fit(name, np.linspace(1, 0, 99), np.zeros(99), **OPTIONS[name])
        assert rule.method == name
        assert (rule.guarantee == "none") == (entry.guarantee == "none")
        assert set(entry.required) == set(OPTIONS[name])
        assert set(entry.required) <= set(entry.options)


def test_fit_says_what_is_missing_or_unknown():
    with pytest.raises(UnknownNameError, match="'sgr'"):
        thresholds.fit("sgrr", [1], [0], max_risk=0.1, delta=0.1)
    with pytest.raises(MissingInputError, match="`delta`"):
        thresholds.fit("sgr", [1], [0], max_risk=0.1)
    with pytest.raises(MissingInputError, match="`loss`"):
        thresholds.fit("risk", [1], max_risk=0.1)
    with pytest.raises(MissingInputError, match="`confidence`"):
        thresholds.fit("coverage", coverage=0.1)
    with pytest.raises(InputError, match=r"takes no `risk_max`; it needs `max_risk`"):
        thresholds.fit("risk", [1], [0], risk_max=0.1)
    assert thresholds.fit("chow", abstention_cost=0.5, score="msr").score == "msr"


@pytest.mark.parametrize("name", GUARANTEED)
def test_guarantees_refuse_weights(name):
    with pytest.raises(InputError, match=r"`weight` .* independent samples"):
        thresholds.fit(name, [1, 2], [0, 1], weight=[1, 1], **OPTIONS[name])


@pytest.mark.parametrize("name", ["sgr", "learn_then_test"])
def test_all_wrong_is_unattainable(name):
    confidence = np.linspace(0, 1, 500)
    rule = thresholds.fit(name, confidence, np.ones(500), **OPTIONS[name])
    assert not rule.attainable
    assert rule.reason
    assert (rule.accepted, rule.coverage, rule.risk, rule.bound) == (0, 0.0, None, None)
    assert not rule.apply(confidence).any()


def test_all_wrong_can_keep_a_generalized_risk_but_not_with_one_tie_group():
    confidence, options = np.linspace(0, 1, 500), OPTIONS["conformal_risk_control"]
    rule = thresholds.conformal_risk_control(confidence, np.ones(500), **options)
    assert rule.accepted == 99
    rule = thresholds.conformal_risk_control(np.ones(500), np.ones(500), **options)
    assert not rule.attainable
    assert "most confident" in rule.reason


@pytest.mark.parametrize("name", GUARANTEED)
def test_one_sample_is_unattainable_and_says_how_many_it_takes(name):
    options = OPTIONS[name]
    rule = thresholds.fit(name, [0.9], [0], **options)
    assert not rule.attainable
    requirement = re.split("takes|requires", rule.reason)[1].split("accepted")[0]
    needed = int("".join(c for c in requirement if c.isdigit()))
    many = thresholds.fit(name, np.linspace(0, 1, needed), np.zeros(needed), **options)
    fewer = thresholds.fit(name, np.linspace(0, 1, needed - 1), np.zeros(needed - 1), **options)
    assert many.attainable
    assert not fewer.attainable


@pytest.mark.parametrize("tiny", [5e-16, 1e-17, 1e-300, 1e-320])
@pytest.mark.parametrize("name", ["sgr", "learn_then_test", "conformal_risk_control"])
def test_a_risk_next_to_zero_is_unattainable(name, tiny):
    rule = thresholds.fit(name, [0.9, 0.8], [0, 0], **(OPTIONS[name] | {"max_risk": tiny}))
    assert not rule.attainable
    assert "more than 1e15" in rule.reason


def test_losses_with_a_gradient_are_no_obstacle():
    """As those on a device, they stay with their library elsewhere."""
    torch = pytest.importorskip("torch")
    confidence, loss = torch.linspace(1, 0, 200), (torch.arange(200) > 150).double()
    held = loss.clone().requires_grad_()
    for name, options in OPTIONS.items():
        one = thresholds.fit(name, confidence.requires_grad_(), held, **options)
        assert one == thresholds.fit(name, confidence.detach(), loss, **options), name


@pytest.mark.parametrize("name", ["sgr", "learn_then_test", "coverage_guarantee"])
def test_a_tiny_delta_is_unattainable(name):
    options = OPTIONS[name] | {"delta": 1e-300}
    rule = thresholds.fit(name, np.linspace(0, 1, 500), np.zeros(500), **options)
    assert not rule.attainable
    assert "1e-300" in rule.reason


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("sgr", {"max_risk": 0}, "`max_risk`"),
        ("sgr", {"max_risk": 1}, "`max_risk`"),
        ("sgr", {"delta": 0}, "`delta`"),
        ("sgr", {"delta": 5}, "`delta`"),
        ("sgr", {"search": "fast"}, "`search`"),
        ("learn_then_test", {"risk": "both"}, "`risk`"),
        ("learn_then_test", {"starts": [0.0]}, "`starts`"),
        ("learn_then_test", {"starts": []}, "`starts`"),
        ("learn_then_test", {"thresholds": [float("nan")]}, "`thresholds`"),
        ("conformal_risk_control", {"max_risk": 0}, "`max_risk`"),
        ("conformal_risk_control", {"max_loss": 0.5}, "`loss`"),
        ("coverage_guarantee", {"coverage": 1.0}, "`coverage`"),
        ("coverage", {"coverage": 0.0}, "`coverage`"),
        ("coverage", {"coverage": 1.5}, "`coverage`"),
        ("risk", {"max_risk": -1}, "`max_risk`"),
        ("cost", {"abstention_cost": -1}, "`abstention_cost`"),
        ("chow", {"abstention_cost": 2}, "`abstention_cost`"),
    ],
)
def test_bad_options_raise_an_error_by_name(name, change, error):
    with pytest.raises(InputError, match=error):
        thresholds.fit(name, [0.5, 0.6], [0, 1], **(OPTIONS[name] | change))


def test_losses_outside_the_method_raise_an_error():
    with pytest.raises(DomainError, match="0 or 1 for sgr"):
        thresholds.sgr([0.5, 0.6], [0, 0.5], max_risk=0.1, delta=0.1)
    with pytest.raises(DomainError, match=r"`loss` must lie in \[0, 1\]"):
        thresholds.learn_then_test([0.5, 0.6], [0, 2], max_risk=0.1, delta=0.1)
    with pytest.raises(DomainError, match="`loss`"):
        thresholds.for_risk([0.5, 0.6], [0, float("nan")], max_risk=0.1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_half_of_all_at_one_value_is_one_step(dtype):
    """A mass point at the top, as saturated softmax gives: accepted whole or not at all."""
    confidence = np.concatenate([np.ones(500), np.linspace(0, 0.9, 500)]).astype(dtype)
    loss = np.concatenate([np.arange(500) < 5, np.arange(500) % 2])
    for search in ("sequences", "binary"):
        rule = thresholds.sgr(confidence, loss, max_risk=0.05, delta=0.05, search=search)
        assert rule.accepted >= 500
        assert agrees(rule, confidence, loss)
    worse = np.concatenate([np.arange(500) < 50, np.zeros(500)]).astype(int)
    rule = thresholds.sgr(confidence, worse, max_risk=0.05, delta=0.05)
    assert rule.accepted in {0, *range(501, 1001)}


def test_a_walk_that_ends_at_its_start_accepts_all_above_the_next_value():
    confidence = np.repeat(np.array([0.9, 0.5], dtype=np.float16), 200)
    loss = np.repeat([0, 1], 200)
    rule = thresholds.learn_then_test(confidence, loss, max_risk=0.1, delta=0.05, starts=[0.5])
    assert 0.5 < rule.threshold <= 0.9
    assert agrees(rule, confidence, loss)
    assert rule.accepted == 200


def test_any_array_goes_in():
    torch = pytest.importorskip("torch")
    confidence, loss = torch.linspace(1, 0, 300), (torch.arange(300) > 250).int()
    for name, options in OPTIONS.items():
        first = thresholds.fit(name, confidence, loss, **options)
        second = thresholds.fit(name, confidence.numpy(), loss.numpy(), **options)
        assert first == second


@pytest.fixture
def half():
    """Register a method of the user's: one function and one entry; return the entry."""

    def halve(confidence, loss, *, max_risk, weight=None):
        """Be twice as strict as the method "risk"."""
        chosen = thresholds.for_risk(confidence, loss, max_risk=max_risk / 2, weight=weight)
        return replace(chosen, method="half", target=max_risk)

    yield RULES.add(
        Rule("half", "Half", halve, "Twice as strict.", "ours", target_quantity="selective risk")
    )
    RULES._entries.pop("half")


def test_a_method_is_known_everywhere_by_its_entry(half):
    rule = thresholds.fit("half", [0.9, 0.8, 0.7, 0.6], [0, 0, 1, 0], max_risk=0.6, score="msr")
    assert (rule.threshold, rule.risk, rule.quantity) == (0.6, 0.25, "selective risk")
    assert DecisionRule.from_json(rule.to_json()) == rule
    (check, *_) = thresholds.check_many(rule, {"later": ([0.9, 0.5], [1, 0])})
    assert check.excess == pytest.approx(0.4)
    page = threshold_html(check_rule(rule, {}))
    assert "Half" in page
    assert "On the calibration data, at most 60% of the answers are wrong" in page


def test_a_method_guarantees_what_its_entry_says(half):
    with pytest.raises(DomainError, match="a guarantee of 'half'"):
        DecisionRule("half", 0.5, "coverage", target=0.5, delta=0.1, bound=0.6)


def test_a_rule_of_no_known_method_raises_an_error():
    with pytest.raises(InputError, match=r"`method` .* 'sgr', .*'given'; got 'half'"):
        DecisionRule("half", 0.5)
