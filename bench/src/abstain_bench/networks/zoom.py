"""`Resized`: a backbone that sees images at another size than they are kept at."""

from abstain_bench.networks.backbone import Backbone, Tensor, nn


class Resized(Backbone):
    """A backbone behind a bilinear scaling of the images, a batch at a time.

    So 50,000 images of 32 x 32 stay 150 MB where a network wants them at 384 x 384.

    Examples
    --------
    >>> import torch
    >>> from abstain_bench.networks import Resized, SmallConv
    >>> Resized(SmallConv(), 64).features(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 64])
    """

    def __init__(self, inner: Backbone, side: int) -> None:
        super().__init__(inner.width)
        self.inner, self.side = inner, side

    def features(self, pictures: Tensor) -> Tensor:
        """Return the features of images of any size as (n, width)."""
        return self.inner.features(self._scaled(pictures))

    def before_dropout(self, pictures: Tensor) -> Tensor:
        """Return what comes before the first layer of dropout: the same in every pass."""
        return self.inner.before_dropout(self._scaled(pictures))

    def after_dropout(self, maps: Tensor) -> Tensor:
        """Return the features, from what `before_dropout` returned."""
        return self.inner.after_dropout(maps)

    def _scaled(self, pictures: Tensor) -> Tensor:
        size = (self.side, self.side)
        if tuple(pictures.shape[2:]) == size:
            return pictures
        # As Pillow does it, so that a smaller image has no edges that were not there.
        return nn.functional.interpolate(pictures, size, mode="bilinear", antialias=True)
