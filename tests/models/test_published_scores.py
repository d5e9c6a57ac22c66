"""Models against scores by the code of their authors, for small random parameters (OWKG_DATA)."""

import os
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from owkg.models import Trained, model, score_all

DATA = Path(os.environ.get("OWKG_DATA", "nowhere")) / "model_fixtures"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs OWKG_DATA")
ENTITIES, RELATIONS = 7, 3


def fixture(name):
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        return dict(file)


def biased(z):
    return {
        "entity": z["entity_weight"],
        "head_bias": z["bh_weight"][:, 0],
        "tail_bias": z["bt_weight"][:, 0],
    }


def mure():
    z = fixture("mure")
    return {"dim": 6}, biased(z) | {"relation": np.hstack([-z["rel_weight"], z["rel_diag_weight"]])}, {}


def mure_balazevic():
    z = fixture("mure_balazevic")
    own = {name: z[name] for name in ("entity", "head_bias", "tail_bias")}
    return {"dim": 6}, own | {"relation": np.hstack([z["relation_shift"], z["relation_scale"]])}, {}


def of_pairs(name):
    z = fixture(name)
    return {"dim": 6}, biased(z) | {"relation": np.hstack([z["rel_weight"], z["rel_diag_weight"]])}, {}


def atte():
    z = fixture("atte")
    rows = [z[name] for name in ("rel_weight", "rot_weight", "ref_weight", "context_vec_weight")]
    return {"dim": 6}, biased(z) | {"relation": np.hstack(rows)}, {}


def simple():
    z = fixture("simple")
    entity = np.hstack([z["ent_h_embs_weight"], z["ent_t_embs_weight"]])
    return (
        {"dim": 6},
        {"entity": entity, "relation": np.hstack([z["rel_embs_weight"], z["rel_inv_embs_weight"]])},
        {},
    )


def bique():
    z = fixture("bique")
    return {"dim": 2}, {name: z[name] for name in ("entity", "relation")}, {}


def normalised(z, names):
    params, statistics = {}, {}
    for theirs, ours in names.items():
        params |= {f"{ours}_scale": z[f"{theirs}_weight"], f"{ours}_shift": z[f"{theirs}_bias"]}
        statistics |= {f"{ours}_mean": z[f"{theirs}_running_mean"]}
        statistics |= {f"{ours}_variance": z[f"{theirs}_running_var"]}
    return params, statistics


def interacte():
    z = fixture("interacte")
    options = {"dim": 18, "height": 3, "kernel": 3, "channels": 4, "permutations": 2}
    params, statistics = normalised(z, {"bn0": "input", "bn1": "channel", "bn2": "output"})
    # Channels of PyTorch stand before rows and columns.
    dense = z["fc_weight"].reshape(18, 8, 6, 6).transpose(2, 3, 1, 0).reshape(-1, 18)
    params |= {"entity": z["ent_embed_weight"], "relation": z["rel_embed_weight"], "entity_bias": z["bias"]}
    params |= {
        "filters": z["conv_filt"].transpose(2, 3, 1, 0),
        "dense_weight": dense,
        "dense_bias": z["fc_bias"],
    }
    return options, params, statistics | {"order": z["chequer_perm"].ravel().astype(np.int32)}


def of_curvature(name, rows, parts):
    """Rows of relations, of KGEmb, whose curvature is softplus of what is held."""
    z = fixture(name)
    held = [np.split(z["rel_weight"], 2, axis=1)[i] for i in range(parts)]
    relation = np.hstack([*held, *(z[row] for row in rows), z["c"]])
    return {"dim": 6}, biased(z) | {"relation": relation}, {}


def of_ball(points):
    """Tangent vectors at the origin of points of the ball."""
    length = np.linalg.norm(points, axis=1, keepdims=True)
    return np.arctanh(length) * points / length


def murp_balazevic():
    z = fixture("murp_balazevic")
    own = {name: z[name] for name in ("head_bias", "tail_bias")} | {"entity": of_ball(z["entity"])}
    return {"dim": 6}, own | {"relation": np.hstack([of_ball(z["relation_shift"]), z["relation_scale"]])}, {}


def hake():
    z = fixture("hake")
    weights = {name: z[name][0] for name in ("phase_weight", "modulus_weight")}
    return {"dim": 6}, {name: z[name] for name in ("entity", "relation")} | weights, {}


def mode():
    z = fixture("mode")
    return {"dim": 6}, {name: z[name] for name in ("entity", "relation")}, {}


def compgcn(z):
    """Options, parameters, statistics and facts; the bias before the normalisation moves its mean."""
    norms = {"conv1_bn": "layer0"}
    decoder = next(one for one in ("conve", "distmult", "transe") if one in str(z["name"]))
    options = {
        "dim": 6, "encoded_dim": 8, "decoder": decoder, "composition": str(z["name"]).split("_")[-1],
        "margin": 9.0, "reciprocal": decoder != "transe", "height": 2, "channels": 3, "kernel": 3,
    }  # fmt: skip
    params = {"entity": z["init_embed"], "relation": z["init_rel"], "loop0": z["conv1_loop_rel"]}
    params |= {"in0": z["conv1_w_in"], "out0": z["conv1_w_out"]}
    params |= {"loop_to0": z["conv1_w_loop"], "rel0": z["conv1_w_rel"]}
    if decoder != "transe":
        params["entity_bias"] = z["bias"]
    if decoder == "conve":
        norms |= {"bn0": "input", "bn1": "channel", "bn2": "output"}
        params |= {"filters": z["m_conv1_weight"].transpose(2, 3, 1, 0), "filters_bias": z["m_conv1_bias"]}
        dense = z["fc_weight"].reshape(8, 3, 2, 2).transpose(2, 3, 1, 0).reshape(-1, 8)
        params |= {"dense_weight": dense, "dense_bias": z["fc_bias"]}
    own, statistics = normalised(z, norms)
    statistics["layer0_mean"] = statistics["layer0_mean"] - z["conv1_bias"]
    return options, params | own, statistics, norms


@pytest.mark.parametrize("composition", ["corr", "sub", "mult"])
@pytest.mark.parametrize("decoder", ["conve", "distmult", "transe"])
def test_compgcn_by_its_authors_in_training_too(decoder, composition):
    """Scores of all queries in one batch, and what the normalisations then hold."""
    name = f"compgcn_{decoder}_{composition}"
    z = fixture(name) | {"name": name}
    options, params, statistics, norms = compgcn(z)
    dropout = {f"{one}_dropout": 0.0 for one in ("graph", "encoded", "channel", "output")}
    built = model("compgcn", **options, **dropout)
    params, statistics = jax.tree.map(jnp.asarray, (params, statistics))
    statistics |= built.of_graph(z["triples"].astype(np.int32), ENTITIES, RELATIONS)
    asked = [x.ravel() for x in np.meshgrid(np.arange(ENTITIES), np.arange(2 * RELATIONS), indexing="ij")]
    tail, key = asked[1] < RELATIONS, jax.random.key(0)
    encoded, after = built.encode(params, statistics, key=key)
    if decoder == "conve":  # one batch, as inverse relations are rows too
        queries, after = built.query(encoded, after, *asked, "tail", key=key)
        scores = built.similarity.all(queries, built.candidates(encoded))
        np.testing.assert_allclose(scores, z["train_scores"].reshape(scores.shape), rtol=2e-5, atol=5e-6)
    for theirs, ours in norms.items():
        bias = z["conv1_bias"] if ours == "layer0" else 0
        np.testing.assert_allclose(
            after[f"{ours}_mean"] + bias, z[f"{theirs}_running_mean_after"], rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(after[f"{ours}_variance"], z[f"{theirs}_running_var_after"], rtol=1e-5)
    plain = replace(built, encode=None)
    ways = {"scores": Trained(built, params, after), "train_scores": Trained(plain, encoded, after)}
    for name, trained in list(ways.items())[: 1 if decoder == "conve" else 2]:
        expected = z[name].reshape(len(tail), ENTITIES)
        for side, own, shift in (("tail", tail, 0), ("head", ~tail, RELATIONS)):
            got = score_all(trained, asked[0][own], asked[1][own] - shift, side)
            np.testing.assert_allclose(got, expected[own], rtol=2e-5, atol=5e-6)


CASES = {
    "roth": ("roth", lambda: of_curvature("roth", ["rel_diag_weight"], 2), 1e-10),
    "refh": ("refh", lambda: of_curvature("refh", ["rel_diag_weight"], 1), 1e-10),
    "atth": ("atth", lambda: of_curvature("atth", ["rel_diag_weight", "context_vec_weight"], 1), 1e-7),
    "murp_balazevic": ("murp", murp_balazevic, 1e-10),
    "hake": ("hake", hake, 1e-5),  # in float32, by a pi of seven decimals
    "mode": ("mode", mode, 1e-5),
    "mure": ("mure", mure, 1e-10),
    "mure_balazevic": ("mure", mure_balazevic, 1e-10),
    "rote": ("rote", lambda: of_pairs("rote"), 1e-10),
    "refe": ("refe", lambda: of_pairs("refe"), 1e-10),
    "atte": ("atte", atte, 1e-7),  # its square root is of float32
    "simple": ("simple", simple, 1e-5),
    "bique": ("bique", bique, 1e-5),
    "interacte": ("interacte", interacte, 5e-6),
}


def own_scores(name, options, params, statistics):
    """Scores [entity, relation, answer], of tails, then of heads where the model is reciprocal."""
    built = model(name, **options)
    entity, relation = (
        x.ravel() for x in np.meshgrid(np.arange(ENTITIES), np.arange(RELATIONS), indexing="ij")
    )

    def scored(side):
        return score_all(Trained(built, params, statistics), entity, relation, side).reshape(
            ENTITIES, RELATIONS, -1
        )

    sides = ("tail", "head") if built.config.reciprocal else ("tail",)
    return np.concatenate([scored(side) for side in sides], axis=1)


@pytest.mark.parametrize("name", CASES)
def test_scores_of_the_authors(name):
    own, make, tolerance = CASES[name]
    expected = fixture(name)["scores"]
    with jax.enable_x64(True):
        options, *arrays = make()
        wide = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64 if x.dtype.kind == "f" else x.dtype), arrays)
        got = own_scores(own, options, *wide)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_penalties_of_bique_are_of_the_moved_head():
    z = fixture("bique")
    rows = (np.repeat(np.arange(ENTITIES), 6), np.tile(np.arange(6), ENTITIES))
    head, relation = jnp.asarray(z["entity"][rows[0]]), jnp.asarray(z["relation"][rows[1]])
    built = model("bique", dim=2)
    moved, times, tail = built.factors(head, relation, head)
    np.testing.assert_allclose(moved[0], z["norm_head_moved"], rtol=1e-6)
    np.testing.assert_allclose(times[0], z["norm_relation"], rtol=1e-6)
    np.testing.assert_allclose(tail[0], np.linalg.norm(np.reshape(head, (-1, 8, 2)), axis=1), rtol=1e-6)
    assert (moved[1], times[1], tail[1]) == (2.0, 0.5, 2.0)
