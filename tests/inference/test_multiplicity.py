"""Adjusted p-values against statsmodels, and what becomes of tests that could not be made."""

import numpy as np
import pytest

from abstain.errors import DomainError, InputError
from abstain.inference.multiplicity import ADJUSTMENTS, adjust, levels_of_tests


@pytest.mark.parametrize("method", ["holm", "bonferroni"])
@pytest.mark.parametrize("m", [1, 2, 7, 78])
def test_equals_statsmodels(method, m):
    reference = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(m)
    p = np.round(rng.random(m) ** 3, 2)  # with ties and zeros
    expected = reference.multipletests(p, method=method)[1]
    np.testing.assert_allclose(adjust(p, method=method), expected, rtol=0, atol=1e-15)


def test_none_changes_nothing_and_copies():
    p = np.array([0.2, 0.01])
    out = adjust(p, method="none")
    assert out.tolist() == p.tolist()
    assert out is not p


@pytest.mark.parametrize("method", ["holm", "bonferroni", "none"])
def test_a_test_that_was_not_made_does_not_count(method):
    p = np.array([0.01, np.nan, 0.03, np.nan, 0.5])
    out = adjust(p, method=method)
    assert np.isnan(out[[1, 3]]).all()
    np.testing.assert_array_equal(out[[0, 2, 4]], adjust(p[[0, 2, 4]], method=method))


def test_a_matrix_is_one_family():
    p = np.array([[np.nan, 0.01], [0.04, np.nan]])
    np.testing.assert_array_equal(adjust(p), [[np.nan, 0.02], [0.04, np.nan]])


def test_nothing_to_adjust():
    assert adjust(np.empty(0)).shape == (0,)
    assert np.isnan(adjust([np.nan])).all()
    for method in ADJUSTMENTS:
        assert np.isnan(levels_of_tests([np.nan], alpha=0.05, method=method)).all()


def test_refusals():
    with pytest.raises(DomainError, match=r"`p_values` must lie in \[0, 1\]; got 1.2 at index 1"):
        adjust([0.1, 1.2])
    with pytest.raises(InputError, match="`method` must be one of"):
        adjust([0.1], method="sidak")
