"""Wheels and ball of the Car on the floor: the engine's soft contacts, solved exactly, in compiled code.

The unknowns y are eleven numbers in world axes, each an acceleration plus ``b`` times the velocity of the same
kind: of the centre of mass (3), of the chassis' rotation (3), of the *absolute* spins of left and right wheel,
and of the ball's *absolute* rotation (3). Wheels and ball look the same however far they have rolled, so in
these unknowns the mass matrix is one mass, a 3×3 inertia and five scalars. The engine's accelerations minimise

    ½ (y − y₀)ᵀ M (y − y₀) + ½ Σ over contacts of D Σ over k of min(0, jₙ ± μₖ jₖ)²

with one normal row jₙ and five others per contact: two tangents, spin, two rolls. The ten terms are its edges;
an edge below zero is active. For given active edges y solves a linear system, in which each rotor is a scalar
and can be eliminated; 6×6 remains. Newton's method finds the edges. The result depends on the edges found, not
on those it started from.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from steingate.compiled import compiled
from steingate.envs.rigid import FUSED, times

CONTACTS = 5  # ball; two rims of the left wheel, two of the right
ALL_EDGES = 1023
FULL_STEPS = 3  # Newton steps before line searches

# columns of a contact, all in terms of y: angular parts of normal (0-2), tangent along y (3-5) and along x (6-8),
# the rotor's part in both tangents, the constant part of jₙ, D (0: no contact), and the six rows' values
ALONG_Y, ALONG_X, ROTOR_Y, ROTOR_X, OFFSET, STIFF, VALUES, COLUMNS = 3, 6, 9, 10, 11, 12, 13, 19


class Workspace(NamedTuple):
    """Arrays the solver works in; see ``workspace``.

    Attributes
    ----------
    contacts : (5, COLUMNS) the contacts
    rolling : (3, 4) what all rims share: angular and rotor's parts of spin and rolls, unscaled
    force : (11,) M y₀
    y, start : (11,) the solution; where a line search starts
    before : (5, 6) rows at that start
    A, g : (21,) packed lower rows of the 6×6 matrix, (6,) its right side
    U : (5, 8) a row per rotor: couplings to the six, pivot, right side
    """

    contacts: Any
    rolling: Any
    force: Any
    y: Any
    start: Any
    before: Any
    A: Any
    g: Any
    U: Any


@compiled
def workspace():
    """Return new arrays to work in."""
    return Workspace(
        np.zeros((CONTACTS, COLUMNS)), np.zeros((3, 4)), np.zeros(11), np.zeros(11), np.zeros(11),
        np.zeros((CONTACTS, 6)), np.zeros(21), np.zeros(6), np.zeros((5, 8)),
    )  # fmt: skip


@compiled(**FUSED)
def _read(w, mu, edges):
    """Write all rows at y and the edges active there; return whether the edges were already these."""
    y, same = w.y, True
    for i in range(CONTACTS):
        c = w.contacts[i]
        if c[STIFF] == 0.0:
            continue
        n = y[2] + c[0] * y[3] + c[1] * y[4] + c[2] * y[5] + c[OFFSET]
        ty = y[1] + c[3] * y[3] + c[4] * y[4] + c[5] * y[5]
        tx = y[0] + c[6] * y[3] + c[7] * y[4] + c[8] * y[5]
        if i == 0:
            ty += c[ROTOR_Y] * y[8]
            tx += c[ROTOR_X] * y[9]
            spin, roll_y, roll_x = y[10], y[9], y[8]
        else:
            r, rotor = w.rolling, y[6] if i < 3 else y[7]
            ty += c[ROTOR_Y] * rotor
            tx += c[ROTOR_X] * rotor
            spin = r[0, 0] * y[3] + r[0, 1] * y[4] + r[0, 2] * y[5] + r[0, 3] * rotor
            roll_y = r[1, 0] * y[3] + r[1, 1] * y[4] + r[1, 2] * y[5] + r[1, 3] * rotor
            roll_x = r[2, 0] * y[3] + r[2, 1] * y[4] + r[2, 2] * y[5] + r[2, 3] * rotor
        a, b, d, e, f = mu[0] * ty, mu[0] * tx, mu[1] * spin, mu[2] * roll_y, mu[2] * roll_x
        c[13], c[14], c[15], c[16], c[17], c[18] = n, a, b, d, e, f
        bits = (n + a < 0.0) | (n - a < 0.0) << 1 | (n + b < 0.0) << 2 | (n - b < 0.0) << 3
        bits |= (n + d < 0.0) << 4 | (n - d < 0.0) << 5 | (n + e < 0.0) << 6 | (n - e < 0.0) << 7
        bits |= (n + f < 0.0) << 8 | (n - f < 0.0) << 9
        if bits != edges[i]:
            same = False
            edges[i] = bits
    return same


@compiled(**FUSED)
def _pair(bits, k, stiff, mu):
    """Return what one pair of opposite edges adds to (jₙ, jₙ), (jₙ, jₖ) and (jₖ, jₖ)."""
    above, below = (bits >> (2 * k)) & 1, (bits >> (2 * k + 1)) & 1
    both = stiff * (above + below)
    return both, stiff * mu * (above - below), mu * mu * both


@compiled(**FUSED)
def _add_ball(w, mu, bits):
    """Add the ball's contact to the system."""
    c, A, g, U = w.contacts[0], w.A, w.g, w.U
    stiff, offset, sy, sx = c[STIFF], c[OFFSET], c[ROTOR_Y], c[ROTOR_X]
    b1, n1, k1 = _pair(bits, 0, stiff, mu[0])
    b2, n2, k2 = _pair(bits, 1, stiff, mu[0])
    b3, n3, k3 = _pair(bits, 2, stiff, mu[1])
    b4, n4, k4 = _pair(bits, 3, stiff, mu[2])
    b5, n5, k5 = _pair(bits, 4, stiff, mu[2])
    nn = b1 + b2 + b3 + b4 + b5
    _add_push(A, g, offset, nn, n1, k1, n2, k2)
    for i in range(3):
        an, ay, ax = c[i], c[ALONG_Y + i], c[ALONG_X + i]
        gn, gy, gx = nn * an + n1 * ay + n2 * ax, n1 * an + k1 * ay, n2 * an + k2 * ax
        at = (3 + i) * (4 + i) // 2
        A[at] += gx
        A[at + 1] += gy
        A[at + 2] += gn
        for j in range(i + 1):
            A[at + 3 + j] += gn * c[j] + gy * c[ALONG_Y + j] + gx * c[ALONG_X + j]
        g[3 + i] -= offset * gn
        U[2, 3 + i] = sy * gy + n5 * an
        U[3, 3 + i] = sx * gx + n4 * an
        U[4, 3 + i] = n3 * an
    U[2, 1], U[2, 2] = sy * k1, sy * n1 + n5
    U[3, 0], U[3, 2] = sx * k2, sx * n2 + n4
    U[4, 2] = n3
    U[2, 6] += sy * sy * k1 + k5
    U[3, 6] += sx * sx * k2 + k4
    U[4, 6] += k3
    U[2, 7] -= offset * U[2, 2]
    U[3, 7] -= offset * U[3, 2]
    U[4, 7] -= offset * U[4, 2]


@compiled(**FUSED)
def _add_push(A, g, offset, nn, n1, k1, n2, k2):
    """Add the linear parts of a contact, which are the axes themselves."""
    A[0] += k2
    A[2] += k1
    A[3] += n2
    A[4] += n1
    A[5] += nn
    g[0] -= offset * n2
    g[1] -= offset * n1
    g[2] -= offset * nn


@compiled(**FUSED)
def _add_rim(w, mu, bits, i):
    """Add the contact of a rim to the system."""
    c, r, A, g, U = w.contacts[i], w.rolling, w.A, w.g, w.U[0 if i < 3 else 1]
    stiff, offset, sy, sx = c[STIFF], c[OFFSET], c[ROTOR_Y], c[ROTOR_X]
    b1, n1, k1 = _pair(bits, 0, stiff, mu[0])
    b2, n2, k2 = _pair(bits, 1, stiff, mu[0])
    b3, n3, k3 = _pair(bits, 2, stiff, mu[1])
    b4, n4, k4 = _pair(bits, 3, stiff, mu[2])
    b5, n5, k5 = _pair(bits, 4, stiff, mu[2])
    nn = b1 + b2 + b3 + b4 + b5
    s3, s4, s5 = r[0, 3], r[1, 3], r[2, 3]
    _add_push(A, g, offset, nn, n1, k1, n2, k2)
    for j in range(3):
        an, ay, ax, a3, a4, a5 = c[j], c[ALONG_Y + j], c[ALONG_X + j], r[0, j], r[1, j], r[2, j]
        gn = nn * an + n1 * ay + n2 * ax + n3 * a3 + n4 * a4 + n5 * a5
        gy, gx = n1 * an + k1 * ay, n2 * an + k2 * ax
        g3, g4, g5 = n3 * an + k3 * a3, n4 * an + k4 * a4, n5 * an + k5 * a5
        at = (3 + j) * (4 + j) // 2
        A[at] += gx
        A[at + 1] += gy
        A[at + 2] += gn
        for m in range(j + 1):
            push = gn * c[m] + gy * c[ALONG_Y + m] + gx * c[ALONG_X + m]
            A[at + 3 + m] += push + g3 * r[0, m] + g4 * r[1, m] + g5 * r[2, m]
        g[3 + j] -= offset * gn
        U[3 + j] += sy * gy + sx * gx + s3 * g3 + s4 * g4 + s5 * g5
    lift = sy * n1 + sx * n2 + s3 * n3 + s4 * n4 + s5 * n5
    U[0] += sx * k2
    U[1] += sy * k1
    U[2] += lift
    U[6] += sy * sy * k1 + sx * sx * k2 + s3 * s3 * k3 + s4 * s4 * k4 + s5 * s5 * k5
    U[7] -= offset * lift


@compiled(**FUSED)
def _minimise(w, mass, inertia, wheel, ball, mu, edges):
    """Write the minimiser for given active edges to y."""
    A, g, U, y, force = w.A, w.g, w.U, w.y, w.force
    A[:] = 0.0
    A[0] = A[2] = A[5] = mass
    A[9], A[14], A[20], A[13], A[18], A[19] = inertia
    for i in range(6):
        g[i] = force[i]
    for i in range(5):
        for j in range(6):
            U[i, j] = 0.0
        U[i, 6] = wheel if i < 2 else ball
        U[i, 7] = force[6 + i]
    if edges[0]:
        _add_ball(w, mu, edges[0])
        for n in range(2, 5):
            _eliminate(A, g, U[n])
    for n in range(2):
        first, second = edges[2 * n + 1], edges[2 * n + 2]
        if first:
            _add_rim(w, mu, first, 2 * n + 1)
        if second:
            _add_rim(w, mu, second, 2 * n + 2)
        if first | second:
            _eliminate(A, g, U[n])
    _solve_six(A, g, y)
    for n in range(5):
        row = U[n]
        rest = row[7] - row[0] * y[0] - row[1] * y[1] - row[2] * y[2]
        y[6 + n] = (rest - row[3] * y[3] - row[4] * y[4] - row[5] * y[5]) / row[6]


@compiled(**FUSED)
def _eliminate(A, g, row):
    """Take one rotor out of the system of the six others."""
    pivot = 1.0 / row[6]
    for i in range(6):
        share = pivot * row[i]
        at = i * (i + 1) // 2
        for j in range(i + 1):
            A[at + j] -= share * row[j]
        g[i] -= share * row[7]


@compiled(**FUSED)
def _solve_six(A, g, y):
    """Write the solution of the 6×6 system to y[:6]; A and g are overwritten by its LDLᵀ factors."""
    for i in range(6):
        pivot = 1.0 / A[i * (i + 1) // 2 + i]
        y[i] = pivot
        for j in range(i + 1, 6):
            below = A[j * (j + 1) // 2 + i]
            share = below * pivot
            for n in range(i + 1, j + 1):
                A[j * (j + 1) // 2 + n] -= share * A[n * (n + 1) // 2 + i]
            g[j] -= share * g[i]
    for i in range(5, -1, -1):
        rest = g[i]
        for j in range(i + 1, 6):
            rest -= A[j * (j + 1) // 2 + i] * y[j]
        y[i] *= rest


@compiled(**FUSED)
def _slope(w, t, first, second):
    """Return the first two derivatives of the cost at the fraction t of a step."""
    first += t * second
    for i in range(CONTACTS):
        c, stiff = w.contacts[i], w.contacts[i, STIFF]
        if stiff == 0.0:
            continue
        n = w.before[i, 0]
        dn = c[VALUES] - n
        for k in range(1, 6):
            e = w.before[i, k]
            de = c[VALUES + k] - e
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
    y, start, force = w.y, w.start, w.force
    step = (y[3] - start[3], y[4] - start[4], y[5] - start[5])
    pull, bend = times(inertia, (start[3], start[4], start[5])), times(inertia, step)
    first, second = 0.0, 0.0  # of the part without contacts, at the start
    for i in range(3):
        first += step[i] * (pull[i] - force[3 + i])
        second += step[i] * bend[i]
    for i in range(11):
        if i < 3 or i > 5:
            d, m = y[i] - start[i], mass if i < 3 else wheel if i < 8 else ball
            first += d * (m * start[i] - force[i])
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
        y[i] = start[i] + t * (y[i] - start[i])


@compiled(**FUSED)
def solve(w, mass, inertia, wheel, ball, mu, most_steps, edges):
    """Write the solution to ``w.y``; return the number of Newton steps, or -1 if they did not end.

    Parameters
    ----------
    w : Workspace
        With contacts, rolling rows and force.
    mass, inertia, wheel, ball : float, (6,) tuple, float, float
        The mass matrix.
    mu : (3,) tuple
        Friction of tangents, spin and rolls.
    most_steps : int
        Where to give up.
    edges : (5,) int array
        Active edges to start from, replaced by those of the solution.
    """
    for i in range(CONTACTS):
        if w.contacts[i, STIFF] == 0.0:
            edges[i] = 0
        elif edges[i] == 0:
            edges[i] = ALL_EDGES  # a new contact most likely sticks
    for step in range(most_steps):
        if step >= FULL_STEPS:
            w.start[:] = w.y
            w.before[:] = w.contacts[:, VALUES:]
        _minimise(w, mass, inertia, wheel, ball, mu, edges)
        if _read(w, mu, edges):
            return step + 1
        if step >= FULL_STEPS:
            _search(w, mass, inertia, wheel, ball)
            _read(w, mu, edges)
    return -1
