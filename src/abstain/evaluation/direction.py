"""Does a confidence point the wrong way? Told from the data, whatever metrics are asked for."""

import math

import numpy as np

from abstain._foundation.option_words import option
from abstain._foundation.scored import Scored

#: Standard deviations of a score that knows nothing, from which on it is worth a warning.
_NOTABLE = 2.0


def wrong_way(s: Scored, *, own: bool) -> str | None:
    """Say that failures are the more confident, where that is more than chance.

    The correlation of the loss with the (middle) rank of the confidence, against what it is for a
    score that knows nothing: for 0/1 losses the test of Mann and Whitney, corrected for ties.

    Parameters
    ----------
    s : Scored
        Confidences and losses.
    own : bool
        Whether the score came with the data, so that its direction can be given.

    Returns
    -------
    str or None
        A sentence; None when the score points the right way, or nobody can tell.
    """
    groups = s.groups
    rank = 0.5 - (groups.through - groups.weight / 2) / s.total
    weight = np.ones(s.n) if s.weight is None else s.weight
    loss = s.loss.astype(np.float64)
    risk = float(weight @ loss) / s.total
    spread = float(weight @ (loss - risk) ** 2) * float(groups.weight @ rank**2) / s.total**2
    if spread <= 0:
        return None
    together = float(groups.loss @ rank) / s.total
    correlation = together / math.sqrt(spread)
    worth = s.total**2 / float(weight @ weight)  # samples of equal weight that tell as much
    if correlation * math.sqrt(max(worth - 1, 0.0)) <= _NOTABLE:
        return None
    if s.binary:
        auroc = 0.5 - together / (risk * (1 - risk))
        said = (
            "Failures have higher confidence than successes more often than not (failure AUROC "
            f"{auroc:.3f})."
        )
    else:
        said = f"The more confident, the larger the loss (rank correlation {correlation:.3f})."
    if not own:
        return said
    return f"{said} If it is an uncertainty, say so: {option('lower_is_safer', value=True)}."
