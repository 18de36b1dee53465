"""Reduction factors at fixed weights, against closed forms; and what measuring must leave alone."""

import math

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from toclip.torch import intrinsic_dimension, reduction_factors  # noqa: E402


def mlp(norm=False):
    torch.manual_seed(3)
    layers = [torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)]
    if norm:
        layers.insert(1, torch.nn.BatchNorm1d(8))
    return torch.nn.Sequential(*layers).double()


def data(batches=3, size=20, classes=True):
    torch.manual_seed(5)
    return [
        (
            torch.randn(size, 6, dtype=torch.double),
            torch.randint(0, 3, (size,)) if classes else torch.randn(size, 3, dtype=torch.double),
        )
        for _ in range(batches)
    ]


def test_the_same_call_gives_the_same_numbers_and_leaves_no_trace():
    model, pairs = mlp(norm=True).train(), data()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    for mode in ("train", "eval"):
        first = intrinsic_dimension(model, F.cross_entropy, pairs, mode=mode)
        assert first == intrinsic_dimension(model, F.cross_entropy, pairs, mode=mode)
        reduction_factors(model, F.cross_entropy, data(24), [1.0], mode=mode)
    assert model.training
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def gaussian_batches(count, size, width, flips, seed=2):
    """Batches of a linear problem with Gaussian features and Rademacher-like noise."""
    g = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x = torch.randn(size, width, generator=g)
        noise = torch.randn(size, generator=g).sign() * (torch.rand(size, generator=g) < flips) * 4.0
        yield x, noise[:, None]


def test_three_estimators_on_a_linear_problem_with_known_factors():
    # theta - theta* has norm one: X = z - eps, and a batch's gradient has norm |X| sqrt(d)/B.
    width, size = 400, 8
    model = torch.nn.Linear(width, 1, bias=False)
    torch.nn.init.constant_(model.weight, width**-0.5)
    half = lambda z, y: 0.5 * (z - y).square().sum(1).mean()  # noqa: E731
    c = 1.0
    level = c * math.sqrt(width / size)
    found = reduction_factors(
        model, half, gaussian_batches(4000, size, width, 0.2), [level, 1e9]
    ).rows
    clipped, free = found
    for name in ("fraction", "batch", "direct"):
        assert abs(free.mu[name].value - 1.0) < 1e-6 and free.nu.value == 1.0
    # The truth by simulation of S = sum X^2 alone, with a thousand times the draws.
    g = torch.Generator().manual_seed(9)
    x = torch.randn(400_000, size, generator=g) - (
        torch.randn(400_000, size, generator=g).sign()
        * (torch.rand(400_000, size, generator=g) < 0.2) * 4.0
    )
    s = x.square().sum(1)
    over = s > c * c * size
    fraction = float((~over).double().mean())
    truth = fraction + (1 - 1 / size) * float(torch.where(over, c * (size / s) ** 0.5, 0 * s).mean())
    # d = 400 is not infinity: corrections of order B/d = 2% remain beside the statistical error.
    assert abs(clipped.mu["fraction"].value - fraction) < 0.03
    assert abs(clipped.mu["batch"].value - truth) < 0.02
    assert abs(clipped.mu["direct"].value - truth) < 0.02 + 4 * clipped.mu["direct"].stderr
    assert clipped.mu["direct"].value > 2 * fraction
    assert clipped.ccc["direct"].value > 1.0


def test_standard_errors_are_honest():
    """The spread of repeated estimates is what the standard error says."""
    width, size = 30, 4
    model = torch.nn.Linear(width, 1, bias=False)
    torch.nn.init.constant_(model.weight, width**-0.5)
    half = lambda z, y: 0.5 * (z - y).square().sum(1).mean()  # noqa: E731
    values, errors = [], []
    for seed in range(40):
        row = reduction_factors(
            model, half, gaussian_batches(160, size, width, 0.2, seed), [2.0]
        ).rows[0]
        values.append(row.mu["direct"].value)
        errors.append(row.mu["direct"].stderr)
    spread = torch.tensor(values).std()
    typical = torch.tensor(errors).square().mean().sqrt()
    # 40 repetitions know a spread to 11%, eight blocks an error to 27%/sqrt(40): 3 sigma each way.
    assert 0.65 < typical / spread < 1.5


def test_groups_are_clipped_each_on_its_own():
    model, pairs = mlp(), data(32)
    whole = reduction_factors(model, F.cross_entropy, pairs, [0.1])
    parts = reduction_factors(
        model, F.cross_entropy, pairs, [0.1],
        groups={"first": lambda n: n.startswith("0."), "last": lambda n: n.startswith("2.")},
    )
    squares = [a * a + b * b for a, b in zip(parts["first"].norms, parts["last"].norms)]
    assert all(abs(s - n * n) < 1e-12 for s, n in zip(squares, whole.norms))
    assert parts["first"].rows[0].clip_fraction.value <= whole.rows[0].clip_fraction.value


def test_an_embedding_with_sparse_gradients_is_measured_like_any_other():
    torch.manual_seed(4)
    batches = [(torch.randint(0, 11, (8, 4)), torch.randint(0, 3, (8,))) for _ in range(16)]
    found = []
    for sparse in (False, True):
        torch.manual_seed(5)
        model = torch.nn.Sequential(
            torch.nn.Embedding(11, 2, sparse=sparse), torch.nn.Flatten(), torch.nn.Linear(8, 3)
        )
        at = reduction_factors(model, F.cross_entropy, batches, [0.3])
        d = intrinsic_dimension(model, F.cross_entropy, batches, probes=4)
        found.append((at.norms, at.rows[0].mu["direct"].value, d.trace, d.norm))
    for dense, sparse in zip(*found):
        assert sparse == pytest.approx(dense, rel=1e-4)


def one_pass(model, loss, pairs, levels, blocks):
    """The direct estimate of mu with a mean of clipped gradients for every threshold."""
    sums = torch.zeros(blocks, 1 + len(levels), sum(p.numel() for p in model.parameters())).double()
    for k, (x, y) in enumerate(pairs):
        grads = torch.autograd.grad(loss(model(x), y), list(model.parameters()))
        flat = torch.cat([g.reshape(-1) for g in grads])
        scales = [1.0] + [min(1.0, level / float(flat.norm())) for level in levels]
        sums[k % blocks] += torch.tensor(scales, dtype=torch.double)[:, None] * flat
    means = sums / (len(pairs) // blocks)
    off = 1.0 - torch.eye(blocks).double()
    grams = [(off * (means[:, k] @ means[:, 0].T)).sum() for k in range(1 + len(levels))]
    return [float(gram / grams[0]) for gram in grams[1:]]


@pytest.mark.parametrize("shuffled", [False, True])
def test_two_passes_agree_with_one(shuffled):
    """Thresholds cost no memory, and the numbers stay the same."""
    model, levels = mlp(), [0.05, 0.2, 1.0, 1e9]
    pairs = data(32)
    found = reduction_factors(model, F.cross_entropy, pairs, levels)
    expected = one_pass(model, F.cross_entropy, pairs, levels, 8)
    assert [row.mu["direct"].value for row in found.rows] == pytest.approx(expected, rel=1e-10)
    x, y = (torch.cat(part) for part in zip(*pairs))
    for generator in (None, torch.Generator().manual_seed(3)):
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(x, y), 20, shuffle=shuffled, generator=generator
        )
        torch.manual_seed(1)
        again = reduction_factors(model, F.cross_entropy, loader, levels)
        assert sorted(again.norms) == sorted(found.norms) or shuffled
        assert again.rows[3].mu["direct"].value == pytest.approx(1.0, abs=1e-9)


def test_dropout_is_the_same_in_both_passes():
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 3)).double()
    found = reduction_factors(model, F.cross_entropy, data(32), [1e9])
    assert found.rows[0].mu["direct"].value == pytest.approx(1.0, abs=1e-9)


def test_batches_that_change_are_refused():
    import random

    class Augmented(list):
        def __iter__(self):
            return iter((x * (1.0 + random.random()), y) for x, y in data(32))

    with pytest.raises(ValueError, match="another gradient when the loader is read again"):
        reduction_factors(mlp(), F.cross_entropy, Augmented(), [1.0])


def test_thresholds_cost_no_memory():
    """The largest tensor that is kept is one gradient for each block, however many thresholds."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        size = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                Largest.size = max(Largest.size, out.numel())
            return out

    model = torch.nn.Linear(300, 100)
    pairs = [(torch.randn(2, 300), torch.randn(2, 100)) for _ in range(16)]
    sizes = []
    for levels in ([1.0], [0.1 * k for k in range(1, 40)]):
        Largest.size = 0
        with Largest():
            reduction_factors(model, F.mse_loss, pairs, levels)
        sizes.append(Largest.size)
    assert sizes == [8 * 30_100] * 2


class Recurrent(torch.nn.Module):
    """A language model of one recurrent layer."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(2)
        self.embed, self.layer = torch.nn.Embedding(11, 4), kind(4, 6, batch_first=True)
        self.head = torch.nn.Linear(6, 11)

    def forward(self, x):
        return self.head(self.layer(self.embed(x))[0])


def next_token(z, y):
    return F.cross_entropy(z.reshape(-1, z.shape[-1]), y.reshape(-1))


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_layers_are_measured(kind):
    model = Recurrent(kind).double()
    g = torch.Generator().manual_seed(1)
    pairs = [tuple(torch.randint(0, 11, (3, 5), generator=g) for _ in range(2)) for _ in range(16)]
    found = reduction_factors(model, next_token, pairs, [0.3, 1e9])
    assert found.rows[1].mu["direct"].value == pytest.approx(1.0) and found.outputs == 5 * 11
    d = intrinsic_dimension(model, next_token, pairs[:2], probes=200)
    # Against the matrix itself, from single gradients of the outputs.
    parameters = dict(model.named_parameters())
    trace = 0.0
    for x, y in pairs[:2]:
        z = model(x)
        p = z.softmax(-1).reshape(-1, 11)
        rows = [
            torch.cat([h.reshape(-1) for h in torch.autograd.grad(one, list(parameters.values()), retain_graph=True)])
            for one in z.reshape(-1)
        ]
        jacobian = torch.stack(rows).reshape(-1, 11, len(rows[0]))
        curve = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
        trace += float(torch.einsum("tap,tab,tbp->", jacobian, curve.detach(), jacobian)) / len(p) / 2
    assert abs(d.trace - trace) < 4 * d.trace_stderr + 1e-6 * trace


def test_dictionaries_of_hugging_face_are_batches():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=8, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    g = torch.Generator().manual_seed(1)
    dictionaries = [
        transformers.BatchEncoding({
            "input_ids": torch.randint(0, 20, (4, 6), generator=g),
            "attention_mask": torch.ones(4, 6, dtype=torch.long),
            "labels": torch.randint(0, 3, (4,), generator=g),
        })
        for _ in range(16)
    ]
    own = reduction_factors(model, None, dictionaries, [0.1])
    given = reduction_factors(model, F.cross_entropy, dictionaries, [0.1])
    assert own.norms == pytest.approx(given.norms, rel=1e-5) and own.outputs == given.outputs == 3
    assert own.loss == pytest.approx(given.loss, rel=1e-6)

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return self.inner(x).logits

    pairs = [(batch["input_ids"], batch["labels"]) for batch in dictionaries]
    plain = reduction_factors(Logits(), F.cross_entropy, pairs, [0.1])
    assert plain.norms == pytest.approx(given.norms, rel=1e-5)
    d, e = (
        intrinsic_dimension(m, F.cross_entropy, batches[:2], probes=4)
        for m, batches in ((model, dictionaries), (Logits(), pairs))
    )
    assert d.trace == pytest.approx(e.trace, rel=1e-4) and d.samples == 8
    with pytest.raises(ValueError, match="loss = None needs batches that are dictionaries"):
        reduction_factors(Logits(), None, pairs, [0.1])
    short = dict(dictionaries[0]) | {"labels": torch.zeros(2).long()}
    with pytest.raises(ValueError, match="different lengths"):
        reduction_factors(model, None, [short], [0.1])
