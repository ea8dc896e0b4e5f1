"""Names of scores: hyphens and underscores mean the same."""

import numpy as np
import pytest

import abstain as ab
from abstain._foundation.catalogue import match_spelling
from abstain.confidence.registry import SCORES
from abstain.errors import UnknownNameError

RNG = np.random.default_rng(0)
SAMPLES = ab.Predictions(logit_samples=RNG.normal(size=(20, 4, 3)), labels=RNG.integers(0, 3, 20))


@pytest.mark.parametrize("name", ["mcd_msr", "mcd-msr"])
def test_both_spellings_are_accepted(name):
    assert SCORES[name].name == "mcd_msr"
    expected = ab.evaluate(SAMPLES, scores=["mcd_msr"], metrics=["augrc"]).value("augrc")
    result = ab.evaluate(SAMPLES, scores=[name], metrics=["augrc"])
    assert result.value("augrc") == expected
    assert result.results[0].score == "mcd_msr"


def test_only_the_spelling_may_differ():
    assert match_spelling("a-b", ["a_b", "a-b"]) == "a-b"
    assert match_spelling("a_b", ["a-b", "c"]) == "a-b"
    assert match_spelling("ab", ["a-b"]) == "ab"
    with pytest.raises(UnknownNameError, match="Did you mean 'mcd_msr'"):
        _ = SCORES["mcd_msrr"]
