"""Names of scores and methods: hyphens and underscores mean the same."""

import numpy as np
import pytest

import abstain as ab
from abstain._foundation.catalogue import spelled_as
from abstain.benchmark.methods import METHODS
from abstain.benchmark.results.scope import asked_methods
from abstain.benchmark.selection import Chosen
from abstain.confidence.registry import SCORES
from abstain.errors import UnknownNameError

RNG = np.random.default_rng(0)
SAMPLES = ab.Predictions(logit_samples=RNG.normal(size=(20, 4, 3)), labels=RNG.integers(0, 3, 20))


@pytest.mark.parametrize("name", ["mcd_msr", "mcd-msr"])
def test_both_spellings_are_accepted(name):
    assert SCORES[name].name == "mcd_msr"
    assert METHODS[name].name == "mcd-msr"
    expected = ab.evaluate(SAMPLES, scores=["mcd_msr"], metrics=["augrc"]).value("augrc")
    result = ab.evaluate(SAMPLES, scores=[name], metrics=["augrc"])
    assert result.value("augrc") == expected
    assert result.results[0].score == "mcd_msr"


def test_reports_select_methods_in_both_spellings():
    chosen = [
        Chosen(method=name, metric="augrc", arm="cross-entropy", setting="a", value=None)
        for name in ("msr", "mcd-msr")
    ]
    assert asked_methods(chosen, ["mcd_msr"]) == (chosen[1],)
    with pytest.raises(UnknownNameError, match="no method named 'mcd_mcp'"):
        asked_methods(chosen, ["mcd_mcp"])


def test_only_the_spelling_may_differ():
    assert spelled_as("a-b", ["a_b", "a-b"]) == "a-b"
    assert spelled_as("a_b", ["a-b", "c"]) == "a-b"
    assert spelled_as("ab", ["a-b"]) == "ab"
    with pytest.raises(UnknownNameError, match="Did you mean 'mcd_msr'"):
        _ = SCORES["mcd_msrr"]
