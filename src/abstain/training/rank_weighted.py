"""Train for the area itself: the mean loss, each sample weighted by the rank of its confidence."""

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

#: Largest number of confidences in a queue, which is sorted at each step.
_LARGEST_QUEUE = 10_000_000


def _uncompiled(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that `torch.compile` must not trace.

    Ranks are looked up in tables in host memory, which cannot be compiled. The import behind
    `torch.compiler.disable` takes a second, so it is used only during compilation.
    """
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
    r"""Compute an area under a risk-coverage curve as a loss to train with.

    Answers: how large is the area on this batch, and which way do the losses (and with `soft` the
    confidences) have to move to make it smaller?

    Parameters
    ----------
    confidence : Tensor of shape (n,)
        Higher means more trusted. With hard ranks only the order matters and no gradient flows
        back; with `soft` it does.
    loss : Tensor of shape (n,)
        Any loss. Detach it to train the ranking alone.
    weights : str or callable, default="aurc"
        "aurc", "aurc-log", "sele", "augrc", "partial-aurc", "partial-augrc", or a function from
        ascending ranks (a tensor; 1 is the least confident) and their number n to weights.
    between : tuple of float, optional
        The coverages (low, high) of a partial area; required for partial areas only.
    soft : float, optional
        Rank by degrees, with this temperature as a share of the standard deviation of the
        confidences; 0.1 is a start. By default ranks are whole numbers, without a gradient.
    recent : Tensor of shape (m,), optional
        Confidences of earlier batches, finite, to rank among as well. No gradient.
    weight : Tensor of shape (n,), optional
        Frequency weights, for hard ranks, named `weights` and no `recent`: an integer weight
        counts a sample that many times, 0 leaves it out.
    gather : bool, default=False
        Rank among the samples of all processes of `torch.distributed`. Every process must call.

    Returns
    -------
    Tensor without axes
        Lower is better, in the precision of `loss`, at least float32. Without `soft` and `recent`
        the value is that of the metric: `aurc` with the estimator "plugin", "log" or "sele",
        `augrc`, `partial_aurc` or `partial_augrc`. With `gather` it is the value of all samples.

    Raises
    ------
    InputError
        An unknown name, options that do not go together, something that is no tensor.
    ShapeError
        No sample, or vectors of different lengths.
    DomainError
        A coverage outside [0, 1], a temperature that is not above 0, a bad `weight`.

    Notes
    -----
    The value is ``sum_i phi(r_i) loss_i / n`` with the weights phi of the metrics, computed by the
    same kernel. Ties share the mean of their weights, so the order of the rows never matters. A
    soft rank is ``1/2 + sum_j sigmoid((c_i - c_j) / T)``; phi is then the same function of a real
    rank: for "aurc" digamma(n + 1) - digamma(n - r + 1). As the temperature goes to 0 the value
    goes to the hard one, if no confidences are tied; a tie gets the weight at its mean rank.

    NaN or infinity among the confidences gives NaN: there are no ranks among them.

    Cost: a sort and two searches; with `soft` an n x (n + m) table.

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

    With soft ranks a step against the gradient lowers the confidence of the failures:

    >>> rank_weighted_loss(confidence, loss, weights="augrc", soft=0.5).backward()
    >>> (confidence.grad > 0).tolist()
    [False, True, False, True]
    """
    area = RankWeightedMean(check_weighting(weights, between), check_temperature(soft))
    if recent is not None:
        _check_recent(recent)
    if weight is not None:
        area.check_no_weight(has_recent=recent is not None)
    batch, precision = build_batch(
        confidence, loss, weight, gather=gather and has_several_processes()
    )
    earlier = None
    if recent is not None and len(recent):
        earlier = recent.detach().to(batch.confidence)
    out: Tensor = _uncompiled(area.value, batch, earlier, precision)
    return with_gradient_error(out, confidence)


class RankWeightedLoss(torch.nn.Module):
    r"""Train a classifier for an area under its risk-coverage curve.

    The loss is the mean over the batch of the sample losses, weighted by the rank of the
    confidence: a failure with a higher confidence has a larger weight. In training and in
    evaluation, and for any batch size, the value equals that of the metric.

    Parameters
    ----------
    weights : str or callable, default="aurc"
        "aurc" (harmonic), "aurc-log", "sele", "augrc", "partial-aurc", "partial-augrc", or a
        function from ascending ranks (a float tensor; 1 is the least confident) and their number n
        to weights.
    score : str or callable, default="msr"
        The confidence: the name of a score that requires only logits, with or without a temperature
        ("msr@T=2"), or a function from logits (n, K) to (n,).
    base : {"cross-entropy", "zero-one", "brier"} or callable, default="cross-entropy"
        The loss of a sample: a name, or a function from (logits, labels) to (n,). "zero-one" has
        no gradient, so `backward` raises an error: use it for evaluation, or with `soft` to train
        the ranking.
    between : tuple of float, optional
        The coverages (low, high) of a partial area; required for partial areas only.
    soft : float, optional
        Temperature of soft ranks, which give the confidence a gradient, as a share of the standard
        deviation of the confidences; start with 0.1. By default, ranks are integers without a
        gradient, as in the paper.
    queue : int, default=0
        Number of confidences of recent training batches among which a batch is also ranked, so that
        the ranks in a small batch approximate those of the population. The queue is part of the
        state dict and is filled only during training.
    gather : {"auto", False}, default="auto"
        "auto" ranks the samples among those of all processes of `torch.distributed` during
        training, and scales the gradient for the averaging of DDP and FSDP.

    Raises
    ------
    InputError
        If a name is unknown or options exclude each other. In `forward`: if labels or logits have a
        wrong shape, if the batch is empty, or, on the CPU, if labels are out of range.
    DomainError
        If a coverage is outside [0, 1] or a temperature is not positive.

    Notes
    -----
    Scores are computed in float64 on a scale that does not saturate (log-odds for "msr"), and
    losses at least in float32, for any precision of the logits. The result is float32 or float64.
    With NaN or infinite logits, the result is NaN, as for cross-entropy, so
    `torch.amp.GradScaler` skips the step; such values are not added to the queue.

    The confidences in the queue come from earlier models: with batch size b, up to queue/b steps
    earlier. Cost: see the page on training.

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
        super().__init__()
        self._area = RankWeightedMean(check_weighting(weights, between), check_temperature(soft))
        self._score, self._base = score_of_logits(score), base_loss(base)
        size = _queue_size(queue)
        self.recent = RecentConfidences(size) if size else None
        if gather not in ("auto", False):
            raise InputError(f"`gather` must be 'auto' or False; got {gather!r}")
        self._gather = gather == "auto"
        # Options for `extra_repr`; optional ones only if they differ from the default.
        self._options: dict[str, Any] = {"weights": weights, "score": score, "base": base}
        optional = {"between": between, "soft": soft, "gather": None if self._gather else False}
        self._options |= {name: value for name, value in optional.items() if value is not None}

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
            Class scores before the softmax.
        labels : Tensor of shape (n,)
            Class codes, or the labels that a custom `base` requires.
        weight : Tensor of shape (n,), optional
            Frequency weights; only with hard ranks, named `weights` and no queue.

        Returns
        -------
        Tensor without axes
            Lower is better.
        """
        out: Tensor = _uncompiled(self._value, logits, labels, weight)
        return out

    def _value(self, logits: Tensor, labels: Tensor, weight: Tensor | None) -> Tensor:
        _check_logits(logits)
        if weight is not None:
            self._area.check_no_weight(has_recent=self.recent is not None)
        # Hard ranks have no gradient, so the score need not be recorded.
        with torch.set_grad_enabled(self._area.soft is not None and torch.is_grad_enabled()):
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
            The options.
        """
        return ", ".join(f"{name}={x!r}" for name, x in self._options.items())


def _queue_size(queue: Any) -> int:
    if queue == 0 and not isinstance(queue, bool):
        return 0
    return int(checks.fraction(checks.positive_int(queue, "queue"), "queue", high=_LARGEST_QUEUE))


def _check_recent(recent: Any) -> None:
    if not isinstance(recent, Tensor) or recent.ndim != 1:
        actual = tuple(recent.shape) if isinstance(recent, Tensor) else type(recent).__name__
        raise InputError(
            f"`recent` must be a tensor of earlier confidences, shape (m,); got {actual}"
        )


def _check_logits(logits: Any) -> None:
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
