"""The linear equations of the Car's contacts for known active edges, explained in ``floor_contacts``."""

from __future__ import annotations

from steingate.compiled import compiled
from steingate.tasks.rigid import FUSED
from steingate.tasks.small_system import eliminate, solve_six

CONTACTS = 5  # ball; two rims of the left wheel, two of the right

# A workspace is one array (several would cost as much as the arithmetic); this is where in it things start.
# First the contacts, COLUMNS numbers each, all in terms of y: angular parts of the normal row (0-2), of the
# tangents along y (3-5) and x (6-8), the rotor's part in both tangents, the constant part of jₙ, D (0: no
# contact), and the values of the six rows.
ALONG_Y, ALONG_X, ROTOR_Y, ROTOR_X, OFFSET, STIFF, VALUES, COLUMNS = 3, 6, 9, 10, 11, 12, 13, 19
ROLLING = CONTACTS * COLUMNS  # 3×4, what all rims share: angular and rotor's parts of spin and both rolls
FORCE = ROLLING + 12  # M y₀
Y = FORCE + 11  # the solution
START = Y + 11  # where a line search starts, and the rows' values there
BEFORE = START + 11
SYSTEM = BEFORE + CONTACTS * 6  # lower rows of the 6×6 matrix, its right side
RIGHT = SYSTEM + 21
WHEELS = RIGHT + 6  # 2×8, for each wheel: couplings of its spin to the six, pivot, right side
BALL = WHEELS + 16  # for the ball's rotations: couplings to tangent and normal and right side, over the pivot
SIZE = BALL + 8


@compiled(**FUSED)
def _pair(bits, k, stiff, mu):
    """Return what one pair of opposite edges adds to (jₙ, jₙ), (jₙ, jₖ) and (jₖ, jₖ)."""
    above, below = (bits >> (2 * k)) & 1, (bits >> (2 * k + 1)) & 1
    both = stiff * (above + below)
    return both, stiff * mu * (above - below), mu * mu * both


@compiled(**FUSED)
def _add_ball(w, mu, ball, bits):
    """Add the ball's contact to the system, without the ball's rotations, which couple to nothing else.

    The first of them goes with the tangent along y, the second with that along x, and all with the normal.
    """
    stiff, offset, sy, sx = w[STIFF], w[OFFSET], w[ROTOR_Y], w[ROTOR_X]
    b1, n1, k1 = _pair(bits, 0, stiff, mu[0])
    b2, n2, k2 = _pair(bits, 1, stiff, mu[0])
    b3, n3, k3 = _pair(bits, 2, stiff, mu[1])
    b4, n4, k4 = _pair(bits, 3, stiff, mu[2])
    b5, n5, k5 = _pair(bits, 4, stiff, mu[2])
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
    _add_push(w, nn, n1, k1, n2, k2, fx, fy, fz)
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
def _add_push(w, nn, n1, k1, n2, k2, fx, fy, fz):
    """Add the linear parts of a contact, which are the axes themselves, and its constant forces."""
    w[SYSTEM] += k2
    w[SYSTEM + 2] += k1
    w[SYSTEM + 3] += n2
    w[SYSTEM + 4] += n1
    w[SYSTEM + 5] += nn
    w[RIGHT] -= fx
    w[RIGHT + 1] -= fy
    w[RIGHT + 2] -= fz


@compiled(**FUSED)
def _add_rim(w, mu, bits, i):
    """Add the contact of a rim to the system."""
    c, u = COLUMNS * i, WHEELS if i < 3 else WHEELS + 8
    stiff, offset, sy, sx = w[c + STIFF], w[c + OFFSET], w[c + ROTOR_Y], w[c + ROTOR_X]
    b1, n1, k1 = _pair(bits, 0, stiff, mu[0])
    b2, n2, k2 = _pair(bits, 1, stiff, mu[0])
    b3, n3, k3 = _pair(bits, 2, stiff, mu[1])
    b4, n4, k4 = _pair(bits, 3, stiff, mu[2])
    b5, n5, k5 = _pair(bits, 4, stiff, mu[2])
    nn = b1 + b2 + b3 + b4 + b5
    s3, s4, s5 = w[ROLLING + 3], w[ROLLING + 7], w[ROLLING + 11]
    _add_push(w, nn, n1, k1, n2, k2, offset * n2, offset * n1, offset * nn)
    for j in range(3):
        an, ay, ax, a3, a4, a5 = (
            w[c + j],
            w[c + ALONG_Y + j],
            w[c + ALONG_X + j],
            w[ROLLING + j],
            w[ROLLING + 4 + j],
            w[ROLLING + 8 + j],
        )
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
def minimize(w, mass, inertia, wheel, ball, mu, edges):
    """Write the minimizer for given active edges to y."""
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
        six, right = eliminate(six, right, w, WHEELS)
    if edges[3] | edges[4]:
        six, right = eliminate(six, right, w, WHEELS + 8)
    x = solve_six(six, right)
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
