"""Several files as several models: mean and deviation over them, as in the paper's figure 4."""

import numpy as np
import pytest

import abstain as ab
from abstain_bench.studies import (
    study_convergence,
    study_estimators,
    study_population_forms,
    study_posterior,
)

NAMES = ("a", "b", "c")


def outputs(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=120)
    return ab.Predictions(logits=1.5 * np.eye(3)[labels] + rng.normal(size=(120, 3)), labels=labels)


MODELS = {name: outputs(seed) for seed, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def result():
    return study_estimators(
        MODELS, populations=["beta-scores"], scores=["msr"], sizes=[8, 32], repeats=60
    )


def test_mean_and_deviation_are_those_of_the_models(result):
    rows = result.frame()
    over = result.frame("over-models")
    # Only files are models.
    assert set(over["models"]) == {3}
    assert over.height == 2 * 7 * 2
    for line in over.iter_rows(named=True):
        same = {name: line[name] for name in ("loss", "score", "estimator", "n")}
        mine = rows.filter(**same).filter(rows.filter(**same)["data"].is_in(NAMES))
        for name, values in (
            ("mae", mine["mae"]),
            ("abs_bias", mine["bias"].abs()),
            ("rmse", mine["mse"].sqrt()),
            ("truth", mine["truth"]),
        ):
            assert line[name] == pytest.approx(np.mean(values.to_numpy()))
            assert line[f"{name}_sd"] == pytest.approx(np.std(values.to_numpy(), ddof=1))


def test_a_figure_and_a_sentence_for_each_loss(result):
    figure = result.figures["models"]
    assert figure.panels == [
        f"{loss}, {what}" for what in ("MAE", "|bias|") for loss in ("0/1 error", "cross-entropy")
    ]
    assert "AUGRC (vs AUGRC)" not in figure.names
    said = [s for s in result.verdict if s.startswith("Over 3 models")]
    assert len(said) == 2
    line = result.frame("over-models").filter(
        loss="zero_one", estimator="plugin", n=32
    ).row(0, named=True)  # fmt: skip
    assert f"plug-in {line_at(result, 8)['mae']:.3g} to {line['mae']:.3g} ±" in said[0]


def line_at(result, n):
    over = result.frame("over-models")
    return over.filter(loss="zero_one", estimator="plugin", n=n).row(0, named=True)


def test_one_model_has_no_mean_over_models():
    one = study_estimators(MODELS["a"], scores=["msr"], sizes=[8], repeats=20)
    assert "over-models" not in one.tables
    assert "models" not in one.figures
    populations = study_estimators(
        populations=["beta-scores", "two-gaussians"], sizes=[8], repeats=20
    )
    assert "over-models" not in populations.tables


def test_other_studies_of_files_average_over_models():
    few = {"scores": ["msr"], "losses": ["zero_one"]}
    rates = study_convergence(MODELS, **few, sizes=[8, 16, 32], repeats=30)
    slopes = rates.frame("rates").filter(estimator="plugin")["slope"]
    line = rates.frame("over-models").filter(estimator="plugin").row(0, named=True)
    assert (line["models"], line["slope"]) == (3, pytest.approx(slopes.mean()))
    forms = study_population_forms(MODELS, **few)
    (line,) = forms.rows("over-models")
    assert line["AURC_p_sd"] == pytest.approx(forms.frame()["AURC_p"].std())
    rng = np.random.default_rng(0)
    drawn = {
        name: ab.Predictions(
            logit_samples=rng.normal(size=(40, 4, 3)), labels=rng.integers(3, size=40)
        )
        for name in NAMES
    }
    posterior = study_posterior(drawn, metrics=["augrc"], repeats=4)
    (line,) = posterior.rows("over-models")
    assert line["expectation"] == pytest.approx(
        posterior.frame("expectations")["expectation"].mean()
    )
