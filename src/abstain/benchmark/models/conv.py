"""A small convolutional network that trains in seconds on one core."""

from itertools import pairwise

from abstain.benchmark.models.backbone import (
    Backbone,
    Halving,
    Tensor,
    averaged,
    convolution,
    dropped,
    nn,
    start,
)


class SmallConv(Backbone):
    """Convolution, batch norm and ReLU, halved after each, then the mean over the picture.

    Parameters
    ----------
    channels : int, default=1
        Of the pictures.
    widths : tuple of int, default=(16, 32, 64)
        Feature maps of each stage.
    dropout : float, default=0
        The chance that a unit is left out: of the maps between two stages, and of the features
        that the last layer sees. None is drawn at 0.

    Raises
    ------
    DomainError
        `dropout` is not in [0, 1).

    Notes
    -----
    Pictures of at least 8 x 8. Dropout stands where the small network of FD-Shifts [1]_ has it:
    after each halving, and before the last layer. Only that after the last halving is left out,
    as the mean over the picture would undo it.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> import torch
    >>> from abstain.benchmark.models import SmallConv
    >>> SmallConv().features(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        channels: int = 1,
        widths: tuple[int, ...] = (16, 32, 64),
        dropout: float = 0.0,
    ) -> None:
        super().__init__(widths[-1])
        stages = [
            nn.Sequential(
                # The maximum first: the same numbers, and a quarter of the maps to rectify.
                convolution(a, b),
                nn.BatchNorm2d(b),
                Halving(),
                nn.ReLU(inplace=True),
            )
            for a, b in pairwise((channels, *widths))
        ]
        self.stages = nn.Sequential(*stages)
        self.dropout = dropped(dropout)
        start(self)

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of pictures as (n, width)."""
        return self.after_dropout(self.before_dropout(pictures))

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Return the maps of the first stage: most of the work, done once for all passes."""
        first, *_ = self.stages
        return first(pictures)

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Return the features, from what `before_dropout` returned."""
        _, *later = self.stages
        for stage in later:
            maps = stage(self.dropout(maps))
        return self.dropout(averaged(maps))
