"""The Gauss-Newton matrix: against dense matrices, another library, and the theory of linear models."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

import toclip  # noqa: E402
from toclip.torch import GaussNewton, intrinsic_dimension  # noqa: E402


def mlp(norm=False):
    torch.manual_seed(3)
    layers = [torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)]
    if norm:
        layers.insert(1, torch.nn.BatchNorm1d(8))
    model = torch.nn.Sequential(*layers).double()
    if norm:  # running statistics that are neither their start nor those of a batch
        model.train()(torch.randn(50, 6, dtype=torch.double) + 1.0)
    return model


def data(batches=2, size=20, classes=True):
    torch.manual_seed(5)
    return [
        (
            torch.randn(size + i, 6, dtype=torch.double),
            torch.randint(0, 3, (size + i,))
            if classes
            else torch.randn(size + i, 3, dtype=torch.double),
        )
        for i in range(batches)
    ]


def dense(model, loss, pairs):
    """G from whole Jacobians and Hessians, one batch after the other."""
    names, params = zip(*model.named_parameters())
    total, count = 0.0, sum(len(x) for x, _ in pairs)
    for x, y in pairs:
        def out(*p):
            return torch.func.functional_call(model, dict(zip(names, p)), (x,))

        z = out(*params).detach()
        j = torch.autograd.functional.jacobian(out, params)
        j = torch.cat([part.reshape(z.numel(), -1) for part in j], 1)
        h = torch.autograd.functional.hessian(lambda z: loss(z, y), z).reshape(z.numel(), z.numel())
        total = total + (len(x) / count) * j.T @ h @ j
    return total.detach()


# Lanczos goes on until it knows most of so small a matrix: standard errors are then below 0.3%.
FINE = {"probes": 300, "tolerance": 1e-14}
CASES = [(False, "eval"), (True, "eval"), (True, "train")]
LOSSES = [(F.cross_entropy, True), (F.mse_loss, False)]


@pytest.mark.parametrize("norm, mode", CASES)
@pytest.mark.parametrize("loss, classes", LOSSES)
def test_it_agrees_with_the_dense_matrix(norm, mode, loss, classes):
    model, pairs = mlp(norm), data(classes=classes)
    found = intrinsic_dimension(model, loss, pairs, mode=mode, **FINE)
    model.train(mode == "train")
    g = dense(model, loss, pairs)
    v = torch.randn(len(g), dtype=torch.double)
    assert torch.allclose(GaussNewton(model, loss, pairs) @ v, g @ v, rtol=1e-10, atol=1e-12)

    top, trace = float(torch.linalg.eigvalsh(g)[-1]), float(g.trace())
    assert abs(found.norm / top - 1) < 1e-4 and found.converged
    # Four standard errors: one false alarm in 16,000; and they are below a quarter of 1%.
    assert abs(found.trace - trace) < 4 * found.trace_stderr
    assert abs(found.dimension / (trace / top) - 1) < 0.01
    assert (found.samples, found.batch_size, found.mode) == (41, 21, mode)
    assert found.batch_norm == {"eval": "running", "train": "batch"}[mode] if norm else "none"


def test_mode_and_batch_size_matter_and_are_reported():
    model, ((x, y),) = mlp(norm=True), data(batches=1, size=32)

    def measured(mode, size):
        pairs = list(zip(x.split(size), y.split(size)))
        return intrinsic_dimension(
            model, F.cross_entropy, pairs, mode=mode, probes=100, tolerance=1e-14
        )

    # Samples do not see each other, so how they are batched is all the same.
    apart, together = measured("eval", 16), measured("eval", 32)
    assert math.isclose(apart.dimension, together.dimension, rel_tol=1e-9)
    small, large = measured("train", 4), measured("train", 32)
    assert (small.batch_size, large.batch_size) == (4, 32)
    for one, other in ((small, large), (large, together)):
        spread = math.hypot(one.trace_stderr, other.trace_stderr)
        assert abs(one.trace - other.trace) > 8 * spread
    fresh = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8)).double()
    assert intrinsic_dimension(fresh, F.cross_entropy, [(x, y)]).batch_norm == "initial"


def test_repeated_seeds_agree_within_their_standard_errors():
    model, pairs = mlp(norm=True), data(batches=1)
    model.train()
    g = dense(model, F.cross_entropy, pairs)
    exact = float(g.trace() / torch.linalg.eigvalsh(g)[-1])
    found = [
        intrinsic_dimension(model, F.cross_entropy, pairs, mode="train", probes=50, seed=seed,
                            tolerance=1e-6)
        for seed in range(0, 40, 2)
    ]
    squares = sum(((f.dimension - exact) / f.dimension_stderr) ** 2 for f in found)
    # The sum of 20 squares of Student's t with 49 degrees of freedom: out of this once in 10,000.
    assert 4.1 < squares < 59.8
    assert len({f.dimension for f in found}) == len(found)


def test_known_eigenvalues_reduce_the_variance_without_bias():
    from toclip.torch.curvature import hutchinson_trace, lanczos

    model, pairs = mlp(), data()
    g, operator = dense(model, F.cross_entropy, pairs), GaussNewton(model, F.cross_entropy, pairs)
    known = lanczos(operator, 100, 1e-3, 0)
    plain, plain_error = hutchinson_trace(operator, 200, 0)
    trace, error = hutchinson_trace(operator, 200, 0, known)
    # Random signs have Var = 2 (|G|_F^2 - |diag G|^2), of which 200 probes know a root to 5%.
    for matrix, found in ((g, plain_error), (g - excess(known), error)):
        exact = math.sqrt(2 * float((matrix**2).sum() - (matrix.diagonal() ** 2).sum()) / 200)
        assert 0.8 < found / exact < 1.25
    assert abs(plain - float(g.trace())) < 4 * plain_error
    assert abs(trace - float(g.trace())) < 4 * error and error < plain_error / 2


def excess(known):
    """The part that the probes are spared, as a matrix."""
    q = torch.stack(known.basis, 1)
    least = torch.linalg.eigvalsh(known.small)[0]
    return q @ (known.small - least * torch.eye(len(known.small), dtype=torch.double)) @ q.T


@pytest.mark.parametrize(
    "outputs, bias, mean", [(1, False, False), (1, True, True), (4, False, True), (4, True, False)]
)
def test_a_linear_model_has_the_intrinsic_dimension_of_its_features(outputs, bias, mean):
    """z = W x has J = I (x) x^T, and the loss H = s I, so G = s I (x) K with K = E x x^T.

    Hence Tr G = s C Tr K and |G| = s |K|: d is C times Tr K/|K|. s is 1 for half the squared
    distance and 2/C for a mean over the C outputs too. A bias is a feature that is always one.
    """
    torch.manual_seed(1)
    x = torch.randn(500, 30, dtype=torch.double) * torch.arange(1, 31, dtype=torch.double) ** -0.25
    features = torch.cat([x, torch.ones(500, 1, dtype=torch.double)], 1) if bias else x
    values = np.linalg.eigvalsh((features.T @ features / len(x)).numpy())
    theory = toclip.eigenvalues(values).intrinsic_dim
    scale = 2 / outputs if mean else 1.0
    loss = F.mse_loss if mean else lambda z, y: 0.5 * (z - y).square().sum(1).mean()
    model = torch.nn.Linear(30, outputs, bias=bias).double()
    pairs = list(zip(x.split(300), torch.randn(500, outputs).double().split(300)))
    found = intrinsic_dimension(model, loss, pairs, **FINE)
    assert math.isclose(found.norm, scale * values[-1], rel_tol=1e-9)
    assert abs(found.trace - scale * outputs * values.sum()) < 4 * found.trace_stderr
    # One false alarm in 16,000; and the errors are below a quarter of 1%.
    assert abs(found.dimension - outputs * theory) < 4 * found.dimension_stderr
    assert math.isclose(found.dimension, outputs * theory, rel_tol=0.01)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("loss, classes", LOSSES)
def test_curvlinops_finds_the_same_products(norm, loss, classes):
    curvlinops = pytest.importorskip("curvlinops")
    named = {F.cross_entropy: torch.nn.CrossEntropyLoss(), F.mse_loss: torch.nn.MSELoss()}[loss]
    model, pairs = mlp(norm).eval(), data(classes=classes)
    theirs = curvlinops.GGNLinearOperator(
        model, named, list(model.parameters()), pairs, check_deterministic=False
    )
    ours = GaussNewton(model, loss, pairs)
    for _ in range(3):
        v = torch.randn(ours.size, dtype=torch.double)
        assert torch.allclose(ours @ v, (theirs @ v).detach(), rtol=1e-9, atol=1e-12)
    found = intrinsic_dimension(model, loss, pairs, **FINE)
    g = torch.stack([(theirs @ e).detach() for e in torch.eye(ours.size).double()])
    exact = float(g.trace() / torch.linalg.eigvalsh((g + g.T) / 2)[-1])
    assert math.isclose(found.dimension, exact, rel_tol=0.01)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)
        self.two.weight = self.one.weight
        self.unused = torch.nn.Linear(2, 2)
        self.head = torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.two(torch.tanh(self.one(x))))


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(6, 2, 8, dropout=0.5, batch_first=True)
        self.head = torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.layer(x[:, None].expand(-1, 3, -1) + torch.ones(3, 1))[:, 0])


@pytest.mark.parametrize("made", [Tied, Attention])
def test_shared_and_unused_weights_and_attention(made):
    torch.manual_seed(0)
    model, pairs = made().double().eval(), data(batches=1)
    g = dense(model, F.cross_entropy, pairs)
    found = intrinsic_dimension(model, F.cross_entropy, pairs, **FINE)
    exact = float(g.trace() / torch.linalg.eigvalsh(g)[-1])
    assert math.isclose(found.dimension, exact, rel_tol=0.01)
    # Dropout is off in both modes, and there is no batch norm to differ.
    model.train()
    modes = [intrinsic_dimension(model, F.cross_entropy, pairs, mode=m) for m in ("eval", "train")]
    assert math.isclose(modes[0].dimension, modes[1].dimension, rel_tol=1e-9)


def test_frozen_weights_are_not_counted():
    model, pairs = mlp(), data()
    g = dense(model, F.cross_entropy, pairs)[56:, 56:]  # behind the first layer's 6 x 8 + 8
    model[0].requires_grad_(False)
    found = intrinsic_dimension(model, F.cross_entropy, pairs, **FINE)
    exact = float(g.trace() / torch.linalg.eigvalsh(g)[-1])
    assert math.isclose(found.dimension, exact, rel_tol=0.01)
