"""Wheels and ball of the Car on the floor: the engine's soft contacts, solved exactly, in compiled code.

The unknowns y are eleven numbers in world axes, each an acceleration plus ``b`` times the velocity of the
same kind: of the center of mass (3), of the chassis' rotation (3), of the *absolute* spins of left and right
wheel, and of the ball's *absolute* rotation (3). Wheels and ball look the same however far they have rolled,
so in these unknowns the mass matrix is one mass, a 3×3 inertia and five scalars. The engine minimizes

    ½ (y − y₀)ᵀ M (y − y₀) + ½ Σ over contacts of D Σ over k of min(0, jₙ ± μₖ jₖ)²

with one normal row jₙ and five others per contact: two tangents, spin, two rolls. The ten terms are its
edges; an edge below zero is active. For given active edges y solves a linear system, in which each rotor is a
scalar and can be eliminated; 6×6 remains. Newton's method finds the edges. The result depends on the edges
found, not on those it started from.
"""

from __future__ import annotations

import numpy as np

from steingate.compiled import compiled
from steingate.tasks.floor_system import (
    BEFORE,
    COLUMNS,
    CONTACTS,
    FORCE,
    OFFSET,
    ROLLING,
    ROTOR_X,
    ROTOR_Y,
    START,
    STIFF,
    VALUES,
    Y,
    minimize,
)
from steingate.tasks.rigid import FUSED, times

ALL_EDGES = 1023
FULL_STEPS = 3  # Newton steps before line searches


@compiled(**FUSED)
def _read(w, mu, edges, new_only):
    """Write all rows at y and the edges active there; return whether the edges were already these.

    With ``new_only`` contacts that have active edges keep them.
    """
    same = True
    for i in range(CONTACTS):
        c = COLUMNS * i
        if w[c + STIFF] == 0.0 or (new_only and edges[i]):
            continue
        n = w[Y + 2] + w[c] * w[Y + 3] + w[c + 1] * w[Y + 4] + w[c + 2] * w[Y + 5] + w[c + OFFSET]
        ty = w[Y + 1] + w[c + 3] * w[Y + 3] + w[c + 4] * w[Y + 4] + w[c + 5] * w[Y + 5]
        tx = w[Y] + w[c + 6] * w[Y + 3] + w[c + 7] * w[Y + 4] + w[c + 8] * w[Y + 5]
        if i == 0:
            ty += w[c + ROTOR_Y] * w[Y + 8]
            tx += w[c + ROTOR_X] * w[Y + 9]
            spin, roll_y, roll_x = w[Y + 10], w[Y + 9], w[Y + 8]
        else:
            rotor = w[Y + 6] if i < 3 else w[Y + 7]
            ty += w[c + ROTOR_Y] * rotor
            tx += w[c + ROTOR_X] * rotor
            spin = (
                w[ROLLING] * w[Y + 3]
                + w[ROLLING + 1] * w[Y + 4]
                + w[ROLLING + 2] * w[Y + 5]
                + w[ROLLING + 3] * rotor
            )
            roll_y = (
                w[ROLLING + 4] * w[Y + 3]
                + w[ROLLING + 5] * w[Y + 4]
                + w[ROLLING + 6] * w[Y + 5]
                + w[ROLLING + 7] * rotor
            )
            roll_x = (
                w[ROLLING + 8] * w[Y + 3]
                + w[ROLLING + 9] * w[Y + 4]
                + w[ROLLING + 10] * w[Y + 5]
                + w[ROLLING + 11] * rotor
            )
        a, b, d, e, f = mu[0] * ty, mu[0] * tx, mu[1] * spin, mu[2] * roll_y, mu[2] * roll_x
        w[c + 13], w[c + 14], w[c + 15], w[c + 16], w[c + 17], w[c + 18] = n, a, b, d, e, f
        bits = (n + a < 0.0) | (n - a < 0.0) << 1 | (n + b < 0.0) << 2 | (n - b < 0.0) << 3
        bits |= (n + d < 0.0) << 4 | (n - d < 0.0) << 5 | (n + e < 0.0) << 6 | (n - e < 0.0) << 7
        bits |= (n + f < 0.0) << 8 | (n - f < 0.0) << 9
        if bits != edges[i]:
            same = False
            edges[i] = bits
    return same


@compiled(**FUSED)
def _slope(w, t, first, second):
    """Return the first two derivatives of the cost at the fraction t of a step."""
    first += t * second
    for i in range(CONTACTS):
        stiff = w[COLUMNS * i + STIFF]
        if stiff == 0.0:
            continue
        n = w[BEFORE + 6 * i + 0]
        dn = w[COLUMNS * i + VALUES] - n
        for k in range(1, 6):
            e = w[BEFORE + 6 * i + k]
            de = w[COLUMNS * i + VALUES + k] - e
            for sign in (1.0, -1.0):
                change = dn + sign * de
                value = n + sign * e + t * change
                if value < 0.0:
                    first += stiff * value * change
                    second += stiff * change * change
    return first, second


@compiled(**FUSED)
def _search(w, mass, inertia, wheel, ball):
    """Move y to where the cost is least on the line from ``start`` through y."""
    step = (w[Y + 3] - w[START + 3], w[Y + 4] - w[START + 4], w[Y + 5] - w[START + 5])
    pull, bend = times(inertia, (w[START + 3], w[START + 4], w[START + 5])), times(inertia, step)
    first, second = 0.0, 0.0  # of the part without contacts, at the start
    for i in range(3):
        first += step[i] * (pull[i] - w[FORCE + 3 + i])
        second += step[i] * bend[i]
    for i in range(11):
        if i < 3 or i > 5:
            d, m = w[Y + i] - w[START + i], mass if i < 3 else wheel if i < 8 else ball
            first += d * (m * w[START + i] - w[FORCE + i])
            second += m * d * d
    low, high, t = 0.0, np.inf, 1.0
    enough = 1e-3 * abs(_slope(w, 0.0, first, second)[0])
    for _ in range(30):
        value, rate = _slope(w, t, first, second)
        if abs(value) <= enough:
            break
        if value > 0.0:
            high = t
        else:
            low = t
        t -= value / rate
        if not low < t < high:
            t = 0.5 * (low + high)
    for i in range(11):
        w[Y + i] = w[START + i] + t * (w[Y + i] - w[START + i])


@compiled(**FUSED)
def solve(w, mass, inertia, wheel, ball, mu, most_steps, fresh, edges):
    """Write the solution to the workspace; return the number of Newton steps, or -1 if they did not end.

    Parameters
    ----------
    w : (SIZE,) array
        The workspace, with contacts, rolling rows and force.
    mass, inertia, wheel, ball : float, (6,) tuple, float, float
        The mass matrix.
    mu : (3,) tuple
        Friction of tangents, spin and rolls.
    most_steps : int
        Where to give up.
    fresh : bool
        Whether the workspace holds no solution yet. Otherwise it is the one a moment ago, and new contacts
        are first judged there.
    edges : (5,) int array
        Active edges to start from, replaced by those of the solution.
    """
    new = False
    for i in range(CONTACTS):
        if w[COLUMNS * i + STIFF] == 0.0:
            edges[i] = 0
        elif edges[i] == 0:
            new = True
            if fresh:
                edges[i] = ALL_EDGES
    if new and not fresh:
        _read(w, mu, edges, True)
    for step in range(most_steps):
        if step >= FULL_STEPS:
            for i in range(11):
                w[START + i] = w[Y + i]
            for i in range(CONTACTS):
                for j in range(6):
                    w[BEFORE + 6 * i + j] = w[COLUMNS * i + VALUES + j]
        minimize(w, mass, inertia, wheel, ball, mu, edges)
        if _read(w, mu, edges, False):
            return step + 1
        if step >= FULL_STEPS:
            _search(w, mass, inertia, wheel, ball)
            _read(w, mu, edges, False)
    return -1
