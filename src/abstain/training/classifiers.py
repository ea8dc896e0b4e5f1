"""Train a classifier with cross-entropy, with an area under a risk-coverage curve, or with both."""

from typing import Final

from torch import Tensor

from abstain._foundation import checks
from abstain.confidence.registry import BASELINE
from abstain.training._logits import BaseLoss, ScoreFunction, score_of_logits
from abstain.training._weights import WeightFunction
from abstain.training.heads import Output, check_output, to_widest_type
from abstain.training.kind import ObjectiveKind
from abstain.training.network import CLASSIFIER
from abstain.training.objective import Objective, ObjectiveWithWarmUp, cross_entropy
from abstain.training.rank_weighted import RankWeightedLoss
from abstain.typing import Rng


class CrossEntropy(Objective):
    """Train a classifier with the cross-entropy, the mean of ``-log p[y]``.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Notes
    -----
    The confidence is `abstain.confidence.max_softmax_response`, the log-odds of the most probable
    class.

    References
    ----------
    Hendrycks & Gimpel (2017), A Baseline for Detecting Misclassified and Out-of-Distribution
    Examples in Neural Networks, https://arxiv.org/abs/1610.02136 (the confidence).

    Examples
    --------
    >>> import torch
    >>> from abstain.training import CrossEntropy, Output
    >>> output = Output(logits=torch.tensor([[2.0, 0.0]]), features=torch.zeros(1, 4))
    >>> round(CrossEntropy()(output, torch.tensor([0])).item(), 4)
    0.1269
    >>> CrossEntropy().confidence(output).tolist()
    [2.0]
    """

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

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        return cross_entropy(output, labels)


class RankWeighted(ObjectiveWithWarmUp):
    """Train a classifier with an area under the risk-coverage curve as the loss.

    The loss is `RankWeightedLoss`. The confidence is the score by which the samples are ranked.

    Parameters
    ----------
    weights : str or callable, default="aurc"
        Area, as in `RankWeightedLoss`: "aurc", "aurc-log", "sele", "augrc", "partial-aurc",
        "partial-augrc", or a function.
    score : str or callable, default="msr"
        Score that ranks the samples.
    base : str or callable, default="cross-entropy"
        Loss of a sample.
    between : tuple of float, optional
        Coverages (low, high) of a partial area.
    soft : float, optional
        Temperature of soft ranks. By default, ranks are integers without a gradient.
    queue : int, default=0
        Number of recent confidences among which a batch is ranked.
    warm_up : float, default=0
        Share of the epochs that first train with cross-entropy.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Raises
    ------
    InputError
        If `RankWeightedLoss` rejects an option, or if the warm-up is outside [0, 1).

    References
    ----------
    Zhou et al. (2025), A Novel Characterization of the Population Area Under the Risk Coverage
    Curve (AURC) and Rates of Finite Sample Estimators, https://arxiv.org/abs/2410.15361.

    Examples
    --------
    >>> import torch
    >>> from abstain.training import Output, RankWeighted
    >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    >>> output = Output(logits, features=torch.zeros(3, 4))
    >>> loss = RankWeighted(weights="augrc", base="zero-one")
    >>> round(loss(output, torch.tensor([0, 1, 1])).item(), 4)
    0.0556
    """

    main_phase = ("rank", CLASSIFIER)

    def __init__(
        self,
        *,
        weights: str | WeightFunction = "aurc",
        score: str | ScoreFunction = BASELINE,
        base: str | BaseLoss = "cross-entropy",
        between: tuple[float, float] | None = None,
        soft: float | None = None,
        queue: int = 0,
        warm_up: float = 0.0,
        rng: Rng = None,
    ) -> None:
        """Validate the options, and create the loss."""
        super().__init__(warm_up=warm_up, rng=rng)
        self.loss = RankWeightedLoss(
            weights, score=score, base=base, between=between, soft=soft, queue=queue
        )
        self._score = score_of_logits(score)

    def confidence(self, output: Output) -> Tensor:
        """Compute the score by which the samples are ranked.

        Parameters
        ----------
        output : Output
            Output of the head for n samples.

        Returns
        -------
        torch.Tensor of shape (n,)
            Confidences, in float64 for named scores; higher is more confident.
        """
        return to_widest_type(self._score(check_output(output).logits))

    def _loss_after_warm_up(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        loss: Tensor = self.loss(output.logits, labels)
        return loss


class Joint(RankWeighted):
    """Train a classifier with cross-entropy plus a multiple of a risk-coverage area.

    The area is computed with the 0/1 loss and soft ranks. Gradient descent on this area lowers the
    confidence of failures.

    Parameters
    ----------
    strength : float, default=10
        Factor of the area in the loss.
    weights : str or callable, default="augrc"
        Area, as in `RankWeightedLoss`.
    score : str or callable, default="msr"
        Score that ranks the samples and is the confidence.
    between : tuple of float, optional
        Coverages (low, high) of a partial area.
    soft : float, default=0.1
        Temperature of the soft ranks.
    queue : int, default=0
        Number of recent confidences among which a batch is ranked.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Raises
    ------
    InputError
        If `strength` is not positive, or if `RankWeightedLoss` rejects an option.

    Notes
    -----
    This objective was developed for abstain and does not improve results reliably. In the
    fine-tuning experiment of the documentation, it was better than cross-entropy on one data set
    and worse on another. With `queue=1000`, the AURC was 2.6% lower on MNIST and 2.3% higher on
    digits of 8 x 8 pixels.

    Examples
    --------
    >>> import torch
    >>> from abstain.training import Joint, Output
    >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]], requires_grad=True)
    >>> loss = Joint(queue=64)(Output(logits, features=torch.zeros(3, 4)), torch.tensor([0, 1, 1]))
    >>> loss.ndim, bool(loss > 0)
    (0, True)
    """

    def __init__(
        self,
        *,
        strength: float = 10.0,
        weights: str | WeightFunction = "augrc",
        score: str | ScoreFunction = BASELINE,
        between: tuple[float, float] | None = None,
        soft: float = 0.1,
        queue: int = 0,
        rng: Rng = None,
    ) -> None:
        """Validate the options, and create the loss."""
        super().__init__(
            weights=weights,
            score=score,
            base="zero-one",
            between=between,
            soft=soft,
            queue=queue,
            rng=rng,
        )
        self.strength = checks.positive(strength, "strength")

    def _loss_after_warm_up(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:
        area = super()._loss_after_warm_up(output, labels, index)
        return cross_entropy(output, labels) + self.strength * area


CROSS_ENTROPY: Final = ObjectiveKind(
    "cross-entropy",
    "Cross-entropy",
    CrossEntropy,
    "A classifier that is trained with cross-entropy and has no additional output.",
    "log-odds of the most probable class",
    "Hendrycks & Gimpel (2017), https://arxiv.org/abs/1610.02136",
)

RANK_WEIGHTED: Final = ObjectiveKind(
    "rank-weighted",
    "Rank-weighted loss",
    RankWeighted,
    "The area under a risk-coverage curve, with its rank weights as weights of the loss.",
    "the score that the samples are ranked by",
    "Zhou et al. (2025), https://arxiv.org/abs/2410.15361",
    {"weights": ("aurc", "aurc-log", "sele", "augrc")},
)

JOINT: Final = ObjectiveKind(
    "joint",
    "Cross-entropy and an area",
    Joint,
    "Cross-entropy plus the area under a risk-coverage curve of the 0/1 loss, by soft ranks.",
    "the score that the samples are ranked by",
    "abstain",
    {"strength": (3.0, 10.0, 30.0)},
)
