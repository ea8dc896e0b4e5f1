"""`calibrate`, `calibration_check` and their display: scores that become probabilities."""

import itertools
import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.special import expit, softmax

import abstain as ab
from abstain import calibration
from abstain._foundation.scored import Scored
from abstain.confidence import score
from abstain.errors import DomainError, InputError, MissingInputError, UnknownNameError
from abstain.evaluation.calibration import CALIBRATIONS, calibrate, calibration_check
from abstain.metrics import METRICS, brier, ece, nll
from abstain.plots.calibration import CalibrationDisplay

every_method = pytest.mark.parametrize("method", CALIBRATIONS)


def predictions(seed=0, n=3000, k=4, T=2.0, weight=False):
    rng = np.random.default_rng(seed)
    z = 3 * rng.normal(size=(n, k))
    labels = (softmax(z / T, axis=1).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return ab.Predictions(
        logits=z,
        labels=np.minimum(labels, k - 1),
        weight=rng.integers(0, 3, n).astype(float) if weight else None,
    )


def halves(p):
    return p.subset(slice(0, p.n // 2)), p.subset(slice(p.n // 2, None))


# ------------------------------------------------------------------------------------- the fit


@every_method
def test_what_is_fitted_is_what_the_functions_fit(method):
    p = predictions(weight=True)
    own, loss, w = score("msr", p), ~p.correct, p.weight
    direct = {
        "platt": lambda: calibration.fit_platt(own.values, loss, weight=w),
        "isotonic": lambda: calibration.fit_isotonic(own.values, loss, weight=w),
        "histogram": lambda: calibration.fit_binning(own.probability, loss, weight=w),
        "temperature": lambda: calibration.fit_temperature(p.logits, p.label_codes, weight=w),
    }
    calibrated = calibrate("msr", p, method=method)
    assert calibrated.name == f"msr+{method}"
    assert calibrated.calibration == direct[method]()
    found = calibrated.score(p)
    assert found.name == calibrated.name
    if method == "temperature":
        expected = calibrated.calibration.apply(p.logits).max(axis=1)
        np.testing.assert_allclose(found.probability, expected, rtol=1e-12)
        np.testing.assert_allclose(expit(found.values), expected, rtol=1e-12)
    else:
        x = own.probability if method == "histogram" else own.values
        np.testing.assert_array_equal(found.probability, calibrated.calibration.apply(x))


@every_method
def test_calibration_helps_an_overconfident_model(method):
    fit, test = halves(predictions(n=8000))
    check = calibration_check(calibrate("msr", fit, method=method), test)
    for name in ("ece", "ece_equal_mass", "brier_correct", "nll_correct"):
        number = check.change(name)
        assert number.after < number.before, name
    assert check.change("ece").before > 0.1
    assert check.change("ece").after < 0.03


@pytest.mark.parametrize("name", ["pe", "msr", "energy", "mls", "margin"])
def test_platt_keeps_the_order_of_the_score(name):
    fit, test = halves(predictions())
    own, before = calibrate(name, fit).score(test), score(name, test)
    order = np.argsort(before.values, kind="stable")
    assert (np.diff(before.values[order]) > 0).tolist() == (
        (np.diff(own.values[order]) > 0).tolist()
    )
    np.testing.assert_allclose(expit(own.values), own.probability, rtol=1e-15)
    assert 0 < own.probability.min() < own.probability.max() < 1


def test_log_odds_go_on_where_probabilities_end():
    x = ab.Predictions(confidence=[1e300, 40.0, 39.0, -1e300], loss=[0, 0, 0, 1])
    steep = ab.CalibratedScore("x", "confidence", calibration.Platt(2.0, 0.0, True, 9), "values")
    assert steep.score(x).probability.tolist() == [1, 1, 1, 0]
    assert (np.diff(steep.score(x).values) < 0).all()
    steepest = ab.CalibratedScore("x", "confidence", calibration.Platt(1e30, 0, True, 9), "values")
    assert np.isfinite(steepest.score(x).values).all()


@pytest.mark.parametrize(("base", "method"), [("pe", "platt"), ("energy", "isotonic")])
def test_chow_takes_what_was_calibrated(base, method):
    fit, test = halves(predictions())
    calibrated = calibrate(base, fit, method=method)
    rule = ab.set_threshold(fit, score=calibrated, method="chow", abstention_cost=0.2)
    own = calibrated.score(test)
    np.testing.assert_array_equal(rule.apply(own.values), own.probability >= 0.8)


def test_a_score_that_ranks_the_wrong_way_is_not_turned():
    p = predictions()
    wrong = ab.Predictions(
        confidence={"entropy": -score("pe", p).values}, loss=(~p.correct).astype(float)
    )
    calibrated = calibrate("entropy", wrong)
    assert "not more often correct" in calibrated.note
    auroc = METRICS["failure_auroc"]
    before, after = score("entropy", wrong), calibrated.score(wrong)
    losses = wrong.loss
    assert auroc.compute(Scored(after.values, losses)).value < 0.5
    assert auroc.compute(Scored(after.values, losses)) == auroc.compute(
        Scored(before.values, losses)
    )
    assert ece(after.probability, losses) < 0.05
    assert "not more often correct" in str(calibration_check(calibrated, wrong))


def test_a_probability_column_is_fitted_on_its_log_odds():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    data = ab.Predictions(confidence=expit(2 * np.log(p / (1 - p)) + 1), loss=rng.random(4000) > p)
    calibrated = calibrate("confidence", data)
    assert calibrated.input_kind == "log_odds"
    assert calibrated.calibration.slope == pytest.approx(0.5, abs=0.05)
    assert calibrated.calibration.intercept == pytest.approx(-0.5, abs=0.15)


def test_probabilities_of_exactly_one_do_not_bend_the_curve():
    fit, test = halves(predictions(n=8000))
    stored = [
        ab.Predictions(
            probabilities=softmax(2 * p.logits, axis=1).astype(np.float16), labels=p.labels
        )
        for p in (fit, test)
    ]
    calibrated = calibrate("msr", stored[0])
    assert "probabilities of exactly 0 or 1" in calibrated.note
    assert calibrated.limits[1] < 30
    raw = score("msr", stored[0]).values
    bent = calibration.fit_platt(raw, ~fit.correct).apply(score("msr", stored[1]).values)
    straight = calibration_check(calibrated, stored[1]).change("ece").after
    assert straight < ece(bent, ~test.correct) / 2


def test_fitted_scores_are_calibrated_too():
    class Doubled:
        name = "doubled"

        def score(self, predictions):
            return ab.confidence.ConfidenceScore("doubled", 2 * score("pe", predictions).values)

    fit, test = halves(predictions())
    calibrated = calibrate(Doubled(), fit)
    assert calibrated.name == "doubled+platt"
    np.testing.assert_allclose(
        calibrated.score(test).probability, calibrate("pe", fit).score(test).probability, rtol=1e-6
    )
    with pytest.raises(
        InputError, match=r"'doubled' cannot be written as JSON; save only its `.calibration`"
    ):
        calibrated.to_json()


def test_graded_losses():
    rng = np.random.default_rng(1)
    x = rng.normal(size=4000)
    loss = np.clip(expit(-x) + 0.1 * rng.normal(size=4000), 0, 1)
    data = ab.Predictions(confidence=x, loss=loss)
    for method in ("platt", "isotonic", "histogram"):
        options = {"binning": "equal_mass"} if method == "histogram" else {}
        check = calibration_check(calibrate("confidence", data, method=method, **options), data)
        assert check.change("ece").after < 0.02


@every_method
def test_evaluate_takes_it_as_a_score(method):
    fit, test = halves(predictions())
    calibrated = calibrate("msr", fit, method=method)
    evaluation = ab.evaluate(test, scores=[calibrated], metrics=["ece", "augrc"], interval="none")
    check = calibration_check(calibrated, test)
    assert [r.score for r in evaluation.results] == [calibrated.name] * 2
    for result in evaluation.results:
        assert result.value == pytest.approx(check.change(result.metric.name).after, abs=1e-15)


# ----------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"method": "plat"}, InputError, "`method` must be one of"),
        ({"method": "platt", "bins": 3}, InputError, "no option 'bins'. Its options: `smooth`"),
        ({"method": "histogram", "binnings": "x"}, InputError, "Did you mean 'binning'"),
        ({"method": "temperature", "loss": "zero_one"}, InputError, "`loss` is not used"),
        ({"score": "pe", "method": "temperature"}, InputError, "score 'msr'; got 'pe'"),
        ({"score": "msr@T=2", "method": "temperature"}, InputError, "got 'msr@T=2'"),
        ({"score": "nothing"}, UnknownNameError, "nothing"),
        ({"score": "mcd_msr"}, MissingInputError, "Monte-Carlo"),
        ({"score": "pe", "method": "histogram"}, DomainError, "limits="),
        ({"loss": "cross_entropy"}, DomainError, r"`loss` must lie in \[0, 1\]"),
    ],
)
def test_what_cannot_be_is_refused(arguments, error, words):
    given = {"score": "msr", **arguments}
    with pytest.raises(error, match=words):
        calibrate(given.pop("score"), predictions(n=50), **given)


@pytest.mark.parametrize("given", [5, None, ["msr"], ab.CalibratedScore])
def test_other_things_than_scores_raise_an_error(given):
    with pytest.raises(InputError, match="a score must be a name or a fitted score"):
        calibrate(given, predictions())
    with pytest.raises(InputError, match="`calibrated` must be a result of `calibrate`"):
        calibration_check(given, predictions())


@pytest.mark.parametrize("name", ["", 5])
def test_names_are_texts(name):
    with pytest.raises(InputError, match="`name` must be a text that is not empty"):
        calibrate("msr", predictions(), name=name)


def test_labels_without_a_class_or_a_probability_raise_an_error():
    z = [[1.0, 0.0], [0.0, 2.0]]
    unknown = ab.Predictions(logits=z, labels=[0, 9], unknown_label=9)
    with pytest.raises(DomainError, match="likelihood of an unknown class"):
        calibrate("msr", unknown, method="temperature")
    impossible = ab.Predictions(probabilities=[[1.0, 0.0], [0.5, 0.5]], labels=[1, 0])
    with pytest.raises(DomainError, match=r"must not be 0 for the true class; got 1"):
        calibrate("msr", impossible, method="temperature")


def test_a_score_that_is_no_probability_any_more_raises_an_error():
    fit = ab.Predictions(confidence=[0.9, 0.2, 0.6], loss=[0, 1, 0])
    calibrated = calibrate("confidence", fit)
    with pytest.raises(MissingInputError, match="was a probability in the fit"):
        calibrated.score(ab.Predictions(confidence=[0.9, 2.0], loss=[0, 1]))


# ---------------------------------------------------------------------------------- the check


def test_the_bars_hold_what_19_of_20_right_probabilities_give():
    fit, test = halves(predictions())
    check = calibration_check(calibrate("msr", fit, method="platt"), test)
    curve, tried = check.reliability_after, 0
    for i, n in enumerate(map(int, curve.count)):
        if n == 0:
            assert np.isnan(check.consistent_low[i])
            continue
        p, tried = float(curve.confidence[i]), tried + 1
        chance = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        for end, share in ((check.consistent_low[i], 0.025), (check.consistent_high[i], 0.975)):
            k = round(end * n)
            assert math.fsum(chance[:k]) < share <= math.fsum(chance[: k + 1])
    assert tried > 3


@pytest.mark.parametrize("weight", [False, True])
def test_numbers_equal_those_of_the_catalogue(weight):
    fit, test = halves(predictions(weight=weight))
    calibrated = calibrate("msr", fit, method="temperature")
    check = calibration_check(calibrated, test)
    T = calibrated.calibration.temperature
    loss, w = ~test.correct, test.weight
    for state, p, attribute in (
        (score("msr", test), softmax(test.logits, axis=1), "before"),
        (calibrated.score(test), softmax(test.logits / T, axis=1), "after"),
    ):
        expected = {
            "ece": ece(state.probability, loss, weight=w),
            "ece_equal_mass": ece(state.probability, loss, binning="equal_mass", weight=w),
            "augrc": ab.augrc(state.values, loss, weight=w),
            "nll": nll(p, test.label_codes, weight=w),
            "brier": brier(p, test.label_codes, weight=w),
            # The Brier score of the two answers right and wrong counts the distance twice.
            "brier_correct": brier(
                np.column_stack([state.probability, 1 - state.probability]), loss, weight=w
            )
            / 2,
            "nll_correct": nll(
                np.column_stack([state.probability, 1 - state.probability]), loss, weight=w
            ),
        }
        for name, value in expected.items():
            assert getattr(check.change(name), attribute) == pytest.approx(value, abs=1e-12), name


def test_without_a_probability_before_only_ranks_are_compared():
    fit, test = halves(predictions())
    check = calibration_check(calibrate("pe", fit), test)
    assert np.isnan(check.change("ece").before)
    assert check.change("ece").reason == "before: the score is no probability"
    assert check.change("augrc").before == check.change("augrc").after
    assert check.reliability_before is None
    assert "before" not in str(check)
    with pytest.raises(UnknownNameError, match=r"'ecee'.*Did you mean 'ece'"):
        check.change("ecee")


def test_an_infinite_likelihood_is_said():
    fit = ab.Predictions(confidence=[0.1, 0.2, 0.8, 0.9], loss=[1, 1, 0, 0])
    test = ab.Predictions(confidence=[0.1, 0.9], loss=[0, 1])
    number = calibration_check(calibrate("confidence", fit, method="isotonic"), test).change(
        "nll_correct"
    )
    assert np.isnan(number.after)
    assert number.reason == "after: it is infinite: the outcomes of 2 samples had probability 0"
    same = calibration_check(calibrate("confidence", fit, method="isotonic"), fit)
    assert same.change("nll_correct").after == 0


def test_the_frame_is_a_table_of_numbers():
    fit, test = halves(predictions())
    check = calibration_check(calibrate("pe", fit), test)
    frame = check.frame()
    assert frame["metric"].to_list() == [x.metric for x in check.changes]
    assert frame.filter(frame["metric"] == "ece")["before"].to_list() == [None]
    assert frame["after"].null_count() == 0


def test_few_samples_are_warned_of():
    fit, test = halves(predictions(n=8000))
    calibrated = calibrate("msr", fit)
    assert calibration_check(calibrated, test).note == ""
    assert "Only 100 samples" in calibration_check(calibrated, test.subset(slice(0, 100))).note


def test_the_floor_is_the_mean_error_of_perfect_calibration():
    rng = np.random.default_rng(0)
    p = rng.beta(4, 1, 1500)
    data = ab.Predictions(confidence=p, loss=rng.random(1500) > p)
    check = calibration_check(calibrate("confidence", data), data)
    q = calibrate("confidence", data).score(data).probability
    results = [ece(q, rng.random(1500) > q) for _ in range(200)]
    error = np.std(results) / np.sqrt(200)
    assert check.expected_ece == pytest.approx(
        np.mean(results), abs=0.03 * np.mean(results) + 4 * error
    )


def test_the_bars_hold_95_percent_of_perfect_bins():
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    data = ab.Predictions(confidence=p, loss=rng.random(3000) > p)
    check = calibration_check(calibrate("confidence", data), data)
    q = calibrate("confidence", data).score(data).probability
    inside = []
    for _ in range(100):
        curve = ab.curves.reliability_curve(q, rng.random(3000) > q)
        inside.append(
            (curve.accuracy >= check.consistent_low) & (curve.accuracy <= check.consistent_high)
        )
    assert 0.93 < np.mean(inside) < 0.99


def test_ece_of_torchmetrics():
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")
    fit, test = halves(predictions())
    for method in ("platt", "temperature"):
        calibrated = calibrate("msr", fit, method=method)
        p = torch.tensor(calibrated.score(test).probability)
        theirs = functional.binary_calibration_error(p, torch.tensor(test.correct).int(), n_bins=15)
        ours = calibration_check(calibrated, test).change("ece").after
        assert ours == pytest.approx(float(theirs), abs=1e-9)


@pytest.mark.parametrize("file", ["mnist", "imdb"])
def test_real_probabilities(shared, file):
    path = shared / "data" / "real" / f"{file}_crossval_probabilities.npz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    stored = np.load(path)
    whole = ab.Predictions(probabilities=stored["probabilities"], labels=stored["labels"])
    fit, test = halves(whole.subset(np.random.default_rng(0).permutation(whole.n)))
    made = [("temperature", {}), ("platt", {}), ("isotonic", {}), ("histogram", {})]
    made.append(("histogram", {"binning": "equal_mass"}))
    checks = [calibration_check(calibrate("msr", fit, method=m, **o), test) for m, o in made]
    numbers = [check.change("ece") for check in checks]
    row = [f"{numbers[0].before:.4f}"]
    row += [f"{x.after:.4f} ({c.expected_ece:.4f})" for x, c in zip(numbers, checks, strict=True)]
    page = (Path(__file__).parents[2] / "docs" / "calibration.md").read_text(encoding="utf-8")
    assert f" | {' | '.join(row)} |" in page


# --------------------------------------------------------------------------------- the display


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", ["msr", "pe"])
def test_the_frame_is_what_is_drawn(name):
    fit, test = halves(predictions())
    check = calibration_check(calibrate(name, fit), test)
    display = CalibrationDisplay.from_check(check)
    assert display.plot() is display
    frame = display.frame()
    curves = ["before", "after"] if name == "msr" else ["after"]
    assert frame["score"].unique(maintain_order=True).to_list() == curves
    for curve in curves:
        own = frame.filter(frame["score"] == curve)
        (line,) = [x for x in display.ax_.get_lines() if str(x.get_label()).startswith(curve)]
        assert f"ECE {getattr(check.change('ece'), curve):.4f}" in line.get_label()
        for drawn, column in ((line.get_xdata(), "confidence"), (line.get_ydata(), "accuracy")):
            expected = own[column].cast(float).fill_null(np.nan).to_numpy()
            np.testing.assert_array_equal(np.asarray(drawn, dtype=float), expected)
    after = frame.filter(frame["score"] == "after")
    np.testing.assert_array_equal(
        after["consistent_low"].fill_null(np.nan).to_numpy(), check.consistent_low
    )
    displayed = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert len(displayed) == len(curves) + 1


def test_it_is_saved_and_drawn_on_given_axes(tmp_path):
    fit, test = halves(predictions())
    check = calibration_check(calibrate("msr", fit), test)
    figure, ax = plt.subplots()
    display = CalibrationDisplay.from_check(check).plot(ax, linewidth=3)
    assert display.figure_ is figure
    assert {x.get_linewidth() for x in ax.get_lines() if x.get_gid()} == {3}
    for suffix in ("png", "svg"):
        path = CalibrationDisplay.from_check(check).save(tmp_path / f"a.{suffix}")
        assert path.stat().st_size > 1000
    with pytest.raises(InputError, match="`check` must be what `calibration_check` returned"):
        CalibrationDisplay.from_check(check.reliability_after)


def test_every_method_of_every_binning_can_be_drawn():
    fit, test = halves(predictions(n=200))
    for method, binning in itertools.product(CALIBRATIONS, ("equal_width", "equal_mass")):
        check = calibration_check(calibrate("msr", fit, method=method), test, binning=binning)
        assert len(CalibrationDisplay.from_check(check).plot().frame()) > 2
        plt.close("all")
