"""`ViT`, a vision transformer from timm."""

from importlib import import_module
from typing import Any

from abstain._foundation.lazy_imports import is_installed
from abstain.errors import DomainError, InputError, MissingInputError
from abstain_bench.networks.backbone import Backbone, Tensor, dropout_layer

_PATCH = 16
_NAME = "vit_base_patch16_224"
_POSITIONS = "pos_embed"


class ViT(Backbone):
    """ViT-B/16, a transformer with twelve attention layers over patches of 16 x 16 pixels.

    The model requires timm.

    Notes
    -----
    The initial weights are random, and no weights are downloaded. To load trained weights from a
    file, use ``MODELS["vit-b16"].make(..., weights="model.safetensors")``. If the trained model
    expects another image size, its position embeddings are resampled. The dropout layers are at the
    same positions as in FD-Shifts [2]_, which uses a dropout probability of 0.1.

    References
    ----------
    .. [1] Dosovitskiy et al. (2021), An image is worth 16x16 words,
       https://arxiv.org/abs/2010.11929
    .. [2] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> from abstain_bench.networks import ViT
    >>> ViT(side=100)
    Traceback (most recent call last):
        ...
    abstain.errors.DomainError: `side` must be a multiple of 16 (the patches); got 100
    """

    def __init__(self, channels: int = 3, dropout: float = 0.0, side: int = 224) -> None:
        super().__init__(768)
        if side < _PATCH or side % _PATCH:
            raise DomainError(f"`side` must be a multiple of {_PATCH} (the patches); got {side!r}")
        dropout_layer(dropout)
        self.model = _timm().create_model(
            _NAME,
            pretrained=False,
            num_classes=0,
            in_chans=channels,
            img_size=side,
            pos_drop_rate=dropout,
            proj_drop_rate=dropout,
        )

    def features(self, pictures: Tensor) -> Tensor:
        """Compute the features of the class token, an array of shape (n, 768)."""
        return self.model(pictures)

    def rename_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Rename the weights of a timm model, and resample its position embeddings."""
        renamed = {f"model.{name}": tensor for name, tensor in weights.items()}
        positions = weights.get(_POSITIONS)
        if positions is None or positions.ndim != 3:
            return renamed
        if positions.shape[1] != self.model.pos_embed.shape[1]:
            grid = list(self.model.patch_embed.grid_size)
            resample = _timm().layers.resample_abs_pos_embed
            renamed[f"model.{_POSITIONS}"] = resample(positions, new_size=grid)
        return renamed


def _timm() -> Any:
    """Import timm, or raise an error with installation instructions."""
    if not is_installed("timm"):
        raise MissingInputError("the model 'vit-b16' comes with timm: pip install timm")
    try:
        timm: Any = import_module("timm")
    except Exception as error:  # noqa: BLE001  a library that breaks on import raises anything
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(
            f"the model 'vit-b16' needs timm, which cannot be imported ({reason}); its torchvision "
            "must be the one made for this torch"
        ) from None
    return timm
