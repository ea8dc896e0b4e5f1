"""Define `Head`, the last layers of a network, and `Output`, its result."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from abstain._foundation import checks
from abstain.errors import InputError, MissingInputError, ShapeError


class Output(NamedTuple):
    """The output of a network for a batch.

    Parameters
    ----------
    logits : torch.Tensor of shape (n, K)
        Logits of the classes. Their argmax is the prediction.
    features : torch.Tensor of shape (n, width)
        Features from the backbone, the input of the head.
    abstention : torch.Tensor of shape (n,), optional
        Logit of the additional class "abstain" (DeepGamblers, self-adaptive training).
    confidence : torch.Tensor of shape (n,), optional
        Logit of the confidence branch (ConfidNet, DeVries & Taylor, SelectiveNet).
    auxiliary : torch.Tensor of shape (n, K), optional
        Logits of an auxiliary classifier, which is used only in training (SelectiveNet).

    See Also
    --------
    Head : Computes the output from features.

    Examples
    --------
    >>> import torch
    >>> from abstain.training import Output
    >>> output = Output(logits=torch.tensor([[2.0, 0.0]]), features=torch.zeros(1, 4))
    >>> output.logits.argmax(1).tolist(), output.abstention is None
    ([0], True)
    """

    logits: Tensor
    features: Tensor
    abstention: Tensor | None = None
    confidence: Tensor | None = None
    auxiliary: Tensor | None = None


def check_output(output: Output) -> Output:
    """Return the output of a head, or raise an InputError for other objects."""
    if not isinstance(getattr(output, "logits", None), Tensor):
        argument: object = output
        raise InputError(
            "`output` must be the `Output` that `training.Network` or the head returns; "
            f"got {type(argument).__name__}. Logits alone: Output(logits, features=logits)."
        )
    return output


def required_field(output: Output, field: str) -> Tensor:
    """Return a required field of the output, or raise a MissingInputError."""
    value: Tensor | None = getattr(check_output(output), field)
    if value is None:
        raise MissingInputError(
            f"`output` must have `{field}` for this objective; got None. "
            "Make the head with the objective's own `head(width, classes)`."
        )
    return value


def at_least_float32(x: Tensor) -> Tensor:
    """Convert a tensor of half precision to float32. Keep float32 and float64."""
    return x.to(at_least_float32_type(x.dtype))


def at_least_float32_type(dtype: torch.dtype) -> torch.dtype:
    """Return float64 for float64, and float32 for all other types."""
    return dtype if dtype in {torch.float32, torch.float64} else torch.float32


def to_widest_type(x: Tensor) -> Tensor:
    """Convert a tensor to the widest floating-point type of its device."""
    return x.to(widest_type(x.device))


def widest_type(device: torch.device) -> torch.dtype:
    """Return float64, or float32 on Apple's devices."""
    return torch.float32 if device.type == "mps" else torch.float64


class Head(nn.Module):
    """A network head with a linear classifier and the branches of an objective.

    `Objective.head` creates the head. The submodule ``classifier`` is a `torch.nn.Linear` layer
    with K outputs.

    Parameters
    ----------
    width : int
        Number of features.
    classes : int
        Number of classes K, at least 2.
    abstention : torch.nn.Module, optional
        Module that maps features (n, width) to the logit of the class "abstain", (n, 1).
    confidence : torch.nn.Module, optional
        Module that maps features (n, width) to the logit of the confidence, (n, 1).
    auxiliary : torch.nn.Module, optional
        Module that maps features (n, width) to the logits of a second classifier, (n, K).

    Raises
    ------
    InputError
        If `width` or `classes` is not an integer or too small.

    See Also
    --------
    Network : A network that consists of a backbone and a head.

    Examples
    --------
    >>> import torch
    >>> from abstain import training
    >>> head = training.make("deep-gamblers", rng=0).head(8, 10)
    >>> output = head(torch.zeros(3, 8))
    >>> output.logits.shape, output.abstention.shape
    (torch.Size([3, 10]), torch.Size([3]))
    """

    def __init__(
        self,
        width: int,
        classes: int,
        *,
        abstention: nn.Module | None = None,
        confidence: nn.Module | None = None,
        auxiliary: nn.Module | None = None,
    ) -> None:
        """Store the size and the branches, and create the classifier."""
        super().__init__()
        self.width = width
        self.classifier = nn.Linear(width, classes)
        self.abstention = abstention
        self.confidence = confidence
        self.auxiliary = auxiliary

    def forward(self, features: Tensor, twin: Tensor | None = None) -> Output:
        """Compute the logits of the classifier and of each branch from features.

        Parameters
        ----------
        features : torch.Tensor of shape (n, width)
            Features from the backbone.
        twin : torch.Tensor of shape (n, width), optional
            Features from `Network.twin`, which replace `features` for the confidence branch.

        Returns
        -------
        Output
            The logits, the features, and the logit of each branch.

        Raises
        ------
        ShapeError
            If `features` has another shape.
        """
        if features.ndim != 2 or features.shape[1] != self.width:
            raise ShapeError(
                f"`features` must have shape (n, {self.width}); got {tuple(features.shape)}"
            )
        confidence_features = features if twin is None else twin
        return Output(
            logits=self.classifier(features),
            features=features,
            abstention=_unit(self.abstention, features),
            confidence=_unit(self.confidence, confidence_features),
            auxiliary=None if self.auxiliary is None else self.auxiliary(features),
        )


def _unit(branch: nn.Module | None, features: Tensor) -> Tensor | None:
    """Return the output of a branch, shape (n,), or None without the branch."""
    if branch is None:
        return None
    logits: Tensor = branch(features)
    return logits[:, 0]


def with_seed(make: Callable[[], Head], seed: int) -> Head:
    """Create a head with seeded initial weights, and restore the state of torch's generator."""
    state = torch.get_rng_state()
    try:
        # Unlike torch.manual_seed, this call does not reset the generators of other devices.
        torch.default_generator.manual_seed(seed)
        return make()
    finally:
        torch.set_rng_state(state)


def check_sizes(width: int, classes: int) -> tuple[int, int]:
    """Validate the numbers of features and classes."""
    width = checks.positive_int(width, "width")
    classes = checks.positive_int(classes, "classes")
    checks.fraction(classes, "classes", low=2, high=float("inf"))
    return width, classes


def fully_connected(width: int, hidden: int, layers: int) -> nn.Sequential:
    """Return fully connected layers with ReLU activations and a single output."""
    widths = [width] + [hidden] * (layers - 1)
    modules: list[nn.Module] = []
    for n_inputs, n_outputs in pairwise(widths):
        modules.append(nn.Linear(n_inputs, n_outputs))
        modules.append(nn.ReLU())
    modules.append(nn.Linear(widths[-1], 1))
    return nn.Sequential(*modules)


class SingleSampleBatchNorm(nn.BatchNorm1d):
    """Batch norm that uses running statistics for a batch of one sample."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize a batch (n, width)."""
        if len(x) > 1 or not self.training:
            return super().forward(x)
        return nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


#: Number of units in the hidden layer of a selection branch.
_SELECTION_WIDTH = 512


def selection_branch(width: int) -> nn.Sequential:
    """Return the selection branch of SelectiveNet (one hidden layer with batch norm)."""
    norm = SingleSampleBatchNorm(_SELECTION_WIDTH)
    # The authors divide the output of batch norm by 10, so that the selection starts near 1/2.
    nn.init.constant_(norm.weight, 0.1)
    return nn.Sequential(
        nn.Linear(width, _SELECTION_WIDTH), nn.ReLU(), norm, nn.Linear(_SELECTION_WIDTH, 1)
    )
