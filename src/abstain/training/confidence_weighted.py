"""Train a classifier with a loss based on CWSA and cross-entropy."""

from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from abstain._foundation import checks
from abstain.confidence.registry import BASELINE
from abstain.errors import DomainError
from abstain.training._logits import score_of_logits
from abstain.training.heads import Output, at_least_float32, check_output
from abstain.training.kind import ObjectiveKind
from abstain.training.network import CLASSIFIER
from abstain.training.objective import ObjectiveWithWarmUp, cross_entropy
from abstain.typing import Rng


class ConfidenceWeighted(ObjectiveWithWarmUp):
    r"""Train a classifier with the loss 1 - CWSA plus the cross-entropy.

    Let c be the largest probability of a sample and tau the threshold. A correct prediction with c
    >= tau contributes (c - tau)/(1 - tau) to CWSA, and a wrong prediction with c >= tau contributes
    the negative of this value. CWSA is the sum of these contributions divided by the number of all
    samples.

    Parameters
    ----------
    threshold : float, default=0.5
        Threshold tau, in [0, 1).
    keep : float, default=1
        Factor of the cross-entropy. If the factor is 0, samples below the threshold have no
        gradient.
    warm_up : float, default=0
        Share of the epochs that first train with cross-entropy only.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Raises
    ------
    DomainError
        If `threshold` or `warm_up` is outside [0, 1), or if `keep` is negative.

    Notes
    -----
    In appendix A.3 of [1]_, the gradient of a loss for CWSA is derived, but the loss is not
    defined. The gradient of the loss of this class with respect to the logit of class k is ``-s
    (1[k is predicted] - p_k) c/(n (1 - tau))`` for an accepted sample, where s is +1 for a correct
    prediction and -1 for a wrong prediction. For rejected samples, the gradient is 0. In contrast
    to CWSA+, the loss is continuous in the confidence at the threshold.

    CWSA is not a proper scoring rule. For predictions that are correct with a probability above
    1/2, the optimal confidence is 1. Therefore, calibrate the classifier after training.

    References
    ----------
    .. [1] Shahnazari et al. (2025), Trust, or don't predict: introducing the CWSA family for
       confidence-aware model evaluation, section 3.2 and appendix A.3,
       https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> import torch
    >>> from abstain.training import ConfidenceWeighted, Output
    >>> logits = torch.log(torch.tensor([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]]))
    >>> output = Output(logits, features=torch.zeros(3, 4))
    >>> loss = ConfidenceWeighted(threshold=0.5, keep=0.0)
    >>> round(loss(output, torch.tensor([0, 1, 1])).item(), 4)
    0.6667

    The CWSA of the three samples is (0.8 - 0.4 + 0.6)/3.
    """

    main_phase = ("weigh", CLASSIFIER)

    def __init__(
        self,
        *,
        threshold: float = 0.5,
        keep: float = 1.0,
        warm_up: float = 0.0,
        rng: Rng = None,
    ) -> None:
        """Validate and store the options."""
        super().__init__(warm_up=warm_up, rng=rng)
        self.threshold = checks.fraction(threshold, "threshold")
        if self.threshold == 1.0:
            raise DomainError(
                "`threshold` must lie in [0, 1); got 1.0. At 1 the ramp has no width."
            )
        self.keep = checks.number(keep, "keep")
        if self.keep < 0:
            raise DomainError(f"`keep` must not be below 0; got {self.keep!r}")

    def confidence(self, output: Output) -> Tensor:
        """Compute the log-odds of the most probable class.

        Parameters
        ----------
        output : Output
            Output of the head for n samples.

        Returns
        -------
        torch.Tensor of shape (n,)
            Confidences in float64; higher is more confident.
        """
        return score_of_logits(BASELINE)(check_output(output).logits)

    def _loss_after_warm_up(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        """Return 1 - CWSA of the batch, plus the weighted cross-entropy."""
        log_p = functional.log_softmax(at_least_float32(output.logits), dim=1)
        max_log_p, prediction = log_p.max(dim=1)
        sign = torch.where(prediction == labels, 1.0, -1.0).to(max_log_p)
        weight = (max_log_p.exp() - self.threshold).clamp_min(0.0) / (1.0 - self.threshold)
        cwsa = (sign * weight).mean()
        loss = 1.0 - cwsa
        if self.keep:
            loss = loss + self.keep * cross_entropy(output, labels)
        return loss


CONFIDENCE_WEIGHTED: Final = ObjectiveKind(
    "cwsa",
    "CWSA",
    ConfidenceWeighted,
    "Confidence-weighted successes minus failures above a threshold, plus cross-entropy.",
    "log-odds of the most probable class",
    "Shahnazari et al. (2025), appendix A.3, https://arxiv.org/abs/2505.18622",
    {"threshold": (0.5, 0.7, 0.9)},
)
