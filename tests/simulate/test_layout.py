"""Neither chunk nor number of devices changes a bit of what is drawn, compiled as users compile it."""

import os
import subprocess
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from owkg import openworld, simulate
from owkg.rank_weights import LOG_MRR, MR, MRR
from owkg.simulate.run import trials_in_flight


@pytest.mark.parametrize(
    ("missing", "prediction"),
    [(openworld.Independent(), openworld.Classification()), (openworld.NodeBased(), openworld.Score())],
    ids=str,
)
def test_chunk_never_changes_a_bit(missing, prediction):
    setting = {"strength": [0.3, 0.7], "sparsity": 0.3, "num_answers": 13, "num_entities": 400}
    run = {"trials": 2500, "missing": missing, "prediction": prediction}
    small, large = (
        simulate.estimate(jax.random.key(0), (LOG_MRR, MR), chunk=chunk, **setting, **run)
        for chunk in (1, 50_000)
    )
    for one, two in zip(small, large, strict=True):
        np.testing.assert_array_equal(one, two)


def test_trials_in_flight_fit_the_device():
    one_cpu, one_gpu = ([SimpleNamespace(platform=name)] for name in ("cpu", "gpu"))
    cpu, gpu = trials_in_flight(one_cpu, 44), trials_in_flight(one_gpu, 44)
    assert 40 * 2**20 < 50 * 44 * gpu <= 400 * 2**20
    assert 2**13 < cpu < gpu / 10
    assert trials_in_flight(one_cpu, 2**22) == 1
    assert trials_in_flight(one_cpu * 8, 44) == cpu
    assert trials_in_flight(one_gpu * 8, 64) == 8 * trials_in_flight(one_gpu, 64)


@pytest.mark.parametrize("missing", ["independent", "node", "relation", "correlated"])
def test_chunks_and_more_draws_change_no_bit(missing, with_facts):
    full = with_facts(np.random.default_rng(1))
    kinds = {
        "independent": openworld.INDEPENDENT,
        "node": openworld.NodeBased(),
        "relation": openworld.RelationBased(),
    }
    law = kinds.get(missing) or simulate.Correlated(full.score[0])
    one, two, more = (
        simulate.resample(
            jax.random.key(3), full, (MRR, LOG_MRR), sparsity=0.4, missing=law, draws=draws, chunk=chunk
        )
        for draws, chunk in ((3000, None), (3000, 1), (4001, 2048))
    )
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.values, more.values[:3000])
    np.testing.assert_array_equal(one.queries, more.queries[:3000])


_DEVICES = """
import jax, numpy as np
from owkg import simulate
from owkg.rank_weights import MR, MRR
assert len(jax.devices()) == 8
setting = dict(strength=[.3, .7, .9], sparsity=.3, num_answers=13, num_entities=400, trials=2500)
run = lambda n: simulate.estimate(
    jax.random.key(0), (MRR, MR), devices=jax.devices()[:n], **setting)
one = run(1)
for n in (2, 5, 8):
    for a, b in zip(one, run(n), strict=True):
        np.testing.assert_array_equal(a, b)
print("same")
"""


def test_number_of_devices_never_changes_a_bit():
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", _DEVICES],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "same", done.stderr
