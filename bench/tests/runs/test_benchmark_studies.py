"""Studies: what they are called, which images they are about, and what is a failure there."""

import numpy as np
import pytest
from bench.tests.runs.made_store import exposures_of

from abstain.errors import InputError
from abstain_bench.runs.store import ExposureFacts, RunScores
from abstain_bench.runs.studies import Study, concatenate_scores, studies_of, study_loss


def scores(key, n, *, new=False, places=None, averaged=True, methods=("m",), seed=0):
    rng = np.random.default_rng((seed, n))
    labels = np.full(n, -1) if new else rng.integers(0, 3, n)
    return RunScores(
        key,
        labels,
        np.arange(n) if places is None else places,
        rng.integers(0, 3, n),
        rng.integers(0, 3, n) if averaged else None,
        {name: rng.normal(size=n) for name in methods},
    )


def test_the_columns_of_the_tables():
    studies = {study.name: study for study in studies_of(exposures_of((1, 3)))}
    assert list(studies) == [
        "iid",
        "corruption",
        "corruption-1",
        "corruption-3",
        "corruption-pooled",
        "unseen",
        "digits",
        "digits-kept",
        "digits-scod",
        "digits-outlier",
        "textures",
        "textures-kept",
        "textures-scod",
        "textures-outlier",
    ]
    assert [name for name, study in studies.items() if study.headline] == [
        "iid",
        "corruption",
        "unseen",
        "digits",
        "textures",
    ]
    assert set(studies["corruption"].exposures) == {
        f"corruption-{name}-{severity}" for name in ("fog", "blur") for severity in (1, 3)
    }
    assert studies["corruption-3"].exposures == ("corruption-fog-3", "corruption-blur-3")
    assert studies["corruption-3"].severity == 3
    assert studies["corruption"].parts == ("corruption-1", "corruption-3")
    assert set(studies["corruption-pooled"].exposures) == set(studies["corruption"].exposures)
    assert studies["corruption-pooled"].parts == ()
    assert studies["digits"].exposures == ("iid", "digits")
    assert [studies[f"digits{end}"].errors for end in ("", "-kept", "-scod")] == [
        "removed",
        "kept",
        "scod",
    ]


def test_the_exposures_of_a_mean_come_part_by_part():
    studies = {study.name: study for study in studies_of(exposures_of((1, 3)))}
    mean = studies["corruption"]
    assert mean.exposures == tuple(k for name in mean.parts for k in studies[name].exposures)
    # Of one severity the mean is the study itself.
    alone = {study.name: study for study in studies_of(exposures_of((3,)))}
    assert alone["corruption"].parts == ()
    assert "corruption-pooled" not in alone


def test_new_classes_need_iid_pictures_beside_them():
    with pytest.raises(InputError, match="digits"):
        studies_of([ExposureFacts("digits", "digits", "digits", "new-class")])


def test_two_studies_of_one_name_raise_an_error():
    one = ExposureFacts("unseen", "unseen", "unseen", "sub-class")
    with pytest.raises(InputError, match="'unseen' twice"):
        studies_of([one, one])


def test_a_study_of_new_classes_keeps_the_places_of_its_sources_apart():
    study = Study("digits", "digits", "new-class", ("iid", "digits"), "removed")
    places = np.array([3, 3, 5])
    result = concatenate_scores(
        study, [scores("iid", 3, places=places), scores("digits", 4, new=True)]
    )
    assert result.n == 7
    assert np.unique(result.source_indices).size == 2 + 4
    assert result.source_indices[0] == result.source_indices[1] != result.source_indices[2]
    assert not np.isin(result.source_indices[3:], result.source_indices[:3]).any()


def test_corruptions_are_of_the_same_pictures():
    study = Study("corruption", "corruptions", "corruption", ("a", "b"))
    result = concatenate_scores(study, [scores("a", 5), scores("b", 5, seed=1)])
    assert result.source_indices.tolist() == [*range(5), *range(5)]


def test_what_one_exposure_lacks_the_study_lacks():
    study = Study("corruption", "corruptions", "corruption", ("a", "b"))
    first, second = scores("a", 4, methods=("m", "o")), scores("b", 3, averaged=False)
    result = concatenate_scores(study, [first, second])
    assert list(result.confidence) == ["m"]
    assert result.confidence["m"].tolist() == [*first.confidence["m"], *second.confidence["m"]]
    assert result.mean_prediction.tolist() == [*first.mean_prediction, *second.prediction]


@pytest.mark.parametrize("averages", [False, True])
def test_what_is_a_failure_and_what_counts(averages):
    study = Study("digits", "digits", "new-class", ("iid", "digits"), "kept")
    both = concatenate_scores(study, [scores("iid", 60), scores("digits", 30, new=True)])
    answers = both.mean_prediction if averages else both.prediction
    kept, removed, scod, outlier = (
        study_loss(
            Study("s", "", "new-class", study.exposures, errors),
            both,
            uses_mean_prediction=averages,
            outlier_cost=3.5,
        )
        for errors in ("kept", "removed", "scod", "outlier")
    )
    assert kept.weight is None
    assert outlier.weight is None
    assert scod.weight is None
    for row in range(90):
        new, wrong = row >= 60, answers[row] != both.labels[row]
        assert bool(kept.loss[row]) == bool(removed.loss[row]) == (new or wrong)
        assert removed.weight[row] == (1.0 if new or not wrong else 0.0)
        assert scod.loss[row] == (3.5 if new else float(wrong))
        assert bool(outlier.loss[row]) == new
