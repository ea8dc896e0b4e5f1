"""Objectives with a confidence branch: ConfidNet, DeVries & Taylor, and SelectiveNet."""

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
#: Learning rate of Adam in the fine-tuning phase.
_FINE_RATE = 1e-6


class _Branched(Objective):
    """Base class of objectives with a branch for the confidence."""

    def confidence(self, output: Output) -> Tensor:
        """Return the logit of the confidence branch.

        Parameters
        ----------
        output : Output
            Output of the head for n samples.

        Returns
        -------
        torch.Tensor of shape (n,)
            Confidences in float64; higher is more confident.
        """
        return to_widest_type(required_field(output, "confidence"))


class ConfidNet(_Branched):
    """ConfidNet, which trains a branch to predict the probability of the true class.

    The first phase trains a classifier with cross-entropy. The second phase freezes the classifier
    and trains a branch with output c on the features. The loss of the second phase is the mean of
    ``(sigmoid(c) - p[y])^2``, where p is the softmax of the classifier. An optional third phase
    trains the branch together with a copy of the backbone.

    Parameters
    ----------
    confidence_share : float, default=0.45
        Share of the epochs that train the branch. FD-Shifts uses 200 of 450 epochs.
    fine_tune : float, default=0
        Share of the epochs in the third phase, whose learning rate is 1e-6. FD-Shifts uses 20 of
        470 epochs (0.043). The third phase adds a copy of the backbone, which doubles memory and
        prediction cost.
    hidden : int, default=400
        Width of the four hidden layers of the branch.
    learning_rate : float, default=1e-4
        Learning rate of Adam in the second phase. The default is that of the paper.
    failure_weight : float, default=1
        Weight of incorrect predictions in the loss of the branch. In the authors' code, this option
        is called `weighting`.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Raises
    ------
    DomainError
        If a share is outside (0, 1), or if no epochs remain for the classifier.
    InputError
        If `hidden` is not a positive integer.

    Notes
    -----
    In the second phase, the statistics of batch norm are fixed and dropout is on. In the third
    phase, batch norm is also fixed and dropout is off. Both settings follow the authors' code. The
    branch learns little if the classifier has no errors on the training set.

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
        """Validate and store the options."""
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
        """The classifier phase, the branch phase and, if its share is positive, fine-tuning."""
        classifier_share = 1.0 - self.confidence_share - self.fine_tune
        classifier = Phase("classifier", trains=CLASSIFIER, share=classifier_share)
        branch = Phase(
            "confidence",
            trains=("confidence",),
            share=self.confidence_share,
            learning_rate=self.learning_rate,
        )
        if self.fine_tune == 0.0:
            return classifier, branch
        fine_tuning = Phase(
            "fine-tune",
            trains=("confidence", "twin"),
            share=self.fine_tune,
            dropout=False,
            learning_rate=_FINE_RATE,
        )
        return classifier, branch, fine_tuning

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:  # noqa: ARG002
        return {"confidence": fully_connected(width, self.hidden, _BRANCH_LAYERS)}

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        """Return the cross-entropy (first phase) or the squared error of the branch."""
        if self.phase.name == "classifier":
            return cross_entropy(output, labels)
        logits = at_least_float32(output.logits).detach()
        probabilities = functional.softmax(logits, dim=1)
        target = probabilities.gather(1, labels[:, None])[:, 0]
        confidence = at_least_float32(required_field(output, "confidence"))
        squared_error = (confidence.sigmoid() - target) ** 2
        if self.failure_weight != 1.0:
            is_correct = logits.argmax(dim=1) == labels
            squared_error = squared_error.where(is_correct, self.failure_weight * squared_error)
        return squared_error.mean()


#: Factors by which the authors' code decreases or increases the price after each step.
_PRICE_DECREASE, _PRICE_INCREASE = 1.0 / 1.01, 1.0 / 0.99


class DeVries(_Branched):
    """The method of DeVries & Taylor, which trains a confidence branch with hints.

    Let p be the softmax, c in (0, 1) the output of the branch, and y the one-hot label. A hint is
    the mixture ``p' = c p + (1 - c) y``, which contains information about the label. The loss is
    the mean of ``-log p'[y]`` plus lambda times the mean of ``-log c``. After each step, lambda
    increases if the mean of ``-log c`` is at least the budget, and decreases otherwise.

    Parameters
    ----------
    budget : float, default=0.3
        Target value of the mean of ``-log c``, above 0.
    price : float, default=0.1
        Initial factor lambda, at least 0. A factor of 0 remains 0.
    hinted : float, default=0.5
        Probability that the loss of a sample uses the hint p' instead of p, in [0, 1]. The default
        is that of the paper.
    rng : int, numpy.random.Generator or None
        As in `Objective`. The generator also selects the samples with hints.

    Attributes
    ----------
    multiplier : torch.Tensor
        Current factor lambda, a scalar buffer.

    Raises
    ------
    DomainError
        If an option is out of range.

    Notes
    -----
    The confidence is the logit of c. As in the authors' code, lambda is divided by 0.99 for an
    increase and by 1.01 for a decrease. In eval mode, hints are used for all samples and lambda is
    constant. In distributed training, the mean of ``-log c`` is computed over all processes.
    Probabilities are not clipped, in contrast to the authors' code.

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
        """Validate and store the options, and create the buffer and the random number generator."""
        super().__init__(rng=rng)
        self.budget = checks.positive(budget, "budget")
        if checks.number(price, "price") < 0.0:
            raise DomainError(f"`price` must not be negative; got {price!r}")
        self.hinted = checks.fraction(hinted, "hinted")
        self.register_buffer("multiplier", torch.tensor(float(price), dtype=torch.float32))
        # The generator is always on the CPU, so that a seed gives the same hints on every device.
        self._generator = torch.Generator().manual_seed(self._seed)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """A single phase, in which all parts are trained."""
        return (Phase("train", ("backbone", "classifier", "confidence")),)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the name of the phase and the state of the generator.

        Returns
        -------
        dict
            The name of the phase, and the state of the generator as a tensor.
        """
        return {**super().get_extra_state(), "generator": self._generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore the state that `get_extra_state` returned.

        Parameters
        ----------
        state : dict
            The result of `get_extra_state`.
        """
        super().set_extra_state(state)
        self._generator.set_state(state["generator"].cpu())

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:  # noqa: ARG002
        return {"confidence": nn.Linear(width, 1)}

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        """Return the cross-entropy with hints plus lambda times the mean of ``-log c``."""
        confidence = at_least_float32(required_field(output, "confidence"))
        log_p = functional.log_softmax(at_least_float32(output.logits), dim=1)
        log_p_label = log_p.gather(1, labels[:, None])[:, 0]
        log_c = functional.logsigmoid(confidence)
        log_one_minus_c = functional.logsigmoid(-confidence)
        log_likelihood = torch.logaddexp(log_c + log_p_label, log_one_minus_c)
        if self.training:
            has_hint = torch.rand(len(labels), generator=self._generator) < self.hinted
            has_hint = has_hint.to(log_likelihood.device)
            log_likelihood = torch.where(has_hint, log_likelihood, log_p_label)
        hint_amount = -log_c.mean()
        # The price is copied, because the buffer changes before the backward pass reads it.
        price = self.multiplier.to(hint_amount.device, hint_amount.dtype, copy=True)
        if self.training:
            self._update_price(hint_amount)
        return price * hint_amount - log_likelihood.mean()

    def _update_price(self, hint_amount: Tensor) -> None:
        """Increase lambda if the mean of ``-log c`` is at least the budget, else decrease it."""
        is_over_budget = mean_over_processes(hint_amount) >= self.budget
        factor = torch.where(is_over_budget, _PRICE_INCREASE, _PRICE_DECREASE)
        self.multiplier.mul_(factor.to(self.multiplier))


#: Target coverages in the tables of the paper.
COVERAGES = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


class SelectiveNet(_Branched):
    """SelectiveNet, which trains a classifier and a selection function for a target coverage.

    Let f be the classifier, g in (0, 1) the selection, h an auxiliary classifier, and L the
    cross-entropy of a sample::

        coverage = mean(g)
        selective risk = mean(g L_f) / coverage
        loss = alpha (selective risk + penalty max(0, target - coverage)^2)
               + (1 - alpha) mean(L_h)

    Parameters
    ----------
    coverage : float, default=0.8
        Target coverage, in (0, 1]. In the paper, a separate network is trained for each coverage.
    penalty : float, default=32
        Factor of the squared difference between the target and a lower coverage, called lambda in
        the paper.
    alpha : float, default=0.5
        Weight of the selective loss, in (0, 1]. The weight of the auxiliary loss is 1 - alpha.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Raises
    ------
    DomainError
        If an option is out of range.

    Notes
    -----
    The confidence is the logit of g. The selective risk is divided by the coverage, as in the paper
    but not in the authors' code. Coverage and risk are computed from the local batch of each
    process, so they are noisy for small batches. If the batch has one sample, the batch norm of the
    selection uses its running statistics.

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
        """Validate and store the options."""
        super().__init__(rng=rng)
        self.coverage = _share(coverage, "coverage")
        self.penalty = checks.fraction(penalty, "penalty", high=float("inf"))
        self.alpha = _share(alpha, "alpha")

    @property
    def phases(self) -> tuple[Phase, ...]:
        """A single phase, in which all parts are trained."""
        return (Phase("train", ("backbone", "classifier", "confidence", "auxiliary")),)

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:
        return {"confidence": selection_branch(width), "auxiliary": nn.Linear(width, classes)}

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        """Return the weighted sum of the selective loss and the auxiliary loss."""
        selection = at_least_float32(required_field(output, "confidence"))
        auxiliary_logits = at_least_float32(required_field(output, "auxiliary"))
        losses = functional.cross_entropy(at_least_float32(output.logits), labels, reduction="none")
        # g is divided by its sum in log space, so that the risk exists even if all g are 0.
        normalized_selection = functional.softmax(functional.logsigmoid(selection), dim=0)
        selective_risk = (normalized_selection * losses).sum()
        missing_coverage = (self.coverage - selection.sigmoid().mean()).clamp(min=0.0)
        selective_loss = selective_risk + self.penalty * missing_coverage**2
        auxiliary_loss = functional.cross_entropy(auxiliary_logits, labels)
        return self.alpha * selective_loss + (1.0 - self.alpha) * auxiliary_loss


def _share(x: float, name: str) -> float:
    """Validate a number in (0, 1]."""
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
