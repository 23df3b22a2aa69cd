"""Six linear equations with a symmetric matrix, as tuples that stay in registers: lower rows, right side."""

from __future__ import annotations

from steingate.compiled import compiled
from steingate.tasks.rigid import FUSED


@compiled(**FUSED)
def eliminate(A, g, w, u):
    """Return the system of six, as tuples, without the rotor at u; written out, to stay in registers."""
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
def solve_six(A, g):
    """Return the solution of the system of six: LDLᵀ, written out too."""
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
