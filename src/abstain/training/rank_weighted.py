"""Training losses that are areas under a risk-coverage curve."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from abstain._foundation import checks
from abstain.confidence.registry import BASELINE
from abstain.errors import InputError, ShapeError
from abstain.training._area import (
    RankWeightedMean,
    RecentConfidences,
    build_batch,
    check_temperature,
    with_gradient_error,
)
from abstain.training._logits import BaseLoss, ScoreFunction, base_loss, score_of_logits
from abstain.training._processes import has_several_processes
from abstain.training._weights import WeightFunction, check_weighting

#: Maximum size of a queue, which is sorted at each step.
_LARGEST_QUEUE = 10_000_000


def _uncompiled(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function without compilation by `torch.compile`."""
    # Importing `torch.compiler.disable` takes a second, so it is used only during compilation.
    if torch.compiler.is_compiling():
        return torch.compiler.disable(function)(*args)  # type: ignore[no-untyped-call]
    return function(*args)


def rank_weighted_loss(
    confidence: Tensor,
    loss: Tensor,
    *,
    weights: str | WeightFunction = "aurc",
    between: tuple[float, float] | None = None,
    soft: float | None = None,
    recent: Tensor | None = None,
    weight: Tensor | None = None,
    gather: bool = False,
) -> Tensor:
    r"""Compute an area under the risk-coverage curve as a differentiable training loss.

    Parameters
    ----------
    confidence : Tensor of shape (n,)
        Confidences; higher is more confident. Without `soft`, gradients do not propagate to the
        confidences.
    loss : Tensor of shape (n,)
        Losses of any kind. To train only the ranking, detach the losses.
    weights : str or callable, default="aurc"
        "aurc", "aurc-log", "sele", "augrc", "partial-aurc", "partial-augrc", or a function of
        (ranks, n) that returns weights. The argument `ranks` is a tensor, in which rank 1 belongs
        to the least confident sample.
    between : tuple of float, optional
        Coverages (low, high), which are required for partial areas.
    soft : float, optional
        Temperature of soft ranks, relative to the standard deviation of the confidences. A good
        first value is 0.1. By default, ranks are integers without a gradient.
    recent : Tensor of shape (m,), optional
        Finite confidences of earlier batches, among which the samples are also ranked.
    weight : Tensor of shape (n,), optional
        Frequency weights. A sample with integer weight w is equivalent to w samples. Weights cannot
        be combined with `soft`, `recent` or a function as `weights`.
    gather : bool, default=False
        Whether to rank among the samples of all processes of `torch.distributed`. If `gather` is
        True, all processes must call the function.

    Returns
    -------
    Tensor without axes
        The area, as float32 or float64; lower is better. Without `soft` and `recent`, the area
        equals the metric: `aurc` with the estimator "plugin", "log" or "sele", `augrc`,
        `partial_aurc` or `partial_augrc`.

    Raises
    ------
    InputError
        If a name is unknown, options are incompatible, or an argument is not a tensor.
    ShapeError
        If there are no samples, or if lengths differ.
    DomainError
        If a coverage is outside [0, 1], the temperature is not positive, or a weight is invalid.

    Notes
    -----
    The value is ``sum_i phi(r_i) loss_i / n``, where r_i is the rank of sample i and phi is the
    weight function of the metric. With hard ranks, tied samples receive the mean of their weights.
    A soft rank is ``1/2 + sum_j sigmoid((c_i - c_j) / T)``. For "aurc", phi(r) is digamma(n + 1) -
    digamma(n - r + 1).

    If a confidence is NaN or infinite, the result is NaN. The cost is one sort and two searches, or
    n x (n + m) operations with `soft`.

    References
    ----------
    .. [1] Zhou et al. (2025), eq. 12-13 and 18, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> import torch
    >>> import abstain as ab
    >>> confidence = torch.tensor([0.9, 0.8, 0.7, 0.6], requires_grad=True)
    >>> loss = torch.tensor([0.0, 1.0, 0.0, 1.0])
    >>> rank_weighted_loss(confidence, loss, weights="augrc").item()
    0.1875
    >>> ab.augrc(confidence.detach(), loss)
    0.1875

    With soft ranks, a step against the gradient lowers the confidence of the failures:

    >>> rank_weighted_loss(confidence, loss, weights="augrc", soft=0.5).backward()
    >>> (confidence.grad > 0).tolist()
    [False, True, False, True]
    """
    area = RankWeightedMean(check_weighting(weights, between), check_temperature(soft))
    if recent is not None:
        _check_recent(recent)
    if weight is not None:
        area.check_no_weight(has_recent=recent is not None)
    is_gathered = gather and has_several_processes()
    batch, precision = build_batch(confidence, loss, weight, gather=is_gathered)
    recent_confidence = None
    if recent is not None and len(recent) > 0:
        recent_confidence = recent.detach().to(batch.confidence)
    value: Tensor = _uncompiled(area.value, batch, recent_confidence, precision)
    return with_gradient_error(value, confidence)


class RankWeightedLoss(torch.nn.Module):
    r"""A loss module that computes an area under the risk-coverage curve.

    The loss is a weighted mean of per-sample losses. The weights are functions of the ranks of the
    confidences. The weight increases with the rank, so confident failures contribute most.

    Parameters
    ----------
    weights : str or callable, default="aurc"
        "aurc", "aurc-log", "sele", "augrc", "partial-aurc", "partial-augrc", or a function of
        (ranks, n) that returns weights. The argument `ranks` is a tensor, in which rank 1 belongs
        to the least confident sample.
    score : str or callable, default="msr"
        Confidence score: the name of a score of logits, such as "msr" or "msr@T=2", or a function
        from logits (n, K) to confidences (n,).
    base : {"cross-entropy", "zero-one", "brier"} or callable, default="cross-entropy"
        Loss of a sample: a name, or a function from (logits, labels) to losses (n,). "zero-one" has
        no gradient. Use "zero-one" for evaluation, or with `soft` to train the ranking.
    between : tuple of float, optional
        Coverages (low, high), which are required for partial areas.
    soft : float, optional
        Temperature of soft ranks, relative to the standard deviation of the confidences. A good
        first value is 0.1. By default, ranks are integers without a gradient, as in the paper.
    queue : int, default=0
        Number of recent training confidences among which a batch is also ranked. The state dict
        contains the queue.
    gather : {"auto", False}, default="auto"
        Whether to rank among the samples of all processes of `torch.distributed` in training. The
        gradient is scaled so that averaging by DDP or FSDP is correct.

    Raises
    ------
    InputError
        If a name is unknown or options are incompatible. `forward` raises an InputError if logits
        or labels have a wrong shape, a batch is empty, or a label on the CPU is out of range.
    DomainError
        If a coverage is outside [0, 1], or if the temperature is not positive.

    Notes
    -----
    Scores are computed in float64, and losses with at least float32. If a logit is NaN or infinite,
    the loss is NaN, so that `torch.amp.GradScaler` skips the step.

    With batch size b, confidences in the queue are up to queue/b training steps old.

    References
    ----------
    .. [1] Zhou et al. (2025), A novel characterization of the population area under the risk
       coverage curve, eq. 12-13 and 18, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.5, 0.0]], requires_grad=True)
    >>> labels = torch.tensor([0, 0, 0])
    >>> RankWeightedLoss("aurc", base="zero-one")(logits, labels).item()
    0.2777777910232544
    >>> loss = RankWeightedLoss("augrc", soft=0.1, queue=256)
    >>> loss(logits, labels).backward()
    >>> loss
    RankWeightedLoss(
      weights='augrc', score='msr', base='cross-entropy', soft=0.1
      (recent): RecentConfidences(size=256, filled=3)
    )
    """

    def __init__(
        self,
        weights: str | WeightFunction = "aurc",
        *,
        score: str | ScoreFunction = BASELINE,
        base: str | BaseLoss = "cross-entropy",
        between: tuple[float, float] | None = None,
        soft: float | None = None,
        queue: int = 0,
        gather: Literal["auto", False] = "auto",
    ) -> None:
        """Validate and store the options."""
        super().__init__()
        self._area = RankWeightedMean(check_weighting(weights, between), check_temperature(soft))
        self._score = score_of_logits(score)
        self._base = base_loss(base)
        size = _queue_size(queue)
        self.recent = RecentConfidences(size) if size else None
        if gather not in ("auto", False):
            raise InputError(f"`gather` must be 'auto' or False; got {gather!r}")
        self._gather = gather == "auto"
        # Options for `extra_repr`, without options that have their default value.
        self._options: dict[str, Any] = {"weights": weights, "score": score, "base": base}
        if between is not None:
            self._options["between"] = between
        if soft is not None:
            self._options["soft"] = soft
        if gather is False:
            self._options["gather"] = gather

    def forward(
        self,
        logits: Tensor,
        labels: Tensor,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        logits : Tensor of shape (n, K)
            Logits of the classes.
        labels : Tensor of shape (n,)
            Class codes, or the labels that a custom function as `base` requires.
        weight : Tensor of shape (n,), optional
            Frequency weights, which are not supported with `soft`, with `queue` or with a function
            as `weights`.

        Returns
        -------
        Tensor without axes
            The loss; lower is better.
        """
        value: Tensor = _uncompiled(self._value, logits, labels, weight)
        return value

    def _value(self, logits: Tensor, labels: Tensor, weight: Tensor | None) -> Tensor:
        """Compute the loss of a batch, and append its confidences to the queue in training mode."""
        _check_logits(logits)
        if weight is not None:
            self._area.check_no_weight(has_recent=self.recent is not None)
        # Hard ranks have no gradient, so the operations of the score are not recorded.
        needs_gradient = self._area.soft is not None and torch.is_grad_enabled()
        with torch.set_grad_enabled(needs_gradient):
            confidence = self._score(logits)
        loss = self._base(logits, labels)
        is_gathered = self._gather and self.training and has_several_processes()
        batch, precision = build_batch(confidence, loss, weight, gather=is_gathered)
        recent = None if self.recent is None else self.recent.stored(batch.confidence)
        value = self._area.value(batch, recent, precision)
        if self.recent is not None and self.training:
            self.recent.add(batch.confidence)
        return with_gradient_error(value, logits)

    def extra_repr(self) -> str:
        """Return the options as text.

        Returns
        -------
        str
            The options and their values.
        """
        return ", ".join(f"{name}={x!r}" for name, x in self._options.items())


def _queue_size(queue: Any) -> int:
    """Validate the size of the queue."""
    if queue == 0 and not isinstance(queue, bool):
        return 0
    size = checks.positive_int(queue, "queue")
    checks.fraction(size, "queue", high=_LARGEST_QUEUE)
    return size


def _check_recent(recent: Any) -> None:
    if not isinstance(recent, Tensor) or recent.ndim != 1:
        actual = tuple(recent.shape) if isinstance(recent, Tensor) else type(recent).__name__
        raise InputError(
            f"`recent` must be a tensor of earlier confidences, shape (m,); got {actual}"
        )


def _check_logits(logits: Any) -> None:
    """Raise an error if logits are not a floating-point tensor of shape (n, K)."""
    if not isinstance(logits, Tensor):
        raise InputError(f"`logits` must be a torch.Tensor; got {type(logits).__name__}")
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise ShapeError(
            "`logits` must have shape (n, K) with at least two classes; got "
            f"{tuple(logits.shape)}. With z the logit of class 1, pass "
            "`torch.stack([torch.zeros_like(z), z], dim=1)`."
        )
    if not logits.dtype.is_floating_point:
        raise InputError(f"`logits` must be floating-point class scores; got {logits.dtype}")
