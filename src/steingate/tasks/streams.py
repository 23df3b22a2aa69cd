"""Random streams of the environments: one row of unsigned integers each, compiled generators that advance it.

``independent``
    xoshiro256++, seeded through NumPy's ``SeedSequence``; rows of 4.
``reference``
    the Mersenne twister as ``numpy.random.RandomState(seed)`` runs it, so that layouts and goals of the
    original tasks are repeated bit for bit; rows of 625 (the 624 words of the key, then the position).

The compiled functions take the row of either stream and tell them apart by its length. A stream is nothing
but its row: copy the row to keep it, write it back to repeat what followed.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from steingate.compiled import compiled
from steingate.errors import InputError

Stream = Literal["independent", "reference"]
STREAMS: Final = ("independent", "reference")

_KEY: Final = 624
_SHIFT: Final = 397
_WIDTH: Final = {"independent": 4, "reference": _KEY + 1}


def seeded_states(seeds: Sequence[int | None], stream: Stream = "independent") -> NDArray[np.uint64]:
    """Fresh stream states, one row per seed; ``None`` takes entropy from the operating system."""
    if stream not in STREAMS:
        raise InputError(f"Unknown layout stream {stream!r}: choose 'independent' or 'reference'.")
    states = np.empty((len(seeds), _WIDTH[stream]), dtype=np.uint64)
    for row, seed in zip(states, seeds, strict=True):
        row[:] = _seeded_state(seed, stream)
    return states


def _seeded_state(seed: int | None, stream: Stream) -> NDArray[np.uint64]:
    """State of one stream right after seeding."""
    if seed is not None and (not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0):
        raise InputError(f"Seed {seed!r} cannot be used: give a non-negative integer.")
    if stream == "independent":
        words = np.random.SeedSequence(None if seed is None else int(seed)).generate_state(4, np.uint64)
        return words.astype(np.uint64)
    if seed is not None and seed >= 2**32:
        raise InputError(f"Seed {seed} is too large for the reference stream: use one below 2**32.")
    word = np.random.SeedSequence().generate_state(1)[0] if seed is None else seed
    twister = np.random.RandomState(int(word)).get_state(legacy=False)["state"]
    return np.array([*twister["key"].tolist(), twister["pos"]], dtype=np.uint64)


@compiled
def next_double(state):
    """Uniform number in [0, 1) with 53 random bits; advances the stream in place."""
    if state.shape[0] == 4:
        return np.float64(_next_word(state) >> np.uint64(11)) * 2.0**-53
    high = _next_twister(state) >> np.uint64(5)
    low = _next_twister(state) >> np.uint64(6)
    return (np.float64(high) * 67108864.0 + np.float64(low)) / 9007199254740992.0


@compiled
def _next_word(s):
    """Next 64 bits of xoshiro256++ (Blackman and Vigna)."""
    total = s[0] + s[3]
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s[0]
    shifted = s[1] << np.uint64(17)
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= shifted
    s[3] = (s[3] << np.uint64(45)) | (s[3] >> np.uint64(19))
    return word


@compiled
def _next_twister(state):
    """Next 32 bits of MT19937 (Matsumoto and Nishimura), in an unsigned 64-bit word."""
    position = np.int64(state[_KEY])
    if position >= _KEY:
        for i in range(_KEY):
            y = (state[i] & np.uint64(0x80000000)) | (state[(i + 1) % _KEY] & np.uint64(0x7FFFFFFF))
            word = state[(i + _SHIFT) % _KEY] ^ (y >> np.uint64(1))
            if y & np.uint64(1):
                word ^= np.uint64(0x9908B0DF)
            state[i] = word
        position = np.int64(0)
    y = state[position]
    state[_KEY] = np.uint64(position + 1)
    y ^= y >> np.uint64(11)
    y ^= (y << np.uint64(7)) & np.uint64(0x9D2C5680)
    y ^= (y << np.uint64(15)) & np.uint64(0xEFC60000)
    return (y ^ (y >> np.uint64(18))) & np.uint64(0xFFFFFFFF)


@compiled
def spend_step(states):
    """Spend the number the original draws on every environment step; independent streams stay as they are."""
    if states.shape[1] != 4:
        for i in range(states.shape[0]):
            next_double(states[i])
