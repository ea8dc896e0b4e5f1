"""CWSA as an objective: confident successes less confident failures, above a threshold."""

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
    r"""One minus the CWSA of a batch, beside cross-entropy: a plain classifier.

    A right answer whose softmax response c reaches the threshold tau earns (c - tau)/(1 - tau), a
    wrong one loses as much; the sum is divided by the number of all samples.

    Parameters
    ----------
    threshold : float, default=0.5
        tau, in [0, 1).
    keep : float, default=1
        What cross-entropy counts beside it. With 0 what is below the threshold has no gradient.
    warm_up : float, default=0
        Share of the epochs with cross-entropy alone first.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Raises
    ------
    DomainError
        A threshold outside [0, 1), a `keep` below 0, or a warm-up outside [0, 1).

    Notes
    -----
    Appendix A.3 of [1]_ writes the gradient of a loss made of CWSA by the chain rule, through the
    confidence to the logits, and names no loss; this is the plainest one. In the logit of class k
    it is ``-s (1[k is answered] - p_k) c/(n (1 - tau))`` for an accepted sample, s = +1 where it is
    right and -1 where wrong, and 0 for the others. The weight is 0 at the threshold, so that CWSA
    over all samples is continuous there; it jumps only where the answer changes. CWSA+ and the
    equation of the paper, over the accepted, jump at the threshold.

    CWSA is no proper score: where an answer is right more often than not, it asks for certainty.
    What is trained by it is bolder than it should be; calibrate it afterwards.

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

    The CWSA of the three is (0.8 - 0.4 + 0.6)/3.
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
        """Log-odds of the most probable class.

        Parameters
        ----------
        output : Output
            Of the head, for n samples.

        Returns
        -------
        torch.Tensor of shape (n,)
            Float64; higher is more trusted.
        """
        return score_of_logits(BASELINE)(check_output(output).logits)

    def _loss_after_warm_up(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        logs = functional.log_softmax(at_least_float32(output.logits), dim=1)
        response, answer = logs.max(dim=1)
        sign = torch.where(answer == labels, 1.0, -1.0).to(response)
        weight = (response.exp() - self.threshold).clamp_min(0.0) / (1.0 - self.threshold)
        lost = 1.0 - (sign * weight).mean()
        return lost + self.keep * cross_entropy(output, labels) if self.keep else lost


CONFIDENCE_WEIGHTED: Final = ObjectiveKind(
    "cwsa",
    "CWSA",
    ConfidenceWeighted,
    "Confident successes less confident failures above a threshold, beside cross-entropy.",
    "log-odds of the most probable class",
    "Shahnazari et al. (2025), appendix A.3, https://arxiv.org/abs/2505.18622",
    {"threshold": (0.5, 0.7, 0.9)},
)
