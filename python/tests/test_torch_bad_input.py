"""Mistakes in measuring a network, and the error messages."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from toclip.torch import intrinsic_dimension, reduction_factors  # noqa: E402


def mlp():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def normed():
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3))


def data(batches=24, size=4):
    g = torch.Generator().manual_seed(0)
    return [
        (torch.randn(size, 6, generator=g), torch.randint(0, 3, (size,), generator=g))
        for _ in range(batches)
    ]


def factors(model=None, loss=F.cross_entropy, loader=None, thresholds=(1.0,), **settings):
    loader = data() if loader is None else loader
    return reduction_factors(model or mlp(), loss, loader, thresholds, **settings)


def dimension(model=None, loss=F.cross_entropy, loader=None, **settings):
    loader = data() if loader is None else loader
    return intrinsic_dimension(model or mlp(), loss, loader, probes=2, **settings)


class Answer(torch.nn.Module):
    """A model that answers with what ``wrap`` makes of its outputs."""

    def __init__(self, wrap):
        super().__init__()
        self.inner, self.wrap = torch.nn.Linear(6, 3), wrap

    def forward(self, x):
        return self.wrap(self.inner(x))


class Words(torch.nn.Module):
    """A model of integers."""

    def __init__(self):
        super().__init__()
        self.words, self.head = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.words(x).mean(1))


class Unused(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(6, 3), torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.used(x)


def changed(x=lambda x: x, y=lambda y: y):
    return [(x(a), y(b)) for a, b in data()]


BOTH = {
    "no module": ({"model": len}, "must be a torch.nn.Module"),
    "no parameters": ({"model": torch.nn.Tanh()}, "no parameter with requires_grad=True"),
    "all frozen": ({"model": mlp().requires_grad_(False)}, "no parameter with requires_grad=True"),
    "no weights": ({"model": mlp().to("meta")}, "device meta and has no weights"),
    "no shape": (lambda: {"model": torch.nn.LazyLinear(3)}, "run the model on a batch"),
    "complex": (lambda: {"model": torch.nn.Linear(6, 3).to(torch.complex64)}, "must be real numbers"),
    "wrapped": ({"model": torch.nn.DataParallel(mlp())}, "pass model.module"),
    "number for a loader": ({"loader": 5}, "the loader is 5; expected a DataLoader"),
    "dictionaries": ({"loader": [{"x": 1, "y": 2}]}, r"is a dictionary \(x, y\); each batch must be"),
    "single tensors": ({"loader": [torch.ones(4, 6)]}, "is one tensor; each batch must be"),
    "lists of one": ({"loader": [[torch.ones(4, 6)]]}, "has 1 part; each batch must be"),
    "a data set": (
        {"loader": torch.utils.data.TensorDataset(torch.ones(9, 6), torch.ones(9))},
        "single sample; wrap the data set in a DataLoader",
    ),
    "strings": ({"loader": [("ab", "cd")]}, "'ab' in it, which is not a tensor"),
    "an empty batch": ({"loader": changed(lambda x: x[:0], lambda y: y[:0])}, "batch 0 .* is empty"),
    "lengths": ({"loader": changed(y=lambda y: y[:2])}, "has 4 inputs but 2 targets"),
    "a wrong width": ({"loader": changed(lambda x: x[:, :3])}, r"inputs of shape \(4, 3\)"),
    "integers": ({"loader": changed(lambda x: x.long())}, "type torch.int64"),
    "doubles": ({"loader": changed(lambda x: x.double().numpy())}, "type torch.float64"),
    "a class that is not": ({"loader": changed(y=lambda y: y + 7)}, "the loss does not accept"),
    "targets of another kind": ({"loss": F.l1_loss}, r"targets of shape \(4,\)"),
    "NaN inputs": ({"loader": changed(lambda x: x * math.nan)}, "the loss is nan"),
    "a NaN loss": ({"loss": lambda z, y: z.sum() * math.nan}, "batch 0 .* the loss is nan"),
    "a vector": ({"loss": torch.nn.CrossEntropyLoss(reduction="none")}, "must be one number"),
    "a number": ({"loss": lambda z, y: z.sum().item()}, "must be a tensor with one number"),
    "a class for a loss": ({"loss": torch.nn.MSELoss}, r"such as .* or torch.nn.CrossEntropyLoss\(\)"),
    "a string for a loss": ({"loss": "mse"}, "the loss is 'mse'; it must be a function"),
    "mode": ({"mode": "training"}, "mode is 'training'; it must be"),
    "one sample and batch norm": (
        {"model": normed(), "mode": "train", "loader": data(24, 1)}, "more than 1 value per channel",
    ),
}


@pytest.mark.parametrize("measure", [factors, dimension])
@pytest.mark.parametrize("case", BOTH)
@pytest.mark.filterwarnings("ignore")
def test_errors_of_both_measurements(measure, case):
    given, words = BOTH[case]
    with pytest.raises(ValueError, match=words):
        measure(**(given() if callable(given) else given))


@pytest.mark.parametrize(
    "given, words",
    [
        ({"loader": []}, "0 full batches"),
        ({"loader": iter(())}, "a generator can be used only once"),
        ({"loader": data(15)}, "15 full batches; at least 16"),
        ({"thresholds": []}, "thresholds is empty"),
        ({"thresholds": 1.0}, "must be a list of positive numbers, .* not 1.0"),
        ({"thresholds": torch.tensor(1.0)}, "must be a list"),
        ({"thresholds": "high"}, "must be a list of positive numbers, .* not 'high'"),
        ({"thresholds": [1.0, "x"]}, "thresholds must be a positive number"),
        ({"thresholds": [1.0, -1.0]}, "thresholds = -1.0 is not allowed"),
        ({"thresholds": [math.nan]}, "thresholds is not a number"),
        ({"blocks": 2}, "blocks = 2 is not allowed"),
        ({"blocks": 4.5}, "must be an integer"),
        ({"outputs": 0}, "outputs = 0 is not allowed"),
        ({"groups": ["head"]}, "must be a dictionary of tests"),
        ({"groups": {}}, "groups is empty"),
        ({"groups": {"none": lambda name: False}}, 'no parameter belongs to the group "none"'),
        (
            {"model": Unused(), "groups": {"far": lambda name: name.startswith("unused")}},
            'every gradient in the group "far" is zero',
        ),
        ({"loss": lambda z, y: (0 * z).sum()}, "every gradient is zero"),
        ({"loss": lambda z, y: torch.tensor(1.0)}, "does not depend on the model's parameters"),
        ({"loss": lambda z, y: (z * math.nan).nansum()}, "gradient that is not finite"),
        (
            {"model": Answer(lambda z: {"z": z}), "loss": lambda z, y: F.cross_entropy(z["z"], y)},
            "set outputs",
        ),
    ],
)
def test_errors_of_factors(given, words):
    with pytest.raises(ValueError, match=words):
        factors(**given)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"loader": []}, "loader is empty"),
        ({"loader": iter(())}, "a generator can be used only once"),
        ({"tolerance": 0.0}, "between 0 and 1"),
        ({"tolerance": math.nan}, "between 0 and 1"),
        ({"tolerance": "fine"}, "between 0 and 1"),
        ({"iterations": 1}, "iterations = 1 is not allowed"),
        ({"seed": 1.5}, "must be an integer"),
        ({"model": mlp().half()}, "not precise enough"),
        ({"model": mlp().bfloat16()}, "not precise enough"),
        ({"loss": lambda z, y: z.sum()}, "matrix is zero"),
        ({"model": Answer(lambda z: {"z": z})}, "must return one tensor"),
        ({"model": Answer(F.dropout)}, "change from call to call"),
        ({"model": Answer(lambda z: z.detach().numpy() and z)}, "the model does not accept"),
    ],
)
def test_errors_of_dimension(given, words):
    with pytest.raises(ValueError, match=words):
        dimension(**given)


def test_probes_are_needed():
    with pytest.raises(ValueError, match="at least 2 are needed for a standard error"):
        intrinsic_dimension(mlp(), F.cross_entropy, data(), probes=1)


def test_a_step_without_forward_derivatives_is_named():
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.LSTM(6, 3, batch_first=True)

        def forward(self, x):
            return self.inner(x[:, None])[0][:, 0]

    # Older or newer versions of PyTorch may know how: then there is nothing to refuse.
    try:
        assert dimension(Recurrent()).dimension > 0
    except ValueError as error:
        assert "without the required derivatives" in str(error)
        assert "\n" not in str(error)


@pytest.mark.parametrize("measure", [factors, dimension])
def test_a_measurement_that_fails_leaves_no_trace_either(measure):
    model = normed().train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    late = data(20) + [(torch.full((4, 6), math.nan), torch.zeros(4).long())]
    with pytest.raises(ValueError, match="batch 20"):
        measure(model, loader=late, mode="train")
    assert all(m.training for m in model.modules())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


@pytest.mark.parametrize("measure", [factors, dimension])
def test_unusual_but_valid_models_are_measured(measure):
    plain = measure(mlp())
    assert measure(mlp(), loader=[(x.numpy(), y.numpy()) for x, y in data()]) == plain
    assert measure(torch.compile(mlp())) == plain
    model, loader = mlp(), data()
    with torch.no_grad():
        assert measure(model, loader=loader) == plain
    with torch.inference_mode():
        assert measure(model, loader=loader) == plain
    words = [(torch.randint(0, 10, (4, 5)), y) for _, y in data()]
    measure(Words(), loader=words)
    measure(Unused())


def test_half_precision_is_summed_in_single():
    exact = factors(thresholds=[0.5]).rows[0].mu
    for kind in (torch.bfloat16, torch.float16):
        rows = factors(mlp().to(kind), loader=changed(lambda x: x.to(kind)), thresholds=[0.5]).rows
        for name, estimate in rows[0].mu.items():
            assert abs(estimate.value - exact[name].value) < 0.03


def test_thresholds_out_of_reach():
    low, high = factors(thresholds=np.array([1e-300, math.inf])).rows
    assert low.clip_fraction.value == 1.0 and math.isnan(low.ccc["direct"].value)
    assert high.clip_fraction.value == 0.0 and high.nu.value == 1.0
