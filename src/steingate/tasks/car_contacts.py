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
    b1, n1, k1 = _edge_pair(bits, 0, stiffness, mu[0])
    b2, n2, k2 = _edge_pair(bits, 1, stiffness, mu[0])
    b3, n3, k3 = _edge_pair(bits, 2, stiffness, mu[1])
    b4, n4, k4 = _edge_pair(bits, 3, stiffness, mu[2])
    b5, n5, k5 = _edge_pair(bits, 4, stiffness, mu[2])
    nn = b1 + b2 + b3 + b4 + b5
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
    b1, n1, k1 = _edge_pair(bits, 0, stiffness, mu[0])
    b2, n2, k2 = _edge_pair(bits, 1, stiffness, mu[0])
    b3, n3, k3 = _edge_pair(bits, 2, stiffness, mu[1])
    b4, n4, k4 = _edge_pair(bits, 3, stiffness, mu[2])
    b5, n5, k5 = _edge_pair(bits, 4, stiffness, mu[2])
    nn = b1 + b2 + b3 + b4 + b5
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
def _eliminate_rotor(A, g, w, u):
    """Return the 6×6 system (21 lower entries, right side) without the rotor at ``w[u:]``; unrolled."""
    a, b, c, d, e, f = w[u], w[u + 1], w[u + 2], w[u + 3], w[u + 4], w[u + 5]
    pivot, right = 1.0 / w[u + 6], w[u + 7]
    pa, pb, pc, pd, pe, pf = pivot * a, pivot * b, pivot * c, pivot * d, pivot * e, pivot * f
    A = (
        A[0] - pa * a,
        A[1] - pb * a, A[2] - pb * b,
        A[3] - pc * a, A[4] - pc * b, A[5] - pc * c,
        A[6] - pd * a, A[7] - pd * b, A[8] - pd * c, A[9] - pd * d,
        A[10] - pe * a, A[11] - pe * b, A[12] - pe * c, A[13] - pe * d, A[14] - pe * e,
        A[15] - pf * a, A[16] - pf * b, A[17] - pf * c, A[18] - pf * d, A[19] - pf * e, A[20] - pf * f,
    )  # fmt: skip
    g = (
        g[0] - pa * right, g[1] - pb * right, g[2] - pc * right,
        g[3] - pd * right, g[4] - pe * right, g[5] - pf * right,
    )  # fmt: skip
    return A, g


@compiled(**FUSED)
def _solve_6x6(A, g):
    """Return the solution of a symmetric 6×6 system (21 lower entries, right side) by LDLᵀ; unrolled."""
    (
        a00,
        a10, a11,
        a20, a21, a22,
        a30, a31, a32, a33,
        a40, a41, a42, a43, a44,
        a50, a51, a52, a53, a54, a55,
    ) = A  # fmt: skip
    g0, g1, g2, g3, g4, g5 = g
    p0 = 1.0 / a00
    s1, s2, s3, s4, s5 = a10 * p0, a20 * p0, a30 * p0, a40 * p0, a50 * p0
    a11 = a11 - s1 * a10
    a21, a22 = a21 - s2 * a10, a22 - s2 * a20
    a31, a32, a33 = a31 - s3 * a10, a32 - s3 * a20, a33 - s3 * a30
    a41, a42, a43, a44 = a41 - s4 * a10, a42 - s4 * a20, a43 - s4 * a30, a44 - s4 * a40
    a51, a52, a53, a54, a55 = a51 - s5 * a10, a52 - s5 * a20, a53 - s5 * a30, a54 - s5 * a40, a55 - s5 * a50
    g1, g2, g3, g4, g5 = g1 - s1 * g0, g2 - s2 * g0, g3 - s3 * g0, g4 - s4 * g0, g5 - s5 * g0
    p1 = 1.0 / a11
    s2, s3, s4, s5 = a21 * p1, a31 * p1, a41 * p1, a51 * p1
    a22 = a22 - s2 * a21
    a32, a33 = a32 - s3 * a21, a33 - s3 * a31
    a42, a43, a44 = a42 - s4 * a21, a43 - s4 * a31, a44 - s4 * a41
    a52, a53, a54, a55 = a52 - s5 * a21, a53 - s5 * a31, a54 - s5 * a41, a55 - s5 * a51
    g2, g3, g4, g5 = g2 - s2 * g1, g3 - s3 * g1, g4 - s4 * g1, g5 - s5 * g1
    p2 = 1.0 / a22
    s3, s4, s5 = a32 * p2, a42 * p2, a52 * p2
    a33 = a33 - s3 * a32
    a43, a44 = a43 - s4 * a32, a44 - s4 * a42
    a53, a54, a55 = a53 - s5 * a32, a54 - s5 * a42, a55 - s5 * a52
    g3, g4, g5 = g3 - s3 * g2, g4 - s4 * g2, g5 - s5 * g2
    p3 = 1.0 / a33
    s4, s5 = a43 * p3, a53 * p3
    a44 = a44 - s4 * a43
    a54, a55 = a54 - s5 * a43, a55 - s5 * a53
    g4, g5 = g4 - s4 * g3, g5 - s5 * g3
    p4 = 1.0 / a44
    s5 = a54 * p4
    a55 = a55 - s5 * a54
    g5 = g5 - s5 * g4
    x5 = g5 / a55
    x4 = p4 * (g4 - a54 * x5)
    x3 = p3 * (g3 - a43 * x4 - a53 * x5)
    x2 = p2 * (g2 - a32 * x3 - a42 * x4 - a52 * x5)
    x1 = p1 * (g1 - a21 * x2 - a31 * x3 - a41 * x4 - a51 * x5)
    x0 = p0 * (g0 - a10 * x1 - a20 * x2 - a30 * x3 - a40 * x4 - a50 * x5)
    return x0, x1, x2, x3, x4, x5


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
    six = (
        w[SYSTEM], w[SYSTEM + 1], w[SYSTEM + 2], w[SYSTEM + 3], w[SYSTEM + 4], w[SYSTEM + 5], w[SYSTEM + 6],
        w[SYSTEM + 7], w[SYSTEM + 8], w[SYSTEM + 9], w[SYSTEM + 10], w[SYSTEM + 11], w[SYSTEM + 12],
        w[SYSTEM + 13], w[SYSTEM + 14], w[SYSTEM + 15], w[SYSTEM + 16], w[SYSTEM + 17], w[SYSTEM + 18],
        w[SYSTEM + 19], w[SYSTEM + 20],
    )  # fmt: skip
    right = (w[RIGHT], w[RIGHT + 1], w[RIGHT + 2], w[RIGHT + 3], w[RIGHT + 4], w[RIGHT + 5])
    if edges[1] | edges[2]:
        six, right = _eliminate_rotor(six, right, w, WHEELS)
    if edges[3] | edges[4]:
        six, right = _eliminate_rotor(six, right, w, WHEELS + 8)
    x = _solve_6x6(six, right)
    for i in range(6):
        w[Y + i] = x[i]
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
