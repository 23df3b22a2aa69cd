"""Contact forces between the Car's wheels, its ball and the floor: MuJoCo's convex problem, solved exactly.

The unknowns y are eleven numbers in world axes, each an acceleration plus ``b`` times the velocity of the same kind:
of the center of mass (3), of the chassis' rotation (3), of the absolute spins of left and right wheel, and of the
ball's absolute rotation (3). In these unknowns the mass matrix M is one mass, a 3×3 inertia and five scalars, however
far wheels and ball have turned. MuJoCo's problem with pyramidal friction cones becomes

    minimize  ½ (y − y₀)ᵀ M (y − y₀) + ½ Σ over contacts of D Σ over k of min(0, jₙ ± μₖ jₖ)²

with a normal row jₙ and five friction rows jₖ per contact: two tangents, spin, two rolls. The ten terms jₙ ± μₖ jₖ are
the edges of the cone; an edge below zero is active. Given the active edges, y solves a linear system, in which each
rotor is a scalar that is eliminated first; a 6×6 system remains. Newton's method finds the active edges. The result
depends on the active edges found, not on those it started from.

All data of a solution are in one array ``w``; several arrays would cost as much as the arithmetic.
"""

from __future__ import annotations

import numpy as np

from steingate.compiled import compiled
from steingate.tasks.geometry import FUSED, symmetric_product

CONTACTS = 5  # ball; two rims of the left wheel, two of the right
ALL_EDGES = 1023
FULL_STEPS = 3  # Newton steps without line search

# Layout of the workspace. First the contacts, COLUMNS numbers each: angular parts of the normal row (0-2), of the
# tangents along y (3-5) and x (6-8), the rotor's part in both tangents, the constant part of jₙ, D (0: no contact),
# and the values of the six rows at y.
ALONG_Y, ALONG_X, ROTOR_Y, ROTOR_X, OFFSET, STIFFNESS, VALUES, COLUMNS = 3, 6, 9, 10, 11, 12, 13, 19
ROLLING = CONTACTS * COLUMNS  # 3×4, shared by all rims: angular and rotor's parts of spin and both rolls
FORCE = ROLLING + 12  # M y₀
Y = FORCE + 11  # the solution
START = Y + 11  # start of a line search, and the values of the rows there
BEFORE = START + 11
SYSTEM = BEFORE + CONTACTS * 6  # lower rows of the 6×6 matrix, its right side
RIGHT = SYSTEM + 21
WHEELS = RIGHT + 6  # 2×8, for each wheel: couplings of its spin to the six, pivot, right side
BALL = WHEELS + 16  # the ball's rotations: couplings to tangent and normal and right side, over the pivot
SIZE = BALL + 8


@compiled(**FUSED)
def _edge_pair(bits, k, stiffness, mu):
    """Return the contributions of a pair of opposite edges to (jₙ, jₙ), (jₙ, jₖ) and (jₖ, jₖ)."""
    above, below = (bits >> (2 * k)) & 1, (bits >> (2 * k + 1)) & 1
    both = stiffness * (above + below)
    return both, stiffness * mu * (above - below), mu * mu * both


@compiled(**FUSED)
def _active_cone(bits, stiffness, mu):
    """Return the contributions of the active edges to (jₙ, jₙ), to the five (jₙ, jₖ) and to the five (jₖ, jₖ)."""
    b1, n1, k1 = _edge_pair(bits, 0, stiffness, mu[0])
    b2, n2, k2 = _edge_pair(bits, 1, stiffness, mu[0])
    b3, n3, k3 = _edge_pair(bits, 2, stiffness, mu[1])
    b4, n4, k4 = _edge_pair(bits, 3, stiffness, mu[2])
    b5, n5, k5 = _edge_pair(bits, 4, stiffness, mu[2])
    return b1 + b2 + b3 + b4 + b5, (n1, n2, n3, n4, n5), (k1, k2, k3, k4, k5)


@compiled(**FUSED)
def _add_linear(w, nn, n1, k1, n2, k2, fx, fy, fz):
    """Add the linear parts of a contact's rows, which are the axes themselves, and its constant forces."""
    w[SYSTEM] += k2
    w[SYSTEM + 2] += k1
    w[SYSTEM + 3] += n2
    w[SYSTEM + 4] += n1
    w[SYSTEM + 5] += nn
    w[RIGHT] -= fx
    w[RIGHT + 1] -= fy
    w[RIGHT + 2] -= fz


@compiled(**FUSED)
def _add_ball(w, mu, ball, bits):
    """Add the ball's contact to the system and eliminate the ball's rotations, which couple to nothing else.

    The first rotation couples to the tangent along y, the second to that along x, all to the normal.
    """
    stiffness, offset, sy, sx = w[STIFFNESS], w[OFFSET], w[ROTOR_Y], w[ROTOR_X]
    nn, (n1, n2, n3, n4, n5), (k1, k2, k3, k4, k5) = _active_cone(bits, stiffness, mu)
    py, px, pn = 1.0 / (ball + sy * sy * k1 + k5), 1.0 / (ball + sx * sx * k2 + k4), 1.0 / (ball + k3)
    uy, ux, ny, nx = sy * k1, sx * k2, sy * n1 + n5, sx * n2 + n4
    ry = py * (w[FORCE + 8] - offset * ny)
    rx = px * (w[FORCE + 9] - offset * nx)
    rn = pn * (w[FORCE + 10] - offset * n3)
    w[BALL], w[BALL + 1], w[BALL + 2] = py * uy, py * ny, ry
    w[BALL + 3], w[BALL + 4], w[BALL + 5] = px * ux, px * nx, rx
    w[BALL + 6], w[BALL + 7] = pn * n3, rn
    fx, fy, fz = offset * n2 + ux * rx, offset * n1 + uy * ry, offset * nn + ny * ry + nx * rx + n3 * rn
    n1, k1 = py * (n1 * (ball + k5) - uy * n5), py * k1 * (ball + k5)
    n2, k2 = px * (n2 * (ball + k4) - ux * n4), px * k2 * (ball + k4)
    nn -= py * ny * ny + px * nx * nx + pn * n3 * n3
    _add_linear(w, nn, n1, k1, n2, k2, fx, fy, fz)
    for i in range(3):
        an, ay, ax = w[i], w[ALONG_Y + i], w[ALONG_X + i]
        gn, gy, gx = nn * an + n1 * ay + n2 * ax, n1 * an + k1 * ay, n2 * an + k2 * ax
        at = SYSTEM + (3 + i) * (4 + i) // 2
        w[at] += gx
        w[at + 1] += gy
        w[at + 2] += gn
        for j in range(i + 1):
            w[at + 3 + j] += gn * w[j] + gy * w[ALONG_Y + j] + gx * w[ALONG_X + j]
        w[RIGHT + 3 + i] -= fz * an + fy * ay + fx * ax


@compiled(**FUSED)
def _add_rim(w, mu, bits, i):
    """Add the contact of rim i (1 to 4) to the system."""
    c, u = COLUMNS * i, WHEELS if i < 3 else WHEELS + 8
    stiffness, offset, sy, sx = w[c + STIFFNESS], w[c + OFFSET], w[c + ROTOR_Y], w[c + ROTOR_X]
    nn, (n1, n2, n3, n4, n5), (k1, k2, k3, k4, k5) = _active_cone(bits, stiffness, mu)
    s3, s4, s5 = w[ROLLING + 3], w[ROLLING + 7], w[ROLLING + 11]
    _add_linear(w, nn, n1, k1, n2, k2, offset * n2, offset * n1, offset * nn)
    for j in range(3):
        an, ay, ax = w[c + j], w[c + ALONG_Y + j], w[c + ALONG_X + j]
        a3, a4, a5 = w[ROLLING + j], w[ROLLING + 4 + j], w[ROLLING + 8 + j]
        gn = nn * an + n1 * ay + n2 * ax + n3 * a3 + n4 * a4 + n5 * a5
        gy, gx = n1 * an + k1 * ay, n2 * an + k2 * ax
        g3, g4, g5 = n3 * an + k3 * a3, n4 * an + k4 * a4, n5 * an + k5 * a5
        at = SYSTEM + (3 + j) * (4 + j) // 2
        w[at] += gx
        w[at + 1] += gy
        w[at + 2] += gn
        for m in range(j + 1):
            push = gn * w[c + m] + gy * w[c + ALONG_Y + m] + gx * w[c + ALONG_X + m]
            w[at + 3 + m] += push + g3 * w[ROLLING + m] + g4 * w[ROLLING + 4 + m] + g5 * w[ROLLING + 8 + m]
        w[RIGHT + 3 + j] -= offset * gn
        w[u + 3 + j] += sy * gy + sx * gx + s3 * g3 + s4 * g4 + s5 * g5
    lift = sy * n1 + sx * n2 + s3 * n3 + s4 * n4 + s5 * n5
    w[u] += sx * k2
    w[u + 1] += sy * k1
    w[u + 2] += lift
    w[u + 6] += sy * sy * k1 + sx * sx * k2 + s3 * s3 * k3 + s4 * s4 * k4 + s5 * s5 * k5
    w[u + 7] -= offset * lift


@compiled(**FUSED)
def _eliminate_rotor(w, u):
    """Eliminate the rotor at ``w[u:]`` from the 6×6 system."""
    pivot, right = 1.0 / w[u + 6], w[u + 7]
    for i in range(6):
        p = pivot * w[u + i]
        for j in range(i + 1):
            w[SYSTEM + i * (i + 1) // 2 + j] -= p * w[u + j]
        w[RIGHT + i] -= p * right


@compiled(**FUSED)
def _solve_6x6(w):
    """Write the solution of the symmetric 6×6 system to ``w[Y:]`` by LDLᵀ; the system is overwritten."""
    for k in range(6):
        pivot = 1.0 / w[SYSTEM + k * (k + 3) // 2]
        for i in range(k + 1, 6):
            row = SYSTEM + i * (i + 1) // 2
            p = w[row + k] * pivot
            for j in range(k + 1, i + 1):
                w[row + j] -= p * w[SYSTEM + j * (j + 1) // 2 + k]
            w[RIGHT + i] -= p * w[RIGHT + k]
    for k in range(5, -1, -1):
        rest = w[RIGHT + k]
        for i in range(k + 1, 6):
            rest -= w[SYSTEM + i * (i + 1) // 2 + k] * w[Y + i]
        w[Y + k] = rest / w[SYSTEM + k * (k + 3) // 2]


@compiled(**FUSED)
def _solve_active(w, mass, inertia, wheel, ball, mu, edges):
    """Write to ``w[Y:]`` the minimizer for given active edges: a linear system."""
    for i in range(21):
        w[SYSTEM + i] = 0.0
    w[SYSTEM] = w[SYSTEM + 2] = w[SYSTEM + 5] = mass
    w[SYSTEM + 9], w[SYSTEM + 14], w[SYSTEM + 20] = inertia[0], inertia[1], inertia[2]
    w[SYSTEM + 13], w[SYSTEM + 18], w[SYSTEM + 19] = inertia[3], inertia[4], inertia[5]
    for i in range(6):
        w[RIGHT + i] = w[FORCE + i]
        w[WHEELS + i] = w[WHEELS + 8 + i] = 0.0
    w[WHEELS + 6], w[WHEELS + 7] = wheel, w[FORCE + 6]
    w[WHEELS + 14], w[WHEELS + 15] = wheel, w[FORCE + 7]
    if edges[0]:
        _add_ball(w, mu, ball, edges[0])
    for i in range(1, CONTACTS):
        if edges[i]:
            _add_rim(w, mu, edges[i], i)
    if edges[1] | edges[2]:
        _eliminate_rotor(w, WHEELS)
    if edges[3] | edges[4]:
        _eliminate_rotor(w, WHEELS + 8)
    _solve_6x6(w)
    x = (w[Y], w[Y + 1], w[Y + 2], w[Y + 3], w[Y + 4], w[Y + 5])
    for i in range(2):
        u = WHEELS + 8 * i
        rest = w[u + 7] - w[u] * x[0] - w[u + 1] * x[1] - w[u + 2] * x[2]
        w[Y + 6 + i] = (rest - w[u + 3] * x[3] - w[u + 4] * x[4] - w[u + 5] * x[5]) / w[u + 6]
    if edges[0]:
        n = x[2] + w[0] * x[3] + w[1] * x[4] + w[2] * x[5]
        ty = x[1] + w[3] * x[3] + w[4] * x[4] + w[5] * x[5]
        tx = x[0] + w[6] * x[3] + w[7] * x[4] + w[8] * x[5]
        w[Y + 8] = w[BALL + 2] - w[BALL] * ty - w[BALL + 1] * n
        w[Y + 9] = w[BALL + 5] - w[BALL + 3] * tx - w[BALL + 4] * n
        w[Y + 10] = w[BALL + 7] - w[BALL + 6] * n
    else:
        for i in range(3):
            w[Y + 8 + i] = w[FORCE + 8 + i] / ball


@compiled(**FUSED)
def _update_edges(w, mu, edges, new_only):
    """Write the values of all rows at y and the edges active there; return whether the edges are unchanged.

    With ``new_only``, contacts that have active edges keep them.
    """
    same = True
    for i in range(CONTACTS):
        c = COLUMNS * i
        if w[c + STIFFNESS] == 0.0 or (new_only and edges[i]):
            continue
        n = w[Y + 2] + w[c] * w[Y + 3] + w[c + 1] * w[Y + 4] + w[c + 2] * w[Y + 5] + w[c + OFFSET]
        ty = w[Y + 1] + w[c + 3] * w[Y + 3] + w[c + 4] * w[Y + 4] + w[c + 5] * w[Y + 5]
        tx = w[Y] + w[c + 6] * w[Y + 3] + w[c + 7] * w[Y + 4] + w[c + 8] * w[Y + 5]
        if i == 0:
            ty += w[c + ROTOR_Y] * w[Y + 8]
            tx += w[c + ROTOR_X] * w[Y + 9]
            spin, roll_y, roll_x = w[Y + 10], w[Y + 9], w[Y + 8]
        else:
            r, y3, y4, y5 = w[Y + 6] if i < 3 else w[Y + 7], w[Y + 3], w[Y + 4], w[Y + 5]
            ty += w[c + ROTOR_Y] * r
            tx += w[c + ROTOR_X] * r
            spin = w[ROLLING] * y3 + w[ROLLING + 1] * y4 + w[ROLLING + 2] * y5 + w[ROLLING + 3] * r
            roll_y = w[ROLLING + 4] * y3 + w[ROLLING + 5] * y4 + w[ROLLING + 6] * y5 + w[ROLLING + 7] * r
            roll_x = w[ROLLING + 8] * y3 + w[ROLLING + 9] * y4 + w[ROLLING + 10] * y5 + w[ROLLING + 11] * r
        rows = (mu[0] * ty, mu[0] * tx, mu[1] * spin, mu[2] * roll_y, mu[2] * roll_x)
        w[c + VALUES] = n
        bits = 0
        for k in range(5):
            w[c + VALUES + 1 + k] = rows[k]
            bits |= (n + rows[k] < 0.0) << 2 * k | (n - rows[k] < 0.0) << 2 * k + 1
        if bits != edges[i]:
            same = False
            edges[i] = bits
    return same


@compiled(**FUSED)
def _cost_derivatives(w, t, first, second):
    """Return the first two derivatives of the cost along a Newton step at the fraction t of the step."""
    first += t * second
    for i in range(CONTACTS):
        stiffness = w[COLUMNS * i + STIFFNESS]
        if stiffness == 0.0:
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
                    first += stiffness * value * change
                    second += stiffness * change * change
    return first, second


@compiled(**FUSED)
def _line_search(w, mass, inertia, wheel, ball):
    """Move y to the minimum of the cost on the line from ``w[START:]`` through y."""
    step = (w[Y + 3] - w[START + 3], w[Y + 4] - w[START + 4], w[Y + 5] - w[START + 5])
    pull = symmetric_product(inertia, (w[START + 3], w[START + 4], w[START + 5]))
    bend = symmetric_product(inertia, step)
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
    enough = 1e-3 * abs(_cost_derivatives(w, 0.0, first, second)[0])
    for _ in range(30):
        value, rate = _cost_derivatives(w, t, first, second)
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
def solve_contacts(w, mass, inertia, wheel, ball, mu, max_steps, fresh, edges):
    """Write the minimizer to ``w[Y:]``; return the number of Newton steps, or -1 without convergence.

    Parameters
    ----------
    w : (SIZE,) workspace with contacts, rolling rows and force
    mass, inertia, wheel, ball : the mass matrix; ``inertia`` is a tuple of six
    mu : friction of tangents, spin and rolls, a tuple
    max_steps : maximum number of Newton steps
    fresh : whether the workspace holds no solution yet. Otherwise it holds that of the previous substep, which gives
        the first edges of new contacts.
    edges : (5,) active edges to start from as bits, replaced by those of the solution
    """
    new = False
    for i in range(CONTACTS):
        if w[COLUMNS * i + STIFFNESS] == 0.0:
            edges[i] = 0
        elif edges[i] == 0:
            new = True
            if fresh:
                edges[i] = ALL_EDGES
    if new and not fresh:
        _update_edges(w, mu, edges, True)
    for step in range(max_steps):
        if step >= FULL_STEPS:
            for i in range(11):
                w[START + i] = w[Y + i]
            for i in range(CONTACTS):
                for j in range(6):
                    w[BEFORE + 6 * i + j] = w[COLUMNS * i + VALUES + j]
        _solve_active(w, mass, inertia, wheel, ball, mu, edges)
        if _update_edges(w, mu, edges, False):
            return step + 1
        if step >= FULL_STEPS:
            _line_search(w, mass, inertia, wheel, ball)
            _update_edges(w, mu, edges, False)
    return -1
