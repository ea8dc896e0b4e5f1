"""ConfidNet: a branch that learns the probability of the true class."""

from torch import Tensor, nn
from torch.nn import functional

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.training.cross_entropy import cross_entropy
from abstain.training.heads import stack
from abstain.training.objective import Objective
from abstain.training.outputs import Output, needed, wide, widest
from abstain.training.phases import CLASSIFIER, Phase
from abstain.typing import Rng

_LAYERS = 5
#: Of Adam in the third stage.
_FINE_RATE = 1e-6


class ConfidNet(Objective):
    """ConfidNet: a branch on the features learns the probability of the true class.

    First a classifier by cross-entropy. Then its parts are frozen and a branch with output c
    learns by the mean of ``(sigmoid(c) - p[y])^2``, p the softmax of the frozen classifier. Where
    asked for, the branch and its own copy of the backbone (the twin) then learn on together.

    Parameters
    ----------
    confidence_share : float, default=0.45
        Share of the epochs that train the branch. FD-Shifts: 200 of 450.
    fine_tune : float, default=0
        Share of the epochs that fine-tune the branch with a backbone of its own. The authors do
        so at a rate of 1e-6 for a small gain; FD-Shifts: 20 of 470 epochs, 0.043. Off by default,
        since the twin doubles memory and the cost of every later prediction.
    hidden : int, default=400
        Width of the branch's four hidden layers.
    learning_rate : float, default=1e-4
        Of Adam while the branch learns: the authors', for hundreds of epochs.
    failure_weight : float, default=1
        What a sample that the classifier gets wrong counts in the branch's loss; the `weighting`
        of the authors' code.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Raises
    ------
    DomainError
        Shares outside (0, 1) or that leave nothing for the classifier.
    InputError
        A width that is not a whole number.

    Notes
    -----
    While the branch learns, batch norm keeps its statistics and dropout stays on; in the fine
    tuning dropout is off, as in the authors' code. The target is a number, no gradient flows
    through it. The branch learns from the training set, where an overfitted classifier is always
    right: without dropout or augmentation there is little to learn from.

    References
    ----------
    Corbière et al. (2019), Addressing Failure Prediction by Learning Model Confidence,
    https://arxiv.org/abs/1910.04851; code: https://github.com/valeoai/ConfidNet.

    Examples
    --------
    >>> from abstain.training import ConfidNet
    >>> objective = ConfidNet(confidence_share=0.5)
    >>> [phase.name for phase in objective.plan(4)]
    ['classifier', 'classifier', 'confidence', 'confidence']
    >>> objective.phases[-1].trains
    ('confidence',)
    """

    def __init__(
        self,
        *,
        confidence_share: float = 0.45,
        fine_tune: float = 0.0,
        hidden: int = 400,
        learning_rate: float = 1e-4,
        failure_weight: float = 1.0,
        rng: Rng = None,
    ) -> None:
        super().__init__(rng=rng)
        self.confidence_share = checks.positive(confidence_share, "confidence_share")
        self.fine_tune = checks.fraction(fine_tune, "fine_tune")
        if self.confidence_share + self.fine_tune >= 1.0:
            msg = (
                "`confidence_share` and `fine_tune` must leave epochs for the classifier; "
                f"got {confidence_share!r} + {fine_tune!r}"
            )
            raise DomainError(msg)
        self.hidden = checks.positive_int(hidden, "hidden")
        self.learning_rate = checks.positive(learning_rate, "learning_rate")
        self.failure_weight = checks.positive(failure_weight, "failure_weight")

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The classifier, the branch and, where asked for, its fine-tuning."""
        first = 1.0 - self.confidence_share - self.fine_tune
        share, rate = self.confidence_share, self.learning_rate
        own = Phase("confidence", ("confidence",), share, learning_rate=rate)
        stages = (Phase("classifier", CLASSIFIER, share=first), own)
        if self.fine_tune == 0.0:
            return stages
        parts = ("confidence", "twin")
        last = Phase("fine-tune", parts, self.fine_tune, dropout=False, learning_rate=_FINE_RATE)
        return (*stages, last)

    def confidence(self, output: Output) -> Tensor:
        """Logit of the probability of the true class, as the branch sees it.

        Parameters
        ----------
        output : Output
            Of the head, for n samples.

        Returns
        -------
        torch.Tensor of shape (n,)
            Float64; higher is more trusted.
        """
        return widest(needed(output, "confidence"))

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:  # noqa: ARG002
        return {"confidence": stack(width, self.hidden, _LAYERS)}

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        if self.phase.name == "classifier":
            return cross_entropy(output, labels)
        logits = wide(output.logits).detach()
        target = functional.softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
        square = (wide(needed(output, "confidence")).sigmoid() - target) ** 2
        if self.failure_weight != 1.0:
            wrong = logits.argmax(dim=1) != labels
            square = square.where(~wrong, self.failure_weight * square)
        return square.mean()
