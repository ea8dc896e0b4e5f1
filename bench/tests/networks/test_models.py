"""Models: the parameters that were published, and one small protocol."""

import hashlib
import importlib.machinery
import importlib.util
import pickle
import sys
import types

import pytest
from tests.peers import import_peer

torch = pytest.importorskip("torch")

from abstain.errors import (  # noqa: E402
    DomainError,
    FileFormatError,
    InputError,
    MissingInputError,
)
from abstain_bench.networks import (  # noqa: E402
    MODELS,
    VGG,
    Backbone,
    PreResNet,
    ResNet,
    SmallConv,
    ViT,
    WideResNet,
    n_parameters,
)


def with_head(name, classes):
    """Parameters with a linear layer; on the device without memory, as one of them is large."""
    with torch.device("meta"):
        backbone = MODELS[name].build(channels=3)
    return n_parameters(backbone) + classes * (backbone.width + 1)


# Exact: of the authors' or the usual implementations for 10 and 100 classes. Millions: of the
# tables of He et al. (2015, table 6; 2016) and Zagoruyko & Komodakis (2016, table 4).
@pytest.mark.parametrize(
    ("name", "ten", "hundred"),
    [
        ("vgg16-bn", 14_728_266, 14_774_436),
        # 9,416,010 without the hidden layer of FD-Shifts, which has 512 x 512 + 512.
        ("vgg13", 9_416_010 + 262_656, 9_462_180 + 262_656),
        ("wrn-28-10", 36_479_194, 36_536_884),
        ("resnet50", 23_508_032 + 20_490, 23_508_032 + 204_900),
        ("vgg13-bn", 9_416_010, 9_462_180),
        ("vgg19-bn", 20_040_522, 20_086_692),
        ("resnet18-cifar", 11_173_962, 11_220_132),
        ("resnet34-cifar", 21_282_122, 21_328_292),
        ("resnet50-cifar", 23_520_842, 23_705_252),
    ],
)
def test_exact_numbers_of_parameters(name, ten, hundred):
    assert (with_head(name, 10), with_head(name, 100)) == (ten, hundred)


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("preresnet-20", 0.27),
        ("preresnet-56", 0.86),
        ("preresnet-110", 1.7),
        ("preresnet-164", 1.7),
    ],
)
def test_published_millions_of_parameters(name, millions):
    assert round(with_head(name, 10) / 1e6, 2 if millions < 1 else 1) == millions


@pytest.mark.parametrize(
    "name",
    ["small-conv", "tiny-conv", "vgg13", "vgg16-bn", "vgg13-bn", "vgg19-bn", "preresnet-20",
     "resnet18-cifar"],
)  # fmt: skip
def test_features_have_their_width(name):
    backbone = MODELS[name].make((3, 32, 32), seed=0)
    assert isinstance(backbone, Backbone)
    result = backbone(torch.zeros(2, 3, 32, 32))
    assert result.shape == (2, backbone.width)
    assert torch.equal(result, backbone.features(torch.zeros(2, 3, 32, 32)))


@pytest.mark.parametrize("name", ["preresnet-56", "preresnet-110", "preresnet-164", "wrn-28-10"])
def test_large_models_have_their_width(name):
    with torch.device("meta"):
        backbone = MODELS[name].build(channels=3)
        assert backbone(torch.zeros(2, 3, 32, 32)).shape == (2, backbone.width)


def test_weights_equal_those_of_the_seed_and_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    one, two, other = (MODELS["tiny-conv"].make((1, 8, 8), seed=seed) for seed in (3, 3, 4))
    assert torch.equal(before, torch.get_rng_state())
    first = [next(iter(model.parameters())) for model in (one, two, other)]
    assert torch.equal(first[0], first[1])
    assert not torch.equal(first[0], first[2])


def test_a_residual_block_of_zero_weights_is_the_identity():
    from abstain_bench.networks.convolutional import _PreActivated

    block = _PreActivated(16, 16, 1, bottleneck=False)
    for layer in block.convolutions:
        torch.nn.init.zeros_(layer.weight)
    x = torch.randn(2, 16, 4, 4)
    assert torch.equal(block(x), x)


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="32 x 32; got 28 x 28"):
        MODELS["vgg16-bn"].make((1, 28, 28), seed=0)
    with pytest.raises(InputError, match="at least 32 x 32; got 28 x 40"):
        MODELS["resnet50"].make((1, 28, 40), seed=0)
    with pytest.raises(InputError, match="square; got 32 x 48"):
        MODELS["vit-b16"].make((3, 32, 48), seed=0)
    with pytest.raises(DomainError, match="6 n"):
        PreResNet(21)
    with pytest.raises(DomainError, match=r"6 n \+ 4"):
        WideResNet(27)


# ---------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize("side", [32, 33, 64, 224])
def test_resnet_takes_pictures_from_32_pixels_on(side):
    with torch.device("meta"):
        assert ResNet()(torch.zeros(2, 3, side, side)).shape == (2, 2048)


def test_resnet_halves_as_the_published_network_does():
    with torch.device("meta"):
        backbone, maps = ResNet(), torch.zeros(1, 3, 224, 224)
        maps = backbone.maxpool(backbone.conv1(maps))
        sides = [maps.shape[-1]]
        for stage in (backbone.layer1, backbone.layer2, backbone.layer3, backbone.layer4):
            maps = stage(maps)
            sides.append(maps.shape[-1])
    assert sides == [56, 56, 28, 14, 7]
    names = backbone.state_dict().keys()
    assert len(names) == 318  # of torchvision's resnet50, 320 with the last layer
    assert {"layer1.0.downsample.1.running_var", "layer4.2.conv3.weight"} <= names


# -------------------------------------------------------------------------------------- dropout


def fingerprint(arrays):
    result = hashlib.sha256()
    for name, x in arrays:
        result.update(name.encode() + x.numpy().tobytes())
    return result.hexdigest()[:16]


# Taken before models had dropout. torch draws other normal numbers where it has no AVX2.
VECTORS = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in {"AVX2", "AVX512"},
    reason="the numbers are those of AVX2",
)
BEFORE = {
    "small-conv": ((1, 28, 28), "144e61dd865b66fe"),
    "tiny-conv": ((3, 32, 32), "90c6de69c6dbf267"),
    "vgg16-bn": ((3, 32, 32), "f342b12845b77442"),
    "preresnet-20": ((3, 32, 32), "36eb0b3ceed7c3fa"),
}


@VECTORS
@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_seeded_weights_equal_those_of_old_at_any_dropout(name, dropout):
    shape, expected = BEFORE[name]
    backbone = MODELS[name].make(shape, seed=0, dropout=dropout)
    assert fingerprint(backbone.state_dict().items()) == expected


def test_the_small_network_draws_its_weights_in_the_order_of_old():
    nn = torch.nn
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        layers = [
            nn.Conv2d(a, b, 3, padding=1, bias=False) for a, b in [(1, 16), (16, 32), (32, 64)]
        ]
        for layer in layers:
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    backbone = MODELS["small-conv"].make((1, 28, 28), seed=5, dropout=0.3)
    results = [x.weight for x in backbone.modules() if isinstance(x, nn.Conv2d)]
    assert all(torch.equal(a, b.weight) for a, b in zip(results, layers, strict=True))


def old_features(backbone, pictures):
    """What `SmallConv.features` was before it had dropout."""
    return backbone.stages(pictures).mean(dim=(2, 3))


def test_without_dropout_results_equal_those_of_old_and_nothing_is_drawn():
    x = torch.randn(4, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    first, second = (MODELS["small-conv"].make((1, 28, 28), seed=0) for _ in range(2))
    before = torch.get_rng_state()
    result, expected = first.train()(x), old_features(second.train(), x)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(result, expected)
    result.sum().backward()
    expected.sum().backward()
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(a.grad, b.grad) for a, b in pairs)


SMALL = {
    "small-conv": lambda rate: SmallConv(channels=3, widths=(4, 8), dropout=rate),
    "vgg": lambda rate: VGG(dropout=rate, maps=(4, 4, 0, 8, 8, 0), hidden=8),
    "preresnet": lambda rate: PreResNet(depth=8, dropout=rate),
    "resnet": lambda rate: ResNet(dropout=rate, blocks=(1, 1, 1, 1)),
    "wide": lambda rate: WideResNet(depth=10, widen=1, dropout=rate),
}


@pytest.mark.parametrize("name", SMALL)
def test_dropout_is_on_in_training_only(name):
    side = 4 if name == "vgg" else 32
    x = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(0))
    backbone, without = SMALL[name](0.4), SMALL[name](0.0)
    without.load_state_dict(backbone.state_dict())
    backbone.eval(), without.eval()
    assert torch.equal(backbone(x), without(x))
    for layer in backbone.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.train()
    assert not torch.equal(backbone(x), backbone(x))


def test_the_last_layer_sees_dropped_features():
    # Widths that give the mean of each image one value a feature, never 0 unless dropped.
    backbone = SmallConv(widths=(64,), dropout=0.25).train()
    result = backbone(torch.randn(200, 1, 8, 8))
    assert abs(float((result == 0).float().mean()) - 0.25) < 0.02


def test_vgg13_drops_where_fd_shifts_does():
    with torch.device("meta"):
        backbone = MODELS["vgg13"].build(channels=3, dropout=0.5)
    rates = [round(x.p, 6) for x in backbone.modules() if isinstance(x, torch.nn.Dropout)]
    assert rates == [0.3, 0.4, 0.4, 0.4, 0.4, 0.5]


def test_resnet_drops_from_the_second_stage_on():
    with torch.device("meta"):
        backbone = ResNet(dropout=0.1)
    on = {
        name.split(".")[0]
        for name, x in backbone.named_modules()
        if isinstance(x, torch.nn.Dropout)
    }
    assert on == {"dropout", "layer2", "layer3", "layer4"}


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_rates_that_make_no_sense_raise_an_error(make, rate):
    with pytest.raises(DomainError, match="`dropout` must"):
        make(rate)


# -------------------------------------------------------------------------------- trained weights


def make_tiny(**options):
    return MODELS["tiny-conv"].make((1, 8, 8), seed=1, **options)


@pytest.mark.parametrize("within", [None, "state_dict", "model"])
def test_weights_are_read_and_the_last_layer_omitted(tmp_path, within):
    trained = MODELS["tiny-conv"].make((1, 8, 8), seed=0).state_dict()
    content = {**trained, "fc.weight": torch.zeros(10, 24)}
    # Old files do not count batches.
    content = {k: v for k, v in content.items() if not k.endswith("num_batches_tracked")}
    torch.save(content if within is None else {within: content}, tmp_path / "w.pt")
    result = make_tiny(weights=tmp_path / "w.pt").state_dict()
    assert all(torch.equal(result[name], trained[name]) for name in trained)


class _Evil:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_files_that_are_no_weights_of_the_model_raise_an_error(tmp_path):
    path = tmp_path / "w.pt"
    with pytest.raises(InputError, match="no file of weights"):
        make_tiny(weights=path)
    path.write_bytes(pickle.dumps(_Evil()))
    with pytest.raises(FileFormatError, match="read as tensors"):
        make_tiny(weights=path)
    for content, match in [
        ([1, 2], "no named tensors"),
        ({"epoch": 3}, "entries that are no tensors .'epoch'."),
    ]:
        torch.save(content, path)
        with pytest.raises(FileFormatError, match=match):
            make_tiny(weights=path)


def test_weights_of_another_model_raise_an_error_by_the_first_that_differs(tmp_path):
    path, own = tmp_path / "w.pt", make_tiny().state_dict()
    first = "stages.0.0.weight"
    for content, match in [
        ({k: v for k, v in own.items() if k != first}, f"lacks '{first}'"),
        ({**own, "more": torch.zeros(1)}, "also has 'more'"),
        ({**own, first: torch.zeros(8, 3, 3, 3)}, r"shape \(8, 3, 3, 3\), not \(8, 1, 3, 3\)"),
    ]:
        torch.save(content, path)
        with pytest.raises(FileFormatError, match=match):
            make_tiny(weights=path)


@pytest.mark.skipif(importlib.util.find_spec("safetensors") is not None, reason="it is installed")
def test_a_safetensors_file_without_the_package_says_what_to_install(tmp_path):
    (tmp_path / "w.safetensors").write_bytes(b"")
    with pytest.raises(MissingInputError, match="pip install safetensors"):
        make_tiny(weights=tmp_path / "w.safetensors")


@pytest.mark.peers
def test_safetensors_files_are_read(tmp_path):
    save = import_peer("safetensors.torch").save_file
    trained = MODELS["tiny-conv"].make((1, 8, 8), seed=0).state_dict()
    save(trained, tmp_path / "w.safetensors")
    result = make_tiny(weights=tmp_path / "w.safetensors").state_dict()
    assert all(torch.equal(result[name], trained[name]) for name in trained)
    (tmp_path / "w.safetensors").write_bytes(b"half a file")
    with pytest.raises(FileFormatError, match="damaged"):
        make_tiny(weights=tmp_path / "w.safetensors")


# ------------------------------------------------------------------------------------------- ViT


class _Attention(torch.nn.Module):
    """Stands for timm's model: its options, and the names that `ViT` asks for."""

    def __init__(self, name, **options):
        super().__init__()
        self.name, self.options = name, options
        grid = options["img_size"] // 16
        self.patch_embed = types.SimpleNamespace(grid_size=(grid, grid))
        self.pos_embed = torch.nn.Parameter(torch.zeros(1, 1 + grid**2, 768))

    def forward(self, x):
        return self.pos_embed[:, 0].expand(len(x), -1)


@pytest.fixture
def timm(monkeypatch):
    module = types.ModuleType("timm")
    module.__spec__ = importlib.machinery.ModuleSpec("timm", None)
    module.create_model = _Attention
    resample = lambda x, new_size: x[:, : 1 + new_size[0] * new_size[1]]  # noqa: E731
    module.layers = types.SimpleNamespace(resample_abs_pos_embed=resample)
    monkeypatch.setitem(sys.modules, "timm", module)


@pytest.mark.usefixtures("timm")
def test_vit_is_made_for_the_pictures_and_never_downloaded(tmp_path):
    torch.save({"pos_embed": torch.ones(1, 197, 768), "head.bias": torch.ones(9)}, tmp_path / "w")
    backbone = MODELS["vit-b16"].make((1, 32, 32), seed=0, dropout=0.1, weights=tmp_path / "w")
    assert backbone.model.name == "vit_base_patch16_224"
    assert backbone.model.options == {
        "pretrained": False,
        "num_classes": 0,
        "in_chans": 1,
        "img_size": 32,
        "pos_drop_rate": 0.1,
        "proj_drop_rate": 0.1,
    }
    assert torch.equal(backbone(torch.zeros(2, 1, 32, 32)), torch.ones(2, backbone.width))
    with pytest.raises(DomainError, match="multiple of 16"):
        MODELS["vit-b16"].make((1, 40, 40), seed=0)


def test_vit_without_timm_says_what_to_install(monkeypatch):
    from abstain_bench.networks import vit

    monkeypatch.setattr(vit, "is_installed", lambda _: False)
    with pytest.raises(MissingInputError, match="pip install timm"):
        ViT()


def test_a_timm_that_breaks_on_import_is_one_line(monkeypatch, tmp_path):
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    with pytest.raises(InputError, match=r"cannot be imported .RuntimeError: operator"):
        ViT()
