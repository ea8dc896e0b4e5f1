"""Fixed sequence testing by itself: for paths through several thresholds, and for several risks."""

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.errors import DomainError, ShapeError
from abstain.thresholds._choice import delta_of
from abstain.typing import AnyArray


def fixed_sequence(p_values: AnyArray, *, delta: float) -> int:
    """Test hypotheses one after the other, each at level delta, until the first that fails.

    Answers: how far along a path of settings is every promise still certified?

    Parameters
    ----------
    p_values : array of shape (k,) or (k, risks)
        Of the hypotheses that the risk of a setting is above its target, in an order that was
        fixed before the losses were seen, the safest first. With several risks a setting passes
        only where each of them does.
    delta : float
        The chance that any setting is certified whose risk is above its target.

    Returns
    -------
    int
        How many settings pass, from the first on: 0 for none. The last of them is at
        ``order[count - 1]``.

    Raises
    ------
    ShapeError, DomainError
        No p-values, more than two axes, values outside [0, 1]; `delta` not between 0 and 1.

    See Also
    --------
    learn_then_test : The same over the thresholds of one confidence.
    several_risks : Over the thresholds of one confidence, for several risks.

    Notes
    -----
    The first setting of the path that breaks a target is the only one that decides: the walk passes
    it with chance at most delta, and what comes later is then not reached. "All risks are within
    their targets" is refuted as "some risk is above": the largest p-value of a setting is one for
    it, whatever the risks have to do with each other, so that several risks share no delta.
    Settings may be pairs of thresholds, as those of two stages.

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
    found = to_numpy(p_values, "p_values")
    if found.ndim not in {1, 2} or found.size == 0:
        raise ShapeError(
            f"`p_values` must have shape (k,) or (k, risks), k at least 1; got {found.shape}"
        )
    if not ((found >= 0) & (found <= 1)).all():
        at = int(np.argmax(~((found >= 0) & (found <= 1)).ravel()))
        raise DomainError(f"`p_values` must lie in [0, 1]; got {found.ravel()[at]!r}")
    worst = found if found.ndim == 1 else found.max(axis=1)
    failing = np.flatnonzero(worst > delta_of(delta))
    return int(failing[0]) if failing.size else int(worst.size)
