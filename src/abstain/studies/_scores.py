"""The six confidence scores of table S2 of Zhou et al., by our names."""

from dataclasses import dataclass
from typing import Final

from scipy.special import log_expit

from abstain.confidence import ConfidenceScore, applicable
from abstain.confidence import score as score_of
from abstain.predictions import Predictions

#: The names of table S2: softmax response, largest logit, softmax margin, negative entropy,
#: negative Gini index, l2 norm. The table prints the norm of the logits; the code takes it of the
#: softmax, and so is it here.
SCORES_OF_TABLE: Final = ("msr", "mls", "margin", "pe", "gini", "l2_norm")

_NORM: Final = "l2_norm"


@dataclass(frozen=True)
class SoftmaxNorm:
    """The l2 norm of the softmax as a score that `evaluate` and `compare` take.

    The logarithm of the norm, sqrt(sum of p²), is computed from the log-odds of the Gini score, so
    that norms next to 1 stay apart; it ranks samples exactly as "gini" does.

    Attributes
    ----------
    name : str
        The name that results carry.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.studies import SoftmaxNorm
    >>> p = ab.Predictions(probabilities=[[0.6, 0.4], [0.8, 0.2]], labels=[0, 0])
    >>> np.exp(SoftmaxNorm().score(p).values).round(4).tolist()
    [0.7211, 0.8246]
    """

    name: str = _NORM

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return ln of the norm for each sample, at most 0."""
        gini = score_of("gini", predictions)
        return ConfidenceScore(self.name, 0.5 * log_expit(gini.values))


def confidence_of(name: str, predictions: Predictions) -> ConfidenceScore:
    """Return a score of the catalogue, of the data, or the norm of table S2."""
    own = name in (predictions.confidence or {})
    if name == _NORM and not own:
        return SoftmaxNorm().score(predictions)
    return score_of(name, predictions)


def usual_scores(predictions: Predictions) -> tuple[str, ...]:
    """Return the scores of table S2 that predictions allow, else their own confidences."""
    allowed = applicable(predictions)
    of_table = [s for s in SCORES_OF_TABLE if s in allowed or (s == _NORM and "gini" in allowed)]
    return tuple(of_table) or tuple(predictions.confidence or {})
