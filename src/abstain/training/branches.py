"""Objectives with an additional branch: ConfidNet, DeVries & Taylor, SelectiveNet."""

from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.training._processes import mean_over_processes
from abstain.training.heads import (
    Output,
    at_least_float32,
    fully_connected,
    required_field,
    selection_branch,
    to_widest_type,
)
from abstain.training.kind import ObjectiveKind
from abstain.training.network import CLASSIFIER, Phase
from abstain.training.objective import Objective, cross_entropy
from abstain.typing import Rng

_BRANCH_LAYERS = 5
#: Learning rate of Adam in the third phase.
_FINE_RATE = 1e-6


class _Branched(Objective):
    """An objective whose head has a branch for the confidence."""

    def confidence(self, output: Output) -> Tensor:
        """Return the logit of the branch, that is of the confidence or of the selection.

        Parameters
        ----------
        output : Output
            Output of the head for n samples.

        Returns
        -------
        torch.Tensor of shape (n,)
            Float64; higher is more trusted.
        """
        return to_widest_type(required_field(output, "confidence"))


class ConfidNet(_Branched):
    """ConfidNet: a branch on the features learns the probability of the true class.

    The classifier is trained with cross-entropy first. Then it is frozen, and a branch with output
    c is trained with the mean of ``(sigmoid(c) - p[y])^2``, where p is the softmax of the frozen
    classifier. If `fine_tune` is positive, the branch and a copy of the backbone (the twin) are
    trained together after that.

    Parameters
    ----------
    confidence_share : float, default=0.45
        Share of the epochs that train the branch. FD-Shifts: 200 of 450.
    fine_tune : float, default=0
        Share of the epochs that fine-tune the branch with a copy of the backbone. The authors use a
        learning rate of 1e-6 and report a small gain; FD-Shifts: 20 of 470 epochs, 0.043. The
        default is 0, because the twin doubles the memory and the cost of every later prediction.
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
            raise DomainError(
                "`confidence_share` and `fine_tune` must leave epochs for the classifier; "
                f"got {confidence_share!r} + {fine_tune!r}"
            )
        self.hidden = checks.positive_int(hidden, "hidden")
        self.learning_rate = checks.positive(learning_rate, "learning_rate")
        self.failure_weight = checks.positive(failure_weight, "failure_weight")

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The classifier, the branch and, if requested, its fine-tuning."""
        classifier_share = 1.0 - self.confidence_share - self.fine_tune
        classifier = Phase("classifier", CLASSIFIER, share=classifier_share)
        branch = Phase(
            "confidence",
            ("confidence",),
            self.confidence_share,
            learning_rate=self.learning_rate,
        )
        if self.fine_tune == 0.0:
            return classifier, branch
        fine_tuning = Phase(
            "fine-tune",
            ("confidence", "twin"),
            self.fine_tune,
            dropout=False,
            learning_rate=_FINE_RATE,
        )
        return classifier, branch, fine_tuning

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:  # noqa: ARG002
        return {"confidence": fully_connected(width, self.hidden, _BRANCH_LAYERS)}

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        if self.phase.name == "classifier":
            return cross_entropy(output, labels)
        logits = at_least_float32(output.logits).detach()
        target = functional.softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
        square = (at_least_float32(required_field(output, "confidence")).sigmoid() - target) ** 2
        if self.failure_weight != 1.0:
            wrong = logits.argmax(dim=1) != labels
            square = square.where(~wrong, self.failure_weight * square)
        return square.mean()


#: Factors of the price after each step, from the authors' code.
_PRICE_DECREASE, _PRICE_INCREASE = 1.0 / 1.01, 1.0 / 0.99


class DeVries(_Branched):
    """DeVries & Taylor: the network requests hints of the label at a price.

    Let p be the softmax, c in (0, 1) the confidence of a branch and y the one-hot label. The
    prediction moves toward the label if the confidence is low: ``p' = c p + (1 - c) y``. The loss
    is the mean of ``-log p'[y]`` plus lambda times the mean of ``-log c``. Lambda, the price of
    hints, increases after a step whose mean of ``-log c`` is at least the budget, and decreases
    otherwise.

    Parameters
    ----------
    budget : float, default=0.3
        Target of the mean of ``-log c``, above 0. A larger budget gives more hints and a weaker
        classifier.
    price : float, default=0.1
        Initial lambda, at least 0. With 0, lambda stays 0.
    hinted : float, default=0.5
        Probability that a sample of a batch receives its hint, in [0, 1]; the other samples are
        trained with p. Samples are drawn again at each step. The paper uses one half, so that the
        classifier keeps learning.
    rng : int, numpy.random.Generator or None
        As in `Objective`; also selects the samples with hints.

    Attributes
    ----------
    multiplier : torch.Tensor
        The current lambda, a buffer without axes.

    Raises
    ------
    DomainError
        An option outside its range.

    Notes
    -----
    The confidence is the logit of c. After a step, lambda is divided by 0.99 if the mean of
    ``-log c`` is at least the budget, and by 1.01 otherwise, as in the authors' code. Processes
    that train together share that mean. In eval mode, every sample has its hint and lambda does not
    change. The loss is computed as ``-logaddexp(log c + log p[y], log(1 - c))``; the authors clip
    at 1e-12 instead.

    References
    ----------
    DeVries & Taylor (2018), Learning Confidence for Out-of-Distribution Detection in Neural
    Networks, https://arxiv.org/abs/1802.04865; code:
    https://github.com/uoguelph-mlrg/confidence_estimation.

    Examples
    --------
    >>> import torch
    >>> from abstain.training import DeVries, Output
    >>> objective = DeVries(price=0.0).eval()
    >>> logits, labels = torch.tensor([[0.0, 0.0]]), torch.tensor([0])
    >>> unsure = Output(logits, torch.zeros(1, 4), confidence=torch.tensor([0.0]))
    >>> round(objective(unsure, labels).neg().exp().item(), 4)
    0.75
    """

    multiplier: Tensor

    def __init__(
        self,
        *,
        budget: float = 0.3,
        price: float = 0.1,
        hinted: float = 0.5,
        rng: Rng = None,
    ) -> None:
        super().__init__(rng=rng)
        self.budget = checks.positive(budget, "budget")
        if checks.number(price, "price") < 0.0:
            raise DomainError(f"`price` must not be negative; got {price!r}")
        self.hinted = checks.fraction(hinted, "hinted")
        self.register_buffer("multiplier", torch.tensor(float(price), dtype=torch.float32))
        # Always on the CPU, so that a seed gives the same hints on every device.
        self._generator = torch.Generator().manual_seed(self._seed)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """A single phase that trains all parts together."""
        return (Phase("train", ("backbone", "classifier", "confidence")),)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the phase and the state of the generator.

        Returns
        -------
        dict
            Plain values and a tensor.
        """
        return {**super().get_extra_state(), "generator": self._generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore the state that `get_extra_state` returned.

        Parameters
        ----------
        state : dict
            The phase and the state of the generator.
        """
        super().set_extra_state(state)
        self._generator.set_state(state["generator"].cpu())

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:  # noqa: ARG002
        return {"confidence": nn.Linear(width, 1)}

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        confidence = at_least_float32(required_field(output, "confidence"))
        log_p = functional.log_softmax(at_least_float32(output.logits), dim=1)
        plain = log_p.gather(1, labels[:, None])[:, 0]
        log_c = functional.logsigmoid(confidence)
        hinted = torch.logaddexp(log_c + plain, functional.logsigmoid(-confidence))
        if self.training:
            gets_hint = torch.rand(len(labels), generator=self._generator) < self.hinted
            hinted = torch.where(gets_hint.to(hinted.device), hinted, plain)
        hint_amount = -log_c.mean()
        # A copy, because the buffer changes before the backward pass reads it.
        price = self.multiplier.to(hint_amount.device, hint_amount.dtype, copy=True)
        if self.training:
            is_over_budget = mean_over_processes(hint_amount) >= self.budget
            factor = torch.where(is_over_budget, _PRICE_INCREASE, _PRICE_DECREASE)
            self.multiplier.mul_(factor.to(self.multiplier))
        return price * hint_amount - hinted.mean()


#: Target coverages of the paper's tables.
COVERAGES = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


class SelectiveNet(_Branched):
    """SelectiveNet: learn which samples to accept at a target coverage and a low selective risk.

    Let f be the classifier, g in (0, 1) the selection and h an auxiliary classifier, all on the
    same features, and L the cross-entropy of a sample::

        coverage = mean(g)
        selective risk = mean(g L_f) / coverage
        loss = alpha (selective risk + penalty max(0, target - coverage)^2)
               + (1 - alpha) mean(L_h)

    Parameters
    ----------
    coverage : float, default=0.8
        The target, in (0, 1]. The network is best near it, so the paper trains one for each target.
    penalty : float, default=32
        The lambda of the paper, the weight of the missing coverage.
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
        """A single phase that trains all parts together."""
        return (Phase("train", ("backbone", "classifier", "confidence", "auxiliary")),)

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:
        return {"confidence": selection_branch(width), "auxiliary": nn.Linear(width, classes)}

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        selection = at_least_float32(required_field(output, "confidence"))
        losses = functional.cross_entropy(at_least_float32(output.logits), labels, reduction="none")
        # g over its sum, in log space: a batch that selects nothing has a risk all the same.
        share = functional.softmax(functional.logsigmoid(selection), dim=0)
        risk = (share * losses).sum()
        missing = (self.coverage - selection.sigmoid().mean()).clamp(min=0.0)
        auxiliary = functional.cross_entropy(
            at_least_float32(required_field(output, "auxiliary")), labels
        )
        selective = risk + self.penalty * missing**2
        return self.alpha * selective + (1.0 - self.alpha) * auxiliary


def _share(x: float, name: str) -> float:
    if checks.fraction(x, name) == 0.0:
        raise DomainError(f"`{name}` must be above 0 and at most 1; got {x!r}")
    return float(x)


CONFIDNET: Final = ObjectiveKind(
    "confidnet",
    "ConfidNet",
    ConfidNet,
    "A branch on a frozen classifier learns the probability of the true class.",
    "logit of the learned true class probability",
    "Corbière et al. (2019), https://arxiv.org/abs/1910.04851",
)

DEVRIES: Final = ObjectiveKind(
    "devries",
    "DeVries & Taylor",
    DeVries,
    "A branch asks for hints about the label, for a price that keeps them within a budget.",
    "logit of the confidence branch",
    "DeVries & Taylor (2018), https://arxiv.org/abs/1802.04865",
    {"budget": (0.3,)},
)

SELECTIVENET: Final = ObjectiveKind(
    "selectivenet",
    "SelectiveNet",
    SelectiveNet,
    "A selection is trained with the classifier for low risk at a target coverage.",
    "logit of the selection",
    "Geifman & El-Yaniv (2019), https://arxiv.org/abs/1901.09192",
    {"coverage": COVERAGES},
)
