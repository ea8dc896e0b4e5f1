"""Cross-entropy: the classifier everybody trains, and the warm-up of other objectives."""

from abc import abstractmethod
from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from abstain._foundation import checks
from abstain.training._logits import score_of_logits
from abstain.training.heads import Output, checked_output, wide
from abstain.training.network import CLASSIFIER, Phase
from abstain.training.objective import WARM_UP, Objective
from abstain.typing import Rng


def cross_entropy(output: Output, labels: Tensor) -> Tensor:
    """Mean of minus the log-probability of the label, abstention left out."""
    return functional.cross_entropy(wide(output.logits), labels)


class WarmedUp(Objective):
    """An objective that may begin with a share of epochs of cross-entropy.

    Subclasses say what they minimize after it, and which parts of the network learn then.

    Parameters
    ----------
    warm_up : float
        The share, in [0, 1).
    rng : int, numpy.random.Generator or None
        As in `Objective`.
    """

    #: Name of the phase after it, and what learns there.
    main: ClassVar[tuple[str, tuple[str, ...]]]

    def __init__(self, *, warm_up: float, rng: Rng) -> None:
        super().__init__(rng=rng)
        # 0.999 and not 1: the phase after it must have a share.
        self.warm_up = checks.fraction(warm_up, "warm_up", high=0.999)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """A warm-up with cross-entropy, where asked for, then the objective's own."""
        main = Phase(*self.main, share=1.0 - self.warm_up)
        if self.warm_up == 0.0:
            return (main,)
        return (Phase(WARM_UP, CLASSIFIER, share=self.warm_up), main)

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:
        if self.phase.name == WARM_UP:
            return cross_entropy(output, labels)
        return self._own_loss(output, labels, index)

    @abstractmethod
    def _own_loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:
        """Return the loss after the warm-up."""


class CrossEntropy(Objective):
    """Cross-entropy: a plain classifier, trusted by its softmax.

    The mean of ``-log p[y]``.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Notes
    -----
    Its confidence is `abstain.confidence.max_softmax_response`, the log-odds of the most probable
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
        return score_of_logits("msr")(checked_output(output).logits)

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        return cross_entropy(output, labels)
