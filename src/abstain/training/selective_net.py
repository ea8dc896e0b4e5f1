"""SelectiveNet: a selection head that is trained to keep a target coverage at low risk."""

from torch import Tensor, nn
from torch.nn import functional

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.training.heads import LoneBatchNorm
from abstain.training.objective import Objective
from abstain.training.outputs import Output, needed, wide, widest
from abstain.training.phases import Phase
from abstain.typing import Rng

#: Target coverages of the paper's tables.
COVERAGES = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)

_HIDDEN = 512


class _Selection(nn.Sequential):
    """A hidden layer with batch norm, and one unit, as in the paper."""

    def __init__(self, width: int) -> None:
        norm = LoneBatchNorm(_HIDDEN)
        # The authors divide what batch norm gives by 10: the selection starts near 1/2.
        nn.init.constant_(norm.weight, 0.1)
        super().__init__(nn.Linear(width, _HIDDEN), nn.ReLU(), norm, nn.Linear(_HIDDEN, 1))


class SelectiveNet(Objective):
    """SelectiveNet: learn what to accept, so that a target coverage has low selective risk.

    With f the classifier, g in (0, 1) the selection and h an auxiliary classifier, all on the
    same features, and L the cross-entropy of a sample::

        coverage = mean(g)
        selective risk = mean(g L_f) / coverage
        loss = alpha (selective risk + penalty max(0, target - coverage)^2)
               + (1 - alpha) mean(L_h)

    Parameters
    ----------
    coverage : float, default=0.8
        The target, in (0, 1]. The network is best near it: the paper trains one for each.
    penalty : float, default=32
        The paper's lambda: what a missing coverage costs.
    alpha : float, default=0.5
        Weight of the selective part against the auxiliary classifier, in (0, 1]. The auxiliary
        one sees all samples, so that the features are not those of the accepted alone.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Raises
    ------
    DomainError
        An option outside its range.

    Notes
    -----
    Its confidence is the logit of g. The division by the coverage is in the paper's selective
    risk, and left out in the authors' code. Coverage and risk are those of a batch: with few
    samples they are noisy, and processes do not share them. A batch of one takes the running
    statistics of the selection's batch norm.

    References
    ----------
    Geifman & El-Yaniv (2019), SelectiveNet: A Deep Neural Network with an Integrated Reject
    Option, https://arxiv.org/abs/1901.09192; code: https://github.com/geifmany/selectivenet.

    Examples
    --------
    >>> import torch
    >>> from abstain.training import Output, SelectiveNet
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> selected = torch.tensor([3.0, -3.0])
    >>> output = Output(logits, torch.zeros(2, 4), confidence=selected, auxiliary=logits)
    >>> accepts_the_right_one = SelectiveNet(coverage=0.5)(output, torch.tensor([0, 0]))
    >>> accepts_the_wrong_one = SelectiveNet(coverage=0.5)(output, torch.tensor([1, 1]))
    >>> (accepts_the_right_one < accepts_the_wrong_one).item()
    True
    """

    def __init__(
        self,
        *,
        coverage: float = 0.8,
        penalty: float = 32.0,
        alpha: float = 0.5,
        rng: Rng = None,
    ) -> None:
        super().__init__(rng=rng)
        self.coverage = _share(coverage, "coverage")
        self.penalty = checks.fraction(penalty, "penalty", high=float("inf"))
        self.alpha = _share(alpha, "alpha")

    @property
    def phases(self) -> tuple[Phase, ...]:
        """One: everything learns together."""
        return (Phase("train", ("backbone", "classifier", "confidence", "auxiliary")),)

    def confidence(self, output: Output) -> Tensor:
        """Logit of the selection.

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

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:
        return {"confidence": _Selection(width), "auxiliary": nn.Linear(width, classes)}

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        selection = wide(needed(output, "confidence"))
        losses = functional.cross_entropy(wide(output.logits), labels, reduction="none")
        # g over its sum, in log space: a batch that selects nothing has a risk all the same.
        share = functional.softmax(functional.logsigmoid(selection), dim=0)
        risk = (share * losses).sum()
        missing = (self.coverage - selection.sigmoid().mean()).clamp(min=0.0)
        auxiliary = functional.cross_entropy(wide(needed(output, "auxiliary")), labels)
        selective = risk + self.penalty * missing**2
        return self.alpha * selective + (1.0 - self.alpha) * auxiliary


def _share(x: float, name: str) -> float:
    if checks.fraction(x, name) == 0.0:
        msg = f"`{name}` must be above 0 and at most 1; got {x!r}"
        raise DomainError(msg)
    return float(x)
