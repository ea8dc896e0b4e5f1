"""Areas under risk-coverage curves as an objective with the common interface."""

from torch import Tensor

from abstain.training._base_losses import BaseLoss
from abstain.training._scores import OwnScore, score_of_logits
from abstain.training._weights import OwnWeights
from abstain.training.cross_entropy import cross_entropy, warm_up_share, warmed_up
from abstain.training.objective import WARM_UP, Objective
from abstain.training.outputs import Output, checked_output, widest
from abstain.training.phases import CLASSIFIER, Phase
from abstain.training.rank_weighted import RankWeightedLoss
from abstain.typing import Rng


class RankWeighted(Objective):
    """An area under a risk-coverage curve, by weighting each loss by its confidence rank.

    `RankWeightedLoss` with the interface of the other objectives: a plain classifier, trusted by
    the score that its samples are ranked by.

    Parameters
    ----------
    weights : str or callable, default="aurc"
        Which area: "aurc", "aurc-log", "sele", "augrc", "partial-aurc", "partial-augrc", or a
        function of its own. This and the next four options are those of `RankWeightedLoss`.
    score : str or callable, default="msr"
        What the samples are ranked by, and the confidence of the objective.
    base : str or callable, default="cross-entropy"
        The loss of a sample.
    between : tuple of float, optional
        The two coverages of a partial area.
    soft : float, optional
        Temperature of soft ranks, through which the confidence itself learns.
    queue : int, default=0
        How many recent confidences a batch is ranked among.
    warm_up : float, default=0
        Share of the epochs with cross-entropy first. The paper fine-tunes trained classifiers.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Raises
    ------
    InputError
        An option that `RankWeightedLoss` refuses, or a warm-up outside [0, 1).

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

    def __init__(
        self,
        *,
        weights: str | OwnWeights = "aurc",
        score: str | OwnScore = "msr",
        base: str | BaseLoss = "cross-entropy",
        between: tuple[float, float] | None = None,
        soft: float | None = None,
        queue: int = 0,
        warm_up: float = 0.0,
        rng: Rng = None,
    ) -> None:
        super().__init__(rng=rng)
        self.warm_up = warm_up_share(warm_up)
        self.loss = RankWeightedLoss(
            weights, score=score, base=base, between=between, soft=soft, queue=queue
        )
        self._score = score_of_logits(score)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """A warm-up with cross-entropy, where asked for, then the area."""
        return warmed_up(Phase("rank", CLASSIFIER, share=1.0 - self.warm_up), self.warm_up)

    def confidence(self, output: Output) -> Tensor:
        """Score of the logits, by which the samples are ranked.

        Parameters
        ----------
        output : Output
            Of the head, for n samples.

        Returns
        -------
        torch.Tensor of shape (n,)
            Float64 for scores by name; higher is more trusted.
        """
        return widest(self._score(checked_output(output).logits))

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        if self.phase.name == WARM_UP:
            return cross_entropy(output, labels)
        loss: Tensor = self.loss(output.logits, labels)
        return loss
