"""Models against the formulas of their papers, in float64 with loops; forms of a score against each other."""

import cmath
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg, special

from owkg.models import MODELS, Model, Trained, model, score, score_all

pytestmark = pytest.mark.usefixtures("quick_compilation")

# --- single triples, written from the papers


def transe(p, c, h, r, t):
    difference = [a + b - d for a, b, d in zip(p["entity"][h], p["relation"][r], p["entity"][t], strict=True)]
    if c.norm == 1:
        return c.margin - sum(abs(x) for x in difference)
    return c.margin - math.sqrt(sum(x * x for x in difference))


def distmult(p, c, h, r, t):
    return sum(a * b * d for a, b, d in zip(p["entity"][h], p["relation"][r], p["entity"][t], strict=True))


def _complex(row):
    half = len(row) // 2
    return [complex(row[k], row[half + k]) for k in range(half)]


def complex_(p, c, h, r, t):
    rows = (_complex(p["entity"][h]), _complex(p["relation"][r]), _complex(p["entity"][t]))
    return sum(a * b * d.conjugate() for a, b, d in zip(*rows, strict=True)).real


def rotate(p, c, h, r, t):
    width = (c.margin + 2) / c.dim
    total = 0.0
    for a, b, d in zip(_complex(p["entity"][h]), p["relation"][r], _complex(p["entity"][t]), strict=True):
        total += abs(a * cmath.exp(1j * math.pi * b / width) - d)
    return c.margin - total


def protate(p, c, h, r, t):
    width = (c.margin + 2) / c.dim
    total = 0.0
    for a, b, d in zip(p["entity"][h], p["relation"][r], p["entity"][t], strict=True):
        angle = math.pi * (a + b - d) / width
        total += abs(math.sin(angle / 2 if c.half_angle else angle))
    return c.margin - abs(p["modulus"][0]) * total


def rescal(p, c, h, r, t):
    R = p["relation"][r]
    total = 0.0
    for i in range(c.dim):
        for j in range(c.dim):
            total += p["entity"][h][i] * R[i * c.dim + j] * p["entity"][t][j]
    return total


def _normed(p, name, x):
    """Batch normalisation by running statistics; channels last."""
    mean, variance = p[f"{name}_mean"], p[f"{name}_variance"]
    return (x - mean) / np.sqrt(variance + 1e-5) * p[f"{name}_scale"] + p[f"{name}_shift"]


def tucker(p, c, h, r, t):
    head = _normed(p, "input", p["entity"][h]) if c.batch_norm else p["entity"][h]
    query = np.zeros(c.dim)
    for k in range(c.relation_dim):
        for i in range(c.dim):
            for j in range(c.dim):
                query[j] += p["core"][k, i, j] * p["relation"][r][k] * head[i]
    if c.batch_norm:
        query = _normed(p, "output", query)
    return sum(a * b for a, b in zip(query, p["entity"][t], strict=True))


def conve(p, c, h, r, t):
    width = c.dim // c.height
    picture = np.concatenate(
        [p["entity"][h].reshape(c.height, width), p["relation"][r].reshape(c.height, width)]
    )
    return _of_picture(p, c, picture, t)


def _of_picture(p, c, picture, t):
    picture = _normed(p, "input", picture[:, :, None])[:, :, 0]
    rows, columns = (size - 2 for size in picture.shape)
    maps = np.zeros((rows, columns, c.channels))
    for y in range(rows):
        for x in range(columns):
            for channel in range(c.channels):
                under = picture[y : y + 3, x : x + 3] * p["filters"][:, :, 0, channel]
                maps[y, x, channel] = under.sum() + p["filters_bias"][channel]
    flat = np.maximum(_normed(p, "channel", maps), 0).ravel()
    dense = flat @ p["dense_weight"] + p["dense_bias"]
    hidden = np.maximum(_normed(p, "output", dense), 0)
    return hidden @ p["entity"][t] + p["entity_bias"][t]


def betae(p, c, h, r, t):
    def beta(row):
        return np.minimum(np.maximum(row + 1, 0.05), 1e9)

    x = np.concatenate([beta(p["entity"][h]), p["relation"][r]])
    for i in range(c.hidden_layers):
        x = np.maximum(x @ p[f"hidden{i}_weight"] + p[f"hidden{i}_bias"], 0)
    query = beta(x @ p["last_weight"] + p["last_bias"])
    total = 0.0
    for k in range(c.dim):
        a, b = beta(p["entity"][t])[[k, c.dim + k]]
        A, B = query[[k, c.dim + k]]
        total += special.betaln(A, B) - special.betaln(a, b)
        total += (a - A) * special.digamma(a) + (b - B) * special.digamma(b)
        total += (A - a + B - b) * special.digamma(a + b)
    return c.margin - total


def hole(p, c, h, r, t):
    a, b, d = p["entity"][h], p["relation"][r], p["entity"][t]
    return sum(b[k] * a[i] * d[(k + i) % c.dim] for k in range(c.dim) for i in range(c.dim))


def simple(p, c, h, r, t):
    n = c.dim
    a, b, d = p["entity"][h], p["relation"][r], p["entity"][t]
    return ((a[:n] * b[:n] * d[n:]).sum() + (d[:n] * b[n:] * a[n:]).sum()) / 2


def cp(p, c, h, r, t):
    return sum(
        a * b * d for a, b, d in zip(p["entity"][h], p["relation"][r], p["entity"][t][c.dim :], strict=False)
    )


def bique(p, c, h, r, t):
    """Quaternions of complex numbers as 2 x 2 matrices: w + x i + y j + z k."""

    def matrix(row, k):
        w, x, y, z = (row[2 * n * c.dim + k] + 1j * row[(2 * n + 1) * c.dim + k] for n in range(4))
        return np.array([[w + 1j * x, y + 1j * z], [-y + 1j * z, w - 1j * x]])

    half, total = 8 * c.dim, 0.0
    moved = p["entity"][h] + p["relation"][r][half:]
    for k in range(c.dim):
        (a, b), (d, e) = matrix(moved, k) @ matrix(p["relation"][r][:half], k)
        components = (a + e) / 2, (a - e) / 2j, (b - d) / 2, (b + d) / 2j
        for n, component in enumerate(components):
            real, imaginary = (p["entity"][t][(2 * n + i) * c.dim + k] for i in range(2))
            total += component.real * real + component.imag * imaginary
    return total


def _distance(p, moved, h, t):
    return -((moved - p["entity"][t]) ** 2).sum() + p["head_bias"][h] + p["tail_bias"][t]


def _turned(pairs, x, *, reflect):
    found = np.zeros_like(x)
    for k in range(0, len(x), 2):
        a, b = pairs[k : k + 2] / math.hypot(*pairs[k : k + 2])
        turn = [[a, b], [b, -a]] if reflect else [[a, -b], [b, a]]
        found[k : k + 2] = np.array(turn) @ x[k : k + 2]
    return found


def mure(p, c, h, r, t):
    shift, scale = np.split(p["relation"][r], 2)
    return _distance(p, scale * p["entity"][h] - shift, h, t)


def rote(p, c, h, r, t):
    shift, pairs = np.split(p["relation"][r], 2)
    return _distance(p, _turned(pairs, p["entity"][h], reflect=False) + shift, h, t)


def refe(p, c, h, r, t):
    shift, pairs = np.split(p["relation"][r], 2)
    return _distance(p, _turned(pairs, p["entity"][h], reflect=True) + shift, h, t)


def atte(p, c, h, r, t):
    shift, rotation, reflection, context = np.split(p["relation"][r], 4)
    both = [
        _turned(rotation, p["entity"][h], reflect=False),
        _turned(reflection, p["entity"][h], reflect=True),
    ]
    weights = special.softmax([context @ x / math.sqrt(c.dim) for x in both])
    return _distance(p, weights[0] * both[0] + weights[1] * both[1] + shift, h, t)


def interacte(p, c, h, r, t):
    rows, columns = 2 * c.height, c.dim // c.height
    both = np.concatenate([p["entity"][h], p["relation"][r]])[p["order"].astype(int)]
    pictures = np.moveaxis(both.reshape(c.permutations, rows, columns), 0, -1)
    pictures = _normed(p, "input", pictures)
    maps = np.zeros((rows, columns, c.permutations, c.channels))
    around = c.kernel // 2
    for y, x, i, j in np.ndindex(rows, columns, c.kernel, c.kernel):
        under = pictures[(y + i - around) % rows, (x + j - around) % columns]
        maps[y, x] += under[:, None] * p["filters"][i, j, 0]
    flat = np.maximum(_normed(p, "channel", maps.reshape(rows, columns, -1)), 0).ravel()
    hidden = np.maximum(_normed(p, "output", flat @ p["dense_weight"] + p["dense_bias"]), 0)
    return hidden @ p["entity"][t] + p["entity_bias"][t]


def transh(p, c, h, r, t):
    shift, normal = np.split(p["relation"][r], 2)
    normal = normal / np.linalg.norm(normal)
    head, tail = (x - (normal @ x) * normal for x in (p["entity"][h], p["entity"][t]))
    return -((head + shift - tail) ** 2).sum()


def _exp0(v, c):
    length = math.sqrt(c) * np.linalg.norm(v)
    return math.tanh(length) * v / length


def _add(x, y, c):
    xy, xx, yy = x @ y, x @ x, y @ y
    return ((1 + 2 * c * xy + c * yy) * x + (1 - c * xx) * y) / (1 + 2 * c * xy + c * c * xx * yy)


def _ball_distance(p, x, y, c, h, t):
    apart = 2 / math.sqrt(c) * math.atanh(math.sqrt(c) * np.linalg.norm(_add(-x, y, c)))
    return -(apart**2) + p["head_bias"][h] + p["tail_bias"][t]


def roth(p, c, h, r, t):
    *rows, raw = p["relation"][r]
    first, second, pairs = np.split(np.array(rows), 3)
    k = math.log1p(math.exp(raw))
    moved = _turned(pairs, _add(_exp0(p["entity"][h], k), _exp0(first, k), k), reflect=False)
    return _ball_distance(p, _add(moved, _exp0(second, k), k), _exp0(p["entity"][t], k), k, h, t)


def refh(p, c, h, r, t):
    *rows, raw = p["relation"][r]
    shift, pairs = np.split(np.array(rows), 2)
    k = math.log1p(math.exp(raw))
    moved = _add(_exp0(_turned(pairs, p["entity"][h], reflect=True), k), _exp0(shift, k), k)
    return _ball_distance(p, moved, _exp0(p["entity"][t], k), k, h, t)


def atth(p, c, h, r, t):
    *rows, raw = p["relation"][r]
    shift, rotation, reflection, context = np.split(np.array(rows), 4)
    k = math.log1p(math.exp(raw))
    both = [
        _turned(rotation, p["entity"][h], reflect=False),
        _turned(reflection, p["entity"][h], reflect=True),
    ]
    weights = special.softmax([context @ x / math.sqrt(c.dim) for x in both])
    moved = _add(_exp0(weights[0] * both[0] + weights[1] * both[1], k), _exp0(shift, k), k)
    return _ball_distance(p, moved, _exp0(p["entity"][t], k), k, h, t)


def murp(p, c, h, r, t):
    shift, scale = np.split(p["relation"][r], 2)
    tail = _add(_exp0(p["entity"][t], 1), _exp0(shift, 1), 1)
    return _ball_distance(p, _exp0(scale * p["entity"][h], 1), tail, 1, h, t)


def hake(p, c, h, r, t):
    width = (c.margin + 2) / c.dim
    (h_p, h_m), (t_p, t_m) = (np.split(p["entity"][x], 2) for x in (h, t))
    r_p, r_m, b = np.split(p["relation"][r], 3)
    b = np.minimum(np.maximum(b, -abs(r_m)), 1)
    phases = np.abs(np.sin(math.pi / width * (h_p + r_p - t_p) / 2)).sum()
    moduli = np.linalg.norm(h_m * (abs(r_m) + b) - t_m * (1 - b))
    return c.margin - p["phase_weight"][0] * phases - p["modulus_weight"][0] * moduli


def mode(p, c, h, r, t):
    return c.margin - np.abs(p["entity"][h] * p["relation"][r] - p["entity"][t]).sum()


# Of encoders; entity 6 has none, and one fact is a loop.
FACTS = np.array(
    [[0, 0, 1], [1, 2, 0], [2, 2, 2], [3, 1, 1], [3, 0, 1], [4, 0, 5], [5, 1, 3], [0, 2, 5]], np.int32
)


def _messages():
    """(receiver, sender, directed relation, facts that way of the receiver, of the sender)."""
    for way, (to, of) in enumerate(((0, 2), (2, 0))):
        for fact in FACTS:
            counts = ((FACTS[:, to] == fact[at]).sum() for at in (to, of))
            yield fact[to], fact[of], fact[1] + way * M, *counts


def rgcn(p, c, h, r, t):
    def matrix(layer, relation):
        if not c.blocks:
            shares = p[f"relation_bases{layer}"][relation]
            return sum(share * basis for share, basis in zip(shares, p[f"bases{layer}"], strict=True))
        return linalg.block_diag(*np.split(p[f"relation_blocks{layer}"][relation], c.blocks))

    x = np.maximum(p["entity"] + p["bias"], 0)
    for layer in range(c.layers):
        new = x @ p[f"self{layer}"]
        for to, of, relation, count, _ in _messages():
            new[to] += x[of] @ matrix(layer, relation) / count
        x = new if layer == c.layers - 1 else np.maximum(new, 0)
    return (x[h] * p["relation"][r] * x[t]).sum()


def compgcn(p, c, h, r, t):
    def phi(x, r):
        if c.composition == "corr":
            return np.array([sum(x[i] * r[(k + i) % len(x)] for i in range(len(x))) for k in range(len(x))])
        return x - r if c.composition == "sub" else x * r

    x, relations = p["entity"], p["relation"]
    relations = relations if c.reciprocal else np.concatenate([relations, -relations])
    for i in range(c.layers):
        new = np.array([phi(row, p[f"loop{i}"][0]) @ p[f"loop_to{i}"] for row in x])
        for to, of, relation, *counts in _messages():
            if counts[1]:
                way = "in" if relation < M else "out"
                new[to] += phi(x[of], relations[relation]) @ p[f"{way}{i}"] / math.sqrt(math.prod(counts))
        x, relations = np.tanh(_normed(p, f"layer{i}", new / 3)), relations @ p[f"rel{i}"]
    if c.decoder == "transe":
        return c.margin - np.abs(x[h] + relations[r] - x[t]).sum()
    if c.decoder == "distmult":
        return (x[h] * relations[r] * x[t]).sum() + p["entity_bias"][t]
    picture = np.array([x[h], relations[r]]).T.reshape(2 * c.height, -1)
    return _of_picture(p | {"entity": x}, c, picture, t)


def _normalised(x, scale, shift):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-12) * scale + shift


def _read(p, c, name, x):
    """The first vector after all layers: attention of every head, then a network, each added."""
    of = {key.removeprefix(f"{name}_"): array for key, array in p.items() if key.startswith(f"{name}_")}
    for layer in range(len(of["join"])):
        w = {key: array[layer] for key, array in of.items()}
        q, k, v = np.split(x @ w["attend"] + w["attend_bias"], 3, axis=1)
        seen, size = np.zeros_like(x), c.dim // c.heads
        for head in range(c.heads):
            own = slice(head * size, (head + 1) * size)
            for i in range(len(x)):
                weights = special.softmax([q[i, own] @ k[j, own] / math.sqrt(size) for j in range(len(x))])
                seen[i, own] = sum(weight * v[j, own] for j, weight in enumerate(weights))
        x = x + seen @ w["join"] + w["join_bias"]
        x = np.array([_normalised(row, w["first_scale"], w["first_shift"]) for row in x])
        wide = x @ w["widen"] + w["widen_bias"]
        wide = wide * (1 + special.erf(wide / math.sqrt(2))) / 2
        x = x + wide @ w["narrow"] + w["narrow_bias"]
        x = np.array([_normalised(row, w["second_scale"], w["second_shift"]) for row in x])
    return x[0]


def hitter(p, c, h, r, t):
    begin, begin_context, _, entity, relation, source, neighbour = p["marks"]

    def triple(e, along):
        return _read(
            p, c, "lower", np.stack([begin, p["entity"][e] + entity, p["relation"][along] + relation])
        )

    near = [(int(e), int(along)) for e, along in p["neighbours"][h] if e >= 0]
    context = [begin_context, triple(h, r) + source] + [triple(*one) + neighbour for one in near]
    return _read(p, c, "upper", np.stack(context)) @ p["entity"][t]


FORMULAS: dict[str, Callable[..., float]] = {
    "transe": transe,
    "distmult": distmult,
    "complex": complex_,
    "rotate": rotate,
    "protate": protate,
    "rescal": rescal,
    "tucker": tucker,
    "conve": conve,
    "betae": betae,
    "hole": hole,
    "simple": simple,
    "cp": cp,
    "bique": bique,
    "mure": mure,
    "rote": rote,
    "refe": refe,
    "atte": atte,
    "interacte": interacte,
    "transh": transh,
    "hake": hake,
    "mode": mode,
    "murp": murp,
    "roth": roth,
    "refh": refh,
    "atth": atth,
    "rgcn": rgcn,
    "compgcn": compgcn,
    "hitter": hitter,
}


# --- models, small enough for loops

N, M = 7, 3
OPTIONS = {
    "transe": [{"dim": 5}, {"dim": 5, "norm": 2, "margin": 9.0}, {"dim": 5, "reciprocal": True}],
    "distmult": [{"dim": 5}, {"dim": 5, "reciprocal": False}],
    "complex": [{"dim": 4}, {"dim": 4, "reciprocal": False, "init_law": "uniform", "init_scale": 0.5}],
    "rotate": [{"dim": 4}, {"dim": 4, "reciprocal": True}],
    "protate": [{"dim": 5}, {"dim": 5, "half_angle": True}],
    "rescal": [{"dim": 4}, {"dim": 4, "reciprocal": False}],
    "tucker": [{"dim": 5, "relation_dim": 3}, {"dim": 4, "relation_dim": 2, "batch_norm": False}],
    "conve": [{"dim": 12, "height": 3, "channels": 2}],
    "betae": [{"dim": 4, "hidden": 6, "margin": 9.0}, {"dim": 4, "hidden": 5, "hidden_layers": 1}],
    "hole": [{"dim": 5}, {"dim": 6, "reciprocal": True}],
    "simple": [{"dim": 4}, {"dim": 3, "reciprocal": True}],
    "cp": [{"dim": 5}],
    "bique": [{"dim": 3}],
    "mure": [{"dim": 5}],
    "rote": [{"dim": 6}],
    "refe": [{"dim": 6}],
    "atte": [{"dim": 6}],
    "transh": [{"dim": 5}, {"dim": 4, "reciprocal": True}],
    "hake": [{"dim": 4}, {"dim": 3, "margin": 9.0, "reciprocal": True}],
    "mode": [{"dim": 5}],
    "murp": [{"dim": 4}],
    "roth": [{"dim": 4}],
    "refh": [{"dim": 4}],
    "atth": [{"dim": 4}],
    "rgcn": [{"dim": 4}, {"dim": 6, "blocks": 3, "layers": 2, "reciprocal": True}],
    "compgcn": [
        {"dim": 5, "encoded_dim": 4, "layers": 2},
        {"dim": 3, "encoded_dim": 4, "composition": "sub", "decoder": "transe", "reciprocal": False},
        {"dim": 4, "encoded_dim": 12, "composition": "mult", "decoder": "conve", "height": 3, "channels": 2}
        | {"kernel": 3},
    ],
    "hitter": [{"dim": 4, "heads": 2, "hidden": 6, "triple_layers": 1, "context_layers": 2, "neighbours": 9}],
    "interacte": [
        {"dim": 18, "height": 3, "kernel": 3, "channels": 2},
        {"dim": 8, "height": 2, "kernel": 3, "channels": 3, "permutations": 2},
    ],
}
CASES = [
    pytest.param((name, options), id=f"{name}-{i}")
    for name in OPTIONS
    for i, options in enumerate(OPTIONS[name])
]
H, R, T = (np.random.default_rng(8).integers(0, size, 40) for size in (N, M, N))


class Case(NamedTuple):
    """A model with parameters and statistics that no initial value hides: zeros and ones are gone."""

    name: str
    built: Model
    init: Callable  # of a key, compiled
    params: dict
    statistics: dict


@pytest.fixture(scope="module", params=CASES)
def case(request):
    name, options = request.param
    built = model(name, **options)
    init, known = jax.jit(lambda key: built.begun(key, N, M, FACTS)), built.graph_shapes(N, M)
    params, statistics = init(jax.random.key(0))
    rng = np.random.default_rng(0)

    def moved(array):
        if not jnp.issubdtype(array.dtype, jnp.floating):
            return array
        return array + jnp.asarray(rng.uniform(0.1, 0.6, array.shape), jnp.float32)

    fixed = {"protate": ("entity", "relation")}.get(name, ())
    params = {key: array if key in fixed else moved(array) for key, array in params.items()}
    return Case(
        name,
        built,
        init,
        params,
        {key: array if key in known else moved(array) for key, array in statistics.items()},
    )


@pytest.fixture(scope="module")
def scores(case):
    """Every form of the scores, compiled at once."""
    built = case.built
    assert len(case.params["relation"]) == (2 * M if built.config.reciprocal else M)

    @jax.jit
    def forms(params, statistics):
        own = Trained(built, params, statistics)
        each, every = partial(score, own), partial(score_all, own)
        shards = [every(H, R, "tail", ids) for ids in ([0, 1, 2], [3, 4, 5, 6])]
        if built.config.reciprocal:
            done = own.encoded()
            inverse = done.params | {"relation": jnp.roll(done.params["relation"], M, axis=0)}
            # Of a model that knows facts, those of the inverse relations.
            known = done.statistics | built.of_graph(FACTS[:, ::-1], N, M)
            asked = score_all(Trained(done.model, inverse, known), T, R, "tail")
        else:
            asked = each(np.arange(N), R[:, None], T[:, None])
        narrow = {key: array.astype(jnp.bfloat16) for key, array in params.items()}
        rounded = {key: array.astype(jnp.float32) for key, array in narrow.items()}
        return {
            "triples": each(H, R, T),
            "tails": every(H, R, "tail"),
            "tails one by one": each(H[:, None], R[:, None], np.arange(N)),
            "tails in shards": jnp.concatenate(shards, axis=1),
            "heads": every(T, R, "head"),
            "heads otherwise": asked,
            "narrow query": replace(own, params=narrow).queries(H, R, "tail"),
            "narrow": score_all(replace(own, params=narrow), H, R, "tail"),
            "rounded": score_all(replace(own, params=rounded), H, R, "tail"),
        }

    return forms(case.params, case.statistics)


def test_every_model_is_here():
    computed = {name for name, kind in MODELS.items() if not kind.made_by}
    assert computed == OPTIONS.keys() == FORMULAS.keys()


def test_scores_are_those_of_the_paper(case, scores):
    exact = {key: np.asarray(a, np.float64) for key, a in (case.params | case.statistics).items()}
    formula = FORMULAS[case.name]
    expected = [formula(exact, case.built.config, *t) for t in zip(H, R, T, strict=True)]
    got = scores["triples"]
    assert got.shape == (40,)
    assert got.dtype == jnp.float32
    assert np.std(expected) > 1e-3
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)


def test_columns_and_shards_are_the_scores_of_triples(scores):
    whole = scores["tails"]
    assert whole.shape == (40, N)
    np.testing.assert_allclose(whole, scores["tails one by one"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(whole, scores["tails in shards"], rtol=1e-6, atol=1e-6)


def test_heads_are_asked_for_by_the_same_score_or_by_inverse_relations(scores):
    np.testing.assert_allclose(scores["heads"], scores["heads otherwise"], rtol=1e-5, atol=1e-5)


def test_bfloat16_scores_are_near_in_float32(case, scores):
    # Points near the edge of the ball have no digits left in narrow numbers.
    wide = case.name in ("roth", "refh", "atth", "murp")
    assert scores["narrow query"].dtype == (jnp.float32 if wide else jnp.bfloat16)
    got, expected = scores["narrow"], scores["rounded"]
    assert got.dtype == jnp.float32
    assert np.abs(got - expected).max() <= 0.05 * max(1, np.abs(expected).max())


@pytest.mark.parametrize("name", [name for name in MODELS if model(name).graph])
def test_entities_in_another_order_have_the_same_scores(name):
    built, order = model(name, dim=8), np.random.default_rng(5).permutation(N)  # where each goes
    params, statistics = built.begun(jax.random.key(1), N, M, FACTS)
    moved = np.stack([order[FACTS[:, 0]], FACTS[:, 1], order[FACTS[:, 2]]], 1)[::-1].astype(np.int32)
    turned = {key: x[np.argsort(order)] if key.startswith("entity") else x for key, x in params.items()}
    other = Trained(built, turned, statistics | built.of_graph(moved, N, M))
    scores = score_all(Trained(built, params, statistics), H, R, "tail")
    np.testing.assert_allclose(
        score_all(other, order[H], R, "tail")[:, order], scores, rtol=1e-4, atol=1e-5 * np.abs(scores).max()
    )


# --- what training needs


def encoded(built, params, statistics, key):
    return built.encode(params, statistics, key=key) if built.encode else (params, statistics)


def test_gradients_are_finite_at_initial_values_and_where_everything_coincides(case):
    """Of the loss evaluated and trained: where one of the two is not finite, their sum is not."""
    built = case.built

    def loss(params, statistics):
        total = 0.0
        for side, entity in (("tail", H), ("head", T)):
            for key in (None, jax.random.key(5)):
                rows, running = encoded(built, params, statistics, key)
                queries, _ = built.query(rows, running, entity, R, side, key=key)
                candidates = built.candidates(rows)
                total += built.similarity.all(queries, candidates).sum()
                total += built.similarity.one(queries[:, None], candidates[None]).sum()
        return total

    gradient = jax.jit(jax.grad(loss))
    params, statistics = case.init(jax.random.key(0))
    for point in (params, jax.tree.map(np.zeros_like, params)):
        gradients = gradient(point, statistics)
        assert all(np.isfinite(g).all() for g in gradients.values())
    assert gradients.keys() == params.keys()


def test_both_forms_of_the_similarity_have_the_same_gradients(case):
    built, weight = case.built, np.random.default_rng(1).normal(size=(len(H), N)).astype(np.float32)

    def loss(compare):
        return lambda queries, candidates: (weight * compare(queries, candidates)).sum()

    @jax.jit
    def gradients(params, statistics):
        own = Trained(built, params, statistics).encoded()
        both = own.queries(H, R, "tail"), own.candidates()
        one = jax.grad(loss(lambda q, c: built.similarity.one(q[:, None], c[None])), (0, 1))(*both)
        return one, jax.grad(loss(built.similarity.all), (0, 1))(*both)

    for a, b in zip(*gradients(case.params, case.statistics), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * max(1, np.abs(b).max() / 100))


def test_many_sets_of_parameters_at_once(case):
    def scored(key):
        return score_all(Trained(case.built, *case.built.begun(key, N, M, FACTS)), H, R, "head")

    # The other one key after the other.
    every, alone = jax.jit(lambda keys: (jax.vmap(scored)(keys), jax.lax.map(scored, keys)))(
        jax.random.split(jax.random.key(3), 4)
    )
    np.testing.assert_allclose(every, alone, rtol=1e-5, atol=1e-5)


def test_the_same_key_draws_the_same_and_another_key_another(case):
    first, second, third = (case.init(jax.random.key(seed))[0] for seed in (0, 0, 1))
    assert all((first[key] == second[key]).all() for key in first)
    assert (first["entity"] != third["entity"]).any()
    assert all(array.dtype == jnp.float32 for array in first.values())
    for key in case.built.complex_params:
        assert first[key].shape[1] == 2 * case.built.config.dim
