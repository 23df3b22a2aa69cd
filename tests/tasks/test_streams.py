"""The two random streams against published outputs and NumPy's own generator."""

import numpy as np
import pytest
from scipy import stats

from steingate.errors import InputError
from steingate.tasks import streams

# First outputs of xoshiro256++ from the state (1, 2, 3, 4), as its authors' C code gives them.
XOSHIRO = [
    41943041,
    58720359,
    3588806011781223,
    3591011842654386,
    9228616714210784205,
    9973669472204895162,
    14011001112246962877,
    12406186145184390807,
    15849039046786891736,
    10450023813501588000,
]


def test_independent_stream_is_xoshiro():
    state = np.array([1, 2, 3, 4], dtype=np.uint64)
    doubles = [streams.next_double(state) for _ in XOSHIRO]
    assert doubles == [(word >> 11) * 2.0**-53 for word in XOSHIRO]


@pytest.mark.parametrize("seed", [0, 1, 20017, 2**32 - 1])
def test_reference_stream_is_numpys_legacy_generator(seed):
    (state,) = streams.seeded_states([seed], "reference")
    ours = [streams.next_double(state) for _ in range(2000)]  # several refills of the key
    assert ours == np.random.RandomState(seed).random_sample(2000).tolist()


@pytest.mark.parametrize("stream", streams.STREAMS)
def test_a_stream_is_its_row(stream):
    (state,) = streams.seeded_states([5], stream)
    for _ in range(700):
        streams.next_double(state)
    kept = state.copy()
    first = [streams.next_double(state) for _ in range(700)]
    assert first == [streams.next_double(kept) for _ in range(700)]
    assert len(set(first)) == 700


@pytest.mark.parametrize("stream", streams.STREAMS)
def test_numbers_are_uniform_and_seeds_unrelated(stream):
    rows = streams.seeded_states(range(2000), stream)
    first = np.array([streams.next_double(row) for row in rows])
    second = np.array([streams.next_double(row) for row in rows])
    assert stats.kstest(first, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.1
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1


def test_a_step_spends_one_number_of_the_reference_stream_only():
    reference = streams.seeded_states([3, 4], "reference")
    independent = streams.seeded_states([3, 4])
    before = independent.copy()
    streams.spend_step(reference)
    streams.spend_step(independent)
    np.testing.assert_array_equal(independent, before)
    for row, seed in zip(reference, (3, 4), strict=True):
        # The original asks for binomial(10, 1); what follows must be the same number.
        original = np.random.RandomState(seed)
        assert original.binomial(10, 1.0) == 10
        assert streams.next_double(row) == original.random_sample()


def test_no_seed_means_fresh_entropy():
    for stream in streams.STREAMS:
        one, other = streams.seeded_states([None, None], stream)
        assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("seed", "stream", "text"),
    [
        (-1, "independent", "-1"),
        (1.5, "independent", "1.5"),
        (True, "independent", "True"),
        (2**32, "reference", "4294967296"),
        (0, "other", "'other'"),
    ],
)
def test_unusable_seeds_and_streams_are_named(seed, stream, text):
    with pytest.raises(InputError, match=text):
        streams.seeded_states([seed], stream)
