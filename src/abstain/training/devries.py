"""DeVries & Taylor: a confidence branch that pays for hints about the label."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.training._processes import mean_over_processes
from abstain.training.objective import Objective
from abstain.training.outputs import Output, needed, wide, widest
from abstain.training.phases import Phase
from abstain.typing import Rng

#: What the authors' code multiplies or divides the price by after each step.
_CHEAPER, _DEARER = 1.0 / 1.01, 1.0 / 0.99


class DeVries(Objective):
    """DeVries & Taylor: ask for hints where unsure, and pay for them.

    With p the softmax, c in (0, 1) the confidence of a branch and y the label as one-hot vector,
    the prediction is moved toward the label where the network is unsure, ``p' = c p + (1 - c) y``,
    and the loss is the mean of ``-log p'[y]`` plus lambda times the mean of ``-log c``. Lambda,
    the price of hints, rises after a step in which more was asked for than the budget, and falls
    after one in which less was.

    Parameters
    ----------
    budget : float, default=0.3
        What the mean of ``-log c`` is held near, above 0. The larger, the more hints, and the
        weaker the classifier.
    price : float, default=0.1
        The lambda of the first step, at least 0; with 0 hints stay free.
    hinted : float, default=0.5
        Chance that a sample of a batch is given its hint, in [0, 1]; the others are trained on p.
        New draws at each step. Half is the paper's; it keeps the classifier learning.
    rng : int, numpy.random.Generator or None
        As in `Objective`; also draws who is hinted.

    Attributes
    ----------
    multiplier : torch.Tensor
        The present lambda, a buffer without axes.

    Raises
    ------
    DomainError
        An option outside its range.

    Notes
    -----
    Its confidence is the logit of c. After a step lambda is divided by 0.99 if the mean of
    ``-log c`` is at least the budget, by 1.01 otherwise, as in the authors' code; processes that
    train together share that mean. In eval mode every sample is hinted and lambda stays. Computed
    as ``-logaddexp(log c + log p[y], log(1 - c))``, where the authors clip at 1e-12.

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
            msg = f"`price` must not be negative; got {price!r}"
            raise DomainError(msg)
        self.hinted = checks.fraction(hinted, "hinted")
        self.register_buffer("multiplier", torch.tensor(float(price), dtype=torch.float32))
        # On the CPU whatever the device, so that a seed gives the same hints everywhere.
        self._generator = torch.Generator().manual_seed(self._seed)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """One: everything learns together."""
        return (Phase("train", ("backbone", "classifier", "confidence")),)

    def confidence(self, output: Output) -> Tensor:
        """Logit of the confidence branch.

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

    def get_extra_state(self) -> dict[str, Any]:
        """Return the phase and the state of the generator.

        Returns
        -------
        dict
            Plain values and a tensor.
        """
        return {**super().get_extra_state(), "generator": self._generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take over what `get_extra_state` returned.

        Parameters
        ----------
        state : dict
            As returned there.
        """
        super().set_extra_state(state)
        self._generator.set_state(state["generator"].cpu())

    def _branches(self, width: int, classes: int) -> dict[str, nn.Module]:  # noqa: ARG002
        return {"confidence": nn.Linear(width, 1)}

    def _loss(self, output: Output, labels: Tensor, index: Tensor | None) -> Tensor:  # noqa: ARG002
        confidence = wide(needed(output, "confidence"))
        log_p = functional.log_softmax(wide(output.logits), dim=1)
        plain = log_p.gather(1, labels[:, None])[:, 0]
        log_c = functional.logsigmoid(confidence)
        hinted = torch.logaddexp(log_c + plain, functional.logsigmoid(-confidence))
        if self.training:
            hinted = torch.where(self._drawn(len(labels)).to(hinted.device), hinted, plain)
        asked = -log_c.mean()
        # A copy: the buffer changes before the backward pass reads it.
        price = self.multiplier.to(asked.device, asked.dtype, copy=True)
        if self.training:
            self._reprice(asked.detach())
        return price * asked - hinted.mean()

    def _drawn(self, n: int) -> Tensor:
        return torch.rand(n, generator=self._generator) < self.hinted

    def _reprice(self, asked: Tensor) -> None:
        over = mean_over_processes(asked) >= self.budget
        change = torch.where(over, _DEARER, _CHEAPER)
        self.multiplier.mul_(change.to(self.multiplier))
