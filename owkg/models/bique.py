"""BiQUE: relations multiply and shift biquaternions."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, options
from owkg.models.kind import FACTORED, SMALL_FACTORED, Kind, Peer
from owkg.models.model import Factors, Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import DOT, root

_PARTS = 8  # four components, each with a real and an imaginary part


@dataclass(frozen=True)
class BiQUE:
    """Options of BiQUE.

    Attributes:
        dim: biquaternions per entity, as 8 dim reals; a relation has twice as many.
        reciprocal: must be True, because heads are predicted through inverse relations.
        init_scale: standard deviation of initial parameters.
    """

    dim: int = 128
    reciprocal: bool = True
    init_scale: float = 1e-3

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.only_reciprocal(self, "bique")
        options.positive(self, "init_scale")


def bique_model(config: BiQUE) -> Model:
    """BiQUE, a product of biquaternions.

        score(h, r, t) = <(h + r+) (x) rx, t>

    <., .> is the dot product of all reals, and (x) the Hamilton product of quaternions whose four components
    are complex. Rows hold the components w, x, y, z, with the real parts of each before its imaginary parts;
    rows of relations hold rx, then r+. A penalty uses the moduli of biquaternions: of the moved head h + r+,
    of rx with a quarter of the weight, and of the tail. All parameters start normal.

    References:
        Guo and Kok 2021, BiQUE: biquaternionic embeddings of knowledge graphs, equations 8 and 9.
    """
    half = _PARTS * config.dim

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        def law(key: Array, shape: tuple[int, int]) -> Array:
            return initial.normal(key, shape, config.init_scale)

        shapes = (num_entities, half), (num_relations, 2 * half)
        return initial.drawn_embeddings(jax.random.split(key), law, config, *shapes), {}

    def form(entity: Float[Array, "q d8"], relation: Float[Array, "q d16"]) -> Float[Array, "q d8"]:
        return biquaternion_product(entity + relation[:, half:], relation[:, :half])

    def factors(entity: Array, relation: Array, answer: Array) -> Factors:
        def moduli(rows: Array) -> Array:
            return root(jnp.square(rows).reshape(len(rows), _PARTS, config.dim).sum(1))

        moved = entity + relation[:, half:]
        return (moduli(moved), 2.0), (moduli(relation[:, :half]), 0.5), (moduli(answer), 2.0)

    return Model(
        "bique",
        config,
        init,
        sided(stateless(form), None, reciprocal=config.reciprocal),
        entity_rows,
        DOT,
        factors=factors,
    )


def biquaternion_product(a: Float[Array, "q d8"], b: Float[Array, "q d8"]) -> Float[Array, "q d8"]:
    """Hamilton products of rows of biquaternions, with the second factor on the right."""
    w, x, y, z = _components(a)
    p, q, r, s = _components(b)
    parts = (
        w * p - x * q - y * r - z * s,
        w * q + x * p + y * s - z * r,
        w * r - x * s + y * p + z * q,
        w * s + x * r - y * q + z * p,
    )
    reals = [part for component in parts for part in (component.real, component.imag)]
    return jnp.concatenate(reals, axis=-1).astype(a.dtype)


def _components(rows: Array) -> list[Array]:
    wide = rows.astype(jnp.result_type(rows, jnp.float32))
    parts = jnp.split(wide, _PARTS, axis=-1)
    return [jax.lax.complex(parts[2 * i], parts[2 * i + 1]) for i in range(4)]


KIND = Kind(
    "bique",
    BiQUE,
    bique_model,
    "((h + r+) (x) rx) t, biquaternions",
    "Guo and Kok 2021",
    columns=_PARTS,
    training=FACTORED,
    presets={
        "fb15k-237": FACTORED | {"batch_size": 500, "n3": 0.07, "epochs": 300},
        "wn18rr": FACTORED | {"batch_size": 300, "n3": 0.15, "epochs": 200, "answer_frequency": 0.9},
        "small": SMALL_FACTORED | {"dim": 16},
    },
    peers={"kbc": Peer()},
)
