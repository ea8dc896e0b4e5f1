"""Fixed sequence testing, for paths through several thresholds and for several risks."""

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.errors import DomainError, ShapeError
from abstain.thresholds._choice import check_delta
from abstain.typing import AnyArray


def fixed_sequence(p_values: AnyArray, *, delta: float) -> int:
    """Test hypotheses in a fixed order, each at level delta, until the first is not rejected.

    Answers: up to which setting along a path are all guarantees certified?

    Parameters
    ----------
    p_values : array of shape (k,) or (k, risks)
        P-values of the hypotheses that the risk of a setting is above its target. The order must be
        fixed before the losses are seen, with the safest setting first. With several risks, a
        setting passes only if every risk does.
    delta : float
        Probability that a setting with a risk above its target is certified.

    Returns
    -------
    int
        Number of settings that pass, from the first one on; 0 for none. The last of them is
        ``order[count - 1]``.

    Raises
    ------
    ShapeError, DomainError
        If there are no p-values, more than two axes, or values outside [0, 1], or if `delta` is not
        between 0 and 1.

    See Also
    --------
    learn_then_test : The same test over the thresholds of one confidence.
    several_risks : The same test over the thresholds of one confidence, for several risks.

    Notes
    -----
    Only the first setting on the path that exceeds a target matters. The test passes it with
    probability at most delta, and otherwise does not reach later settings. For several risks, the
    hypothesis is "some risk is above its target". The largest p-value of a setting is a p-value of
    it, whatever the dependence of the risks, so several risks need not divide delta. Settings may
    be pairs of thresholds, such as those of two stages.

    References
    ----------
    .. [1] Angelopoulos, Bates, Candes, Jordan and Lei (2021), Learn then test (fixed sequence
       testing; several risks), https://arxiv.org/abs/2110.01052

    Examples
    --------
    >>> import abstain as ab
    >>> ab.thresholds.fixed_sequence([0.001, 0.02, 0.2, 0.01], delta=0.05)
    2
    >>> ab.thresholds.fixed_sequence([[0.001, 0.03], [0.02, 0.3]], delta=0.05)
    1
    """
    values = to_numpy(p_values, "p_values")
    if values.ndim not in {1, 2} or values.size == 0:
        raise ShapeError(
            f"`p_values` must have shape (k,) or (k, risks), k at least 1; got {values.shape}"
        )
    is_invalid = ~((values >= 0) & (values <= 1))
    if is_invalid.any():
        raise DomainError(f"`p_values` must lie in [0, 1]; got {values[is_invalid][0]!r}")
    largest = values if values.ndim == 1 else values.max(axis=1)
    not_rejected = np.flatnonzero(largest > check_delta(delta))
    return int(not_rejected[0]) if not_rejected.size else int(largest.size)
