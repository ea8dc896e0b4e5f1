"""DeepGamblers and self-adaptive training, which add a class "abstain" to a classifier."""

import math
import warnings
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from abstain._foundation import checks
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.training._processes import gather_vectors
from abstain.training.heads import Output, at_least_float32, required_field, to_widest_type
from abstain.training.kind import ObjectiveKind
from abstain.training.objective import ObjectiveWithWarmUp
from abstain.typing import Rng

#: Rewards from which FD-Shifts (Jaeger et al. 2023) selects on validation data.
REWARDS = (2.2, 3.0, 4.5, 6.0, 10.0, 12.0, 15.0, 20.0)


class _Abstaining(ObjectiveWithWarmUp):
    """Base class of objectives with an additional class "abstain"."""

    def confidence(self, output: Output) -> Tensor:
        """Compute the log-odds of not abstaining.

        Parameters
        ----------
        output : Output
            Output of the head for n samples.

        Returns
        -------
        torch.Tensor of shape (n,)
            Confidences in float64; higher is more confident.
        """
        abstention = to_widest_type(required_field(output, "abstention"))
        return torch.logsumexp(to_widest_type(output.logits), dim=1) - abstention

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:  # noqa: ARG002
        return {"abstention": nn.Linear(width, 1)}


def _log_probabilities(output: Output, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log-probabilities of the label and of abstention, each of shape (n,)."""
    abstention = at_least_float32(required_field(output, "abstention"))[:, None]
    all_logits = torch.cat([at_least_float32(output.logits), abstention], dim=1)
    log_p = functional.log_softmax(all_logits, dim=1)
    log_p_label = log_p.gather(1, labels[:, None])[:, 0]
    log_p_abstention = log_p[:, -1]
    return log_p_label, log_p_abstention


class DeepGamblers(_Abstaining):
    """DeepGamblers, which adds a class "abstain" to the classifier.

    Let p be the softmax over K classes and the class "abstain". The loss is the mean of
    ``-log(p[y] + p[abstain] / o)``, where o is the reward.

    Parameters
    ----------
    reward : float, default=2.2
        Reward o, above 1. Abstention is optimal if all classes have a probability below 1 / o. A
        smaller reward leads to more abstentions. If the reward is above K, abstention is never
        optimal.
    warm_up : float, default=1/3
        Share of the epochs that first train with cross-entropy over the K classes. If the reward is
        small, training without a warm-up may fail. The paper uses 100 of 300 epochs on CIFAR-10 for
        rewards up to 6.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Raises
    ------
    DomainError
        If the reward is not above 1, or if the warm-up is outside [0, 1).

    Warns
    -----
    UserWarning
        If the reward exceeds the number of classes of the head.

    Notes
    -----
    The confidence is the log-odds of the reservation score ``1 - p[abstain]``. `class_logits` omits
    the class "abstain".

    FD-Shifts also considers rewards above the number of classes (Jaeger et al. 2023).

    References
    ----------
    Liu et al. (2019), Deep Gamblers: Learning to Abstain with Portfolio Theory,
    https://arxiv.org/abs/1907.00208.

    Jaeger et al. (2023), A Call to Reflect on Evaluation Practices for Failure Detection in Image
    Classification, https://arxiv.org/abs/2211.15259, appendix E (rewards).

    Examples
    --------
    >>> import torch
    >>> from abstain.training import DeepGamblers, Output
    >>> p = torch.tensor([[0.5, 0.1, 0.4]])
    >>> output = Output(p[:, :2].log(), torch.zeros(1, 4), abstention=p[:, 2].log())
    >>> objective = DeepGamblers(reward=2.0, warm_up=0.0)
    >>> round(objective(output, torch.tensor([0])).neg().exp().item(), 4)
    0.7
    >>> round(objective.confidence(output).sigmoid().item(), 4)
    0.6
    """

    main_phase = ("gamble", ("backbone", "classifier", "abstention"))

    def __init__(self, *, reward: float = 2.2, warm_up: float = 1.0 / 3.0, rng: Rng = None) -> None:
        super().__init__(warm_up=warm_up, rng=rng)
        self.reward = checks.number(reward, "reward")
        if self.reward <= 1.0:
            raise DomainError(f"`reward` must be above 1; got {reward!r}")

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:
        """Return the branch for abstention, and warn if abstention is never optimal."""
        if self.reward > classes:
            msg = (
                f"`reward` {self.reward:g} is above the number of classes, {classes}: at the "
                "optimum the network never abstains, as an even bet on all classes always pays "
                f"more. Choose a reward of at most {classes} if it should abstain."
            )
            warnings.warn(msg, stacklevel=2)
        return super()._branches(width, classes)

    def _loss_after_warm_up(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        log_p_label, log_p_abstention = _log_probabilities(output, labels)
        log_returns = torch.logaddexp(log_p_label, log_p_abstention - math.log(self.reward))
        return -log_returns.mean()


#: Upper limit of sample indices. Larger numbers are probably identifiers instead of indices.
_MAX_INDEX = 2**32


class SelfAdaptiveTraining(_Abstaining):
    """Self-adaptive training, which moves improbable labels to an additional class "abstain".

    Each training sample i has a target t_i, initially 1. Let q_i[y_i] be the probability of the
    label y_i of sample i. In training, the targets are updated by ``t_i <- momentum t_i + (1 -
    momentum) q_i[y_i]``. Let p be the softmax over K classes and the class "abstain". The loss is
    the mean of ``-(t_i log p_i[y_i] + (1 - t_i) log p_i[abstain])``.

    Parameters
    ----------
    momentum : float, default=0.99
        Momentum of the targets, in [0, 1]. With a larger momentum, the targets change more slowly.
    warm_up : float, default=0
        Share of the epochs that first train with cross-entropy over the K classes. The paper uses
        no warm-up for selective classification.
    rng : int, numpy.random.Generator or None
        As in `Objective`.

    Attributes
    ----------
    target : torch.Tensor
        Targets of the training samples by index, on the device of the objective.

    Raises
    ------
    DomainError
        If an option is out of range.

    Notes
    -----
    The confidence is the log-odds of ``1 - p[abstain]``. As in the authors' code, q is the softmax
    over the K classes, without "abstain". In training, pass the `index` of the samples, preferably
    on the CPU. In eval mode, all targets are 1 and no index is needed. In distributed training, all
    processes have the same targets.

    References
    ----------
    Huang et al. (2020), Self-Adaptive Training: beyond Empirical Risk Minimization,
    https://arxiv.org/abs/2002.10319; code: https://github.com/LayneH/SAT-selective-cls.

    Examples
    --------
    >>> import torch
    >>> from abstain.training import Output, SelfAdaptiveTraining
    >>> objective = SelfAdaptiveTraining(momentum=0.9)
    >>> output = Output(torch.zeros(1, 2), torch.zeros(1, 4), abstention=torch.zeros(1))
    >>> loss = objective(output, torch.tensor([0]), index=torch.tensor([2]))
    >>> [round(t, 4) for t in objective.target.tolist()]
    [1.0, 1.0, 0.95]
    """

    needs_index = True
    main_phase = ("adapt", ("backbone", "classifier", "abstention"))
    target: Tensor

    def __init__(self, *, momentum: float = 0.99, warm_up: float = 0.0, rng: Rng = None) -> None:
        super().__init__(warm_up=warm_up, rng=rng)
        self.momentum = checks.fraction(momentum, "momentum")
        self.register_buffer("target", torch.ones(0))

    def _loss_after_warm_up(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:
        """Update the targets of the batch in training, and return the mean loss."""
        log_p_label, log_p_abstention = _log_probabilities(output, labels)
        if not self.training:
            return -log_p_label.mean()
        if index is None:
            raise MissingInputError(
                "`index` must contain the indices of the training samples; got None. Self-adaptive "
                "training stores a target for each: let the data set return (x, label, index)."
            )
        self._update_targets(output.logits.detach(), labels, index)
        target = self.target[index.to(self.target.device)].to(log_p_label)
        return -(target * log_p_label + (1.0 - target) * log_p_abstention).mean()

    def _update_targets(self, logits: Tensor, labels: Tensor, index: Tensor) -> None:
        """Update the targets of the samples in the batches of all processes."""
        probabilities = functional.softmax(at_least_float32(logits), dim=1)
        label_probability = probabilities.gather(1, labels[:, None])[:, 0]
        all_indices = gather_vectors(index.to(label_probability.device))
        all_probabilities = gather_vectors(label_probability).to(self.target)
        self._grow(all_indices)
        all_indices = all_indices.to(self.target.device)
        target = self.target[all_indices]
        # The optimizer skips a step whose logits overflow, so NaN must not enter the targets.
        is_finite = torch.isfinite(all_probabilities)
        all_probabilities = torch.where(is_finite, all_probabilities, target)
        updated = self.momentum * target + (1.0 - self.momentum) * all_probabilities
        # The mean does not depend on the order of samples that occur twice in a batch.
        self.target.scatter_reduce_(0, all_indices, updated, reduce="mean", include_self=False)

    def _grow(self, index: Tensor) -> None:
        """Extend the buffer of targets to the largest index."""
        min_index, max_index = (int(x) for x in index.aminmax())
        if min_index < 0:
            raise InputError(f"`index` must not be negative; got {min_index}")
        if max_index >= _MAX_INDEX:
            raise InputError(
                f"`index` must count the training samples from 0, below {_MAX_INDEX:,}; got "
                f"{max_index:,}"
            )
        n_missing = max_index + 1 - len(self.target)
        if n_missing > 0:
            self.target = torch.cat([self.target, self.target.new_ones(n_missing)])

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        saved = state_dict.get(f"{prefix}target")
        if saved is not None:
            self.target = self.target.new_ones(len(saved))
        super()._load_from_state_dict(state_dict, prefix, *args)


DEEP_GAMBLERS: Final = ObjectiveKind(
    "deep-gamblers",
    "DeepGamblers",
    DeepGamblers,
    "An additional class keeps the stake: abstention is optimal if no class is probable enough.",
    "log-odds of not abstaining (reservation score)",
    "Liu et al. (2019), https://arxiv.org/abs/1907.00208",
    {"reward": REWARDS},
)

SELF_ADAPTIVE: Final = ObjectiveKind(
    "self-adaptive",
    "Self-adaptive training",
    SelfAdaptiveTraining,
    "Labels that the network doubts become abstentions.",
    "log-odds of not abstaining",
    "Huang et al. (2020), https://arxiv.org/abs/2002.10319",
    {"momentum": (0.99,)},
)
