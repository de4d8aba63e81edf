"""Rigid bodies one by one: forces, iteration matrices, and the update of a configuration by velocities ([Notes], 11.5 and 11.6).

The record has angular velocities and moments in axes of the body. The one-step problem has them in inertial axes, turned by the rotation
matrix R of the start of the step: ``w = (v_g, R Omega)``.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, stack, tiny, view
from nsds.maths import rotations
from nsds.maths.dense import invert_6
from nsds.maths.vectors import cross, dot, norm, times
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT
from nsds.schemes.derivatives import FORWARD_STEP
from nsds.schemes.rigid.enabled import is_unmoved
from nsds.schemes.rigid.tables import INERTIA, MASS

# How a configuration is moved: along the exponential map, or along the tangent T(q) v and then back to unit quaternions.
EXPONENTIAL, LINEAR = range(2)
_LEFT = 0.1  # least share of the inertia that the geometric stiffness of joints may leave


@kernel
def move(how, q_from, h, weight, v_old, v, q):
    """``q = q_from`` moved for a time h by ``weight v + (1 - weight) v_old`` ([Notes], eq. 11.202); all views of one body.

    EXPONENTIAL: ``p exp(h Omega / 2)``, exact for a constant Omega (eq. 11.177). LINEAR: ``p + h T v`` (eq. 11.208), then made unit.
    """
    # 1. mean velocity over the step; rotation vector w
    w = stack(3)
    for i in range(3):
        q[i] = q_from[i] + h * (weight * v[i] + (1.0 - weight) * v_old[i])
        w[i] = h * (weight * v[3 + i] + (1.0 - weight) * v_old[3 + i])
    # 2. quaternion; without rotation it keeps its bits
    p, p_from = view(q, 3, 4), view(q_from, 3, 4)
    if w[0] == 0.0 and w[1] == 0.0 and w[2] == 0.0:
        for i in range(4):
            p[i] = p_from[i]
    elif how == EXPONENTIAL:
        for i in range(4):
            p[i] = p_from[i]
        rotations.advance(p, w, p)
    else:
        psi = stack(12)
        rotations.rate_matrix(p_from, psi)
        for i in range(4):
            p[i] = p_from[i] + 0.5 * (psi[3 * i] * w[0] + psi[3 * i + 1] * w[1] + psi[3 * i + 2] * w[2])
        rotations.normalise(p)


@kernel
def force(t, body, q, v, functions, mem, out, size):
    """Force, in inertial axes, and moment, in those of the body, of eq. 11.199 at (t, q, v) (6,), and the sums of norms of terms (2,)."""
    # 1. external force and moment
    z, nothing, term, moment = view(mem, body.z, body.n_z), view(mem, 0, 0), stack(3), view(out, 3, 3)
    if body.fext_function != ABSENT:
        call_function(functions, body.fext_function, (t, nothing, nothing, z, view(out, 0, 3)))
    else:
        for i in range(3):
            out[i] = 0.0 if body.fext == ABSENT else mem[body.fext + i]
    if body.mext_function != ABSENT:
        call_function(functions, body.mext_function, (t, nothing, nothing, z, moment))
    else:
        for i in range(3):
            moment[i] = 0.0 if body.mext == ABSENT else mem[body.mext + i]
    # a moment given in inertial axes, into axes of the body
    if body.mext_inertial:
        rotations.rotate_back(view(q, 3, 4), moment, moment)  # eq. 11.224
    # 2. gravity and controls
    size[0] = norm(out) if body.fext_function != ABSENT or body.fext != ABSENT else 0.0
    size[1] = norm(moment) if body.mext_function != ABSENT or body.mext != ABSENT else 0.0
    if body.gravity != ABSENT:
        g, mass = view(mem, body.gravity, 3), mem[body.q + MASS]
        for i in range(3):
            out[i] += mass * g[i]
        size[0] += mass * norm(g)
    if body.u != ABSENT:
        _add_control(body, q, mem, out, size)
    # 3. gyroscopic moment, which vanishes for isotropic inertia
    if not body.isotropic:
        Omega = view(v, 3, 3)
        times(view(mem, body.q + INERTIA, 9), Omega, term)
        cross(term, Omega, term)  # -M_gyr, eq. 11.200
        size[1] += norm(term)
        for i in range(3):
            moment[i] += term[i]
    # 4. internal wrench
    if body.coupled:
        subtract_internal(t, body, q, v, functions, mem, out, size)
    # 5. a planar body keeps its plane, whatever a user's function returns
    if body.planar:
        out[2] = out[3] = out[4] = 0.0


@kernel
def _add_control(body, q, mem, out, size):
    """Add ``T u`` to the wrench out (6,), force in inertial axes, moment in those of the body; size (2,) grows by norms."""
    wrench = stack(6)
    _control(body, mem, wrench)
    push, moment = view(wrench, 0, 3), view(wrench, 3, 3)
    if body.u_inertial:
        rotations.rotate_back(view(q, 3, 4), moment, moment)
    else:
        rotations.rotate(view(q, 3, 4), push, push)
    for i in range(6):
        out[i] += wrench[i]
    size[0] += norm(push)
    size[1] += norm(moment)


@tiny
def _control(body, mem, out):
    """``out = T u`` (6,), in the axes in which the control is given."""
    for i in range(6):
        out[i] = mem[body.u + i] if body.T == ABSENT else 0.0
        if body.T != ABSENT:
            for j in range(body.n_u):
                out[i] += mem[body.T + i * body.n_u + j] * mem[body.u + j]


@kernel
def subtract_internal(t, body, q, v, functions, mem, out, size):
    """Subtract the internal wrench, of functions and ``C v + K q`` ([Notes], eq. 11.222), from out (6,); size (2,) grows by norms."""
    # 1. user functions
    z, term = view(mem, body.z, body.n_z), stack(6)
    for i in range(6):
        term[i] = 0.0
    if body.fint_function != ABSENT:
        call_function(functions, body.fint_function, (t, q, v, z, view(term, 0, 3)))
    if body.mint_function != ABSENT:
        call_function(functions, body.mint_function, (t, q, v, z, view(term, 3, 3)))
    # 2. linear terms C v + K q, q with all seven coordinates
    for i in range(6):
        if body.C != ABSENT:
            for j in range(6):
                term[i] += mem[body.C + 6 * i + j] * v[j]
        if body.K != ABSENT:
            for j in range(7):
                term[i] += mem[body.K + 7 * i + j] * q[j]
        out[i] -= term[i]
    size[0] += norm(term)
    size[1] += norm(view(term, 3, 3))


class State(NamedTuple):
    """Place at which derivatives of the forces on a body are taken, and their weights in its iteration matrix."""

    t: float
    weight_v: float
    weight_q: float
    q: np.ndarray
    v: np.ndarray


@kernel
def inverse_matrix(at, body, R, turning, is_free, functions, memory, inverse, spare):
    """Inverse of ``M - weight_v D_v F - weight_q D_q F T(q)`` ([Notes], eq. 11.213), in inertial axes; False where it is singular.

    at: `State`, with the weights. turning (9,): geometric stiffness of joints, in axes of the body, which is subtracted from the 3 × 3 of
    the rotation as long as that stays positive definite, or, if is_free, far from singular. Out: inverse: of a body that is not coupled
    1/m and the 3 × 3 of the rotation; of a coupled one 6 × 6. Work: spare (150,).
    """
    mem = memory.mem
    # infinite mass: no velocity changes
    if is_unmoved(body, memory.work):
        for i in range(36 if body.coupled else 10):
            inverse[i] = 0.0
        return True
    # 1. rotational block; a ball without loads skips it
    J, is_ball, turns = view(spare, 0, 9), body.isotropic and not body.oriented and not body.coupled, False
    if not (is_ball and _is_zero(turning)):
        rotational_matrix(at, body, functions, mem, J)
        turns = subtract_turning(turning, is_free, J)
    if body.coupled:
        return _invert_coupled(at, body, R, functions, mem, J, inverse, spare)
    # 2. translation and rotation apart; a ball has the same inverse in all axes
    inverse[0] = 1.0 / mem[body.q + MASS]
    A = view(inverse, 1, 9)
    if is_ball and not turns:
        own = 1.0 / mem[body.q + INERTIA]
        for i in range(9):
            A[i] = own if i % 4 == 0 else 0.0
        return True
    if not _invert_3(J, A):
        return False
    # 3. into inertial axes, in which the one-step problem is stated
    turn_block(R, 3, 3, A, J)
    return True


@tiny
def subtract_turning(turning, is_free, J):
    """``J <- J - turning`` if leading minors of the symmetric part keep a share of their values, or the last one its size if is_free.

    Returns whether J has changed.
    """
    if _is_zero(turning):
        return False
    A, share = stack(9), 1.0
    for i in range(9):
        A[i] = J[i] - turning[i]
    for i in range(1, 4):
        share *= _LEFT
        minor, least = _leading_minor(i, A), share * _leading_minor(i, J)
        if not (minor > least or (is_free and (i < 3 or minor < -least))):
            return False
    for i in range(9):
        J[i] = A[i]
    return True


@tiny
def _is_zero(turning):
    """Whether nothing is to be subtracted."""
    count = 0
    for i in range(9):
        count += turning[i] != 0.0
    return count == 0


@tiny
def _leading_minor(n, A):
    """Determinant of the first n rows and columns of the symmetric part of A (3, 3)."""
    xy, xz, yz = 0.5 * (A[1] + A[3]), 0.5 * (A[2] + A[6]), 0.5 * (A[5] + A[7])
    if n == 1:
        return A[0]
    if n == 2:
        return A[0] * A[4] - xy * xy
    return A[0] * (A[4] * A[8] - yz * yz) - xy * (xy * A[8] - yz * xz) + xz * (xy * yz - A[4] * xz)


@tiny
def rotational_matrix(at, body, functions, mem, J):
    """``I + weight_v dM_gyr/dOmega - weight_q dM_ext/d(rotation)``, 3 × 3 in axes of the body ([Notes], eqs 11.221 and 11.227)."""
    t, weight_v, weight_q, q, v = at
    # 1. inertia
    I, Omega, momentum = view(mem, body.q + INERTIA, 9), view(v, 3, 3), stack(3)
    for i in range(9):
        J[i] = I[i]
    # 2. gyroscopic terms
    if not body.isotropic and weight_v != 0.0:
        times(I, Omega, momentum)
        for j in range(3):  # e_j × I Omega + Omega × I e_j, column by column
            a, b = (j + 1) % 3, (j + 2) % 3
            J[3 * a + j] -= weight_v * momentum[b]
            J[3 * b + j] += weight_v * momentum[a]
            J[j] += weight_v * (Omega[1] * I[6 + j] - Omega[2] * I[3 + j])
            J[3 + j] += weight_v * (Omega[2] * I[j] - Omega[0] * I[6 + j])
            J[6 + j] += weight_v * (Omega[0] * I[3 + j] - Omega[1] * I[j])
    # 3. moments that keep their direction in the world change with the rotation of the body
    if (body.mext_inertial or body.u_inertial) and weight_q != 0.0:
        moment, wrench = stack(3), stack(6)
        for i in range(3):
            moment[i] = mem[body.mext + i] if body.mext_inertial and body.mext != ABSENT else 0.0
        if body.mext_inertial and body.mext_function != ABSENT:
            call_function(functions, body.mext_function, (t, view(mem, 0, 0), view(mem, 0, 0), view(mem, body.z, body.n_z), moment))
        if body.u_inertial:
            _control(body, mem, wrench)
            for i in range(3):
                moment[i] += wrench[3 + i]
        rotations.rotate_back(view(q, 3, 4), moment, moment)
        for j in range(3):  # R exp(d)^T m = R^T m + (R^T m) × d
            a, b = (j + 1) % 3, (j + 2) % 3
            J[3 * a + j] -= weight_q * moment[b]
            J[3 * b + j] += weight_q * moment[a]


@tiny
def _invert_3(J, A):
    """``A = J^-1`` by cofactors; False where J is singular."""
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        for j in range(3):
            c, d = (j + 1) % 3, (j + 2) % 3
            A[3 * j + i] = J[3 * a + c] * J[3 * b + d] - J[3 * a + d] * J[3 * b + c]
    determinant = J[0] * A[0] + J[1] * A[3] + J[2] * A[6]
    factor = 1.0 / determinant
    for i in range(9):
        A[i] *= factor
    return 0.0 < abs(determinant) < math.inf


@kernel
def _invert_coupled(at, body, R, functions, mem, J, inverse, spare):
    """The 6 × 6 inverse of a body whose internal wrench depends on q and v. Work: spare (150,), J its first 9."""
    t, weight_v, weight_q, q, v = at
    # 1. M + weight_v D_v + weight_q D_q T in axes of the body
    A, D_q, D_v, T = view(spare, 9, 36), view(spare, 45, 42), view(spare, 87, 36), stack(42)
    internal_derivatives(t, body, q, v, functions, mem, D_q, D_v)
    rotations.tangent_map(q, T)
    for i in range(6):
        for j in range(6):
            s = weight_v * D_v[6 * i + j]
            for k in range(7):
                s += weight_q * D_q[7 * i + k] * T[6 * k + j]
            if i < 3 and i == j:
                s += mem[body.q + MASS]
            if i >= 3 and j >= 3:
                s += J[3 * (i - 3) + j - 3]
            A[6 * i + j] = s
    # 2. invert, and turn its four 3 × 3 blocks into inertial axes
    if not invert_6(A, inverse):
        return False
    block, turned = stack(9), stack(9)
    for a in range(0, 6, 3):
        for b in range(0, 6, 3):
            for i in range(9):
                block[i] = inverse[6 * (a + i // 3) + b + i % 3]
            turn_block(R, a, b, block, turned)
            for i in range(9):
                inverse[6 * (a + i // 3) + b + i % 3] = block[i]
    return True


@tiny
def turn_block(R, a, b, block, spare):
    """``block <- R block R^T``, each R only where rows (a) or columns (b) belong to the rotation."""
    for i in range(3):
        for j in range(3):
            spare[3 * i + j] = (
                block[3 * i + j] if a == 0 else R[3 * i] * block[j] + R[3 * i + 1] * block[3 + j] + R[3 * i + 2] * block[6 + j]
            )
    for i in range(3):
        for j in range(3):
            s = spare[3 * i + j]
            block[3 * i + j] = s if b == 0 else spare[3 * i] * R[3 * j] + spare[3 * i + 1] * R[3 * j + 1] + spare[3 * i + 2] * R[3 * j + 2]


@kernel
def internal_derivatives(t, body, q, v, functions, mem, D_q, D_v):
    """Derivatives of the internal wrench by q (6, 7) and by v (6, 6): the user's, or finite differences, plus K and C."""
    z, base, moved, size = view(mem, body.z, body.n_z), stack(6), stack(6), stack(2)
    has_functions = body.fint_function != ABSENT or body.mint_function != ABSENT
    # first by v (6 columns), then by q (7)
    for columns in range(6, 8):
        D, variable, C = (D_q, q, body.K) if columns == 7 else (D_v, v, body.C)
        jacobian = body.jac_q_function if columns == 7 else body.jac_v_function
        if jacobian != ABSENT:
            call_function(functions, jacobian, (t, q, v, z, D))
        # finite differences, away from 0, so that signs of coordinates do not change
        elif has_functions:
            for i in range(6):
                base[i] = 0.0
            subtract_internal(t, body, q, v, functions, mem, base, size)
            for j in range(columns):
                kept = variable[j]
                variable[j] = kept + math.copysign(FORWARD_STEP * max(1.0, abs(kept)), kept)
                step = variable[j] - kept
                for i in range(6):
                    moved[i] = 0.0
                subtract_internal(t, body, q, v, functions, mem, moved, size)
                variable[j] = kept
                for i in range(6):
                    D[columns * i + j] = (base[i] - moved[i]) / step
        # C v + K q is in the differences, but not in the user's derivative
        if jacobian != ABSENT or not has_functions:
            for i in range(6 * columns):
                D[i] = (D[i] if jacobian != ABSENT else 0.0) + (0.0 if C == ABSENT else mem[C + i])


@kernel
def kinetic_energy(body, at, memory):
    """``(m |v|^2 + Omega . I Omega) / 2`` of the velocity that lies there."""
    v, Omega, momentum = view(memory.work, at, 3), view(memory.work, at + 3, 3), stack(3)
    times(view(memory.mem, body.q + INERTIA, 9), Omega, momentum)
    return 0.5 * (memory.mem[body.q + MASS] * dot(v, v) + dot(Omega, momentum))


@tiny
def radius_of_gyration(body, mem):
    """``(trace I / 3 m)^(1/2)``."""
    return math.sqrt(_square_of_gyration(body.q, mem))


@tiny
def _square_of_gyration(q, mem):
    I = view(mem, q + INERTIA, 9)
    return (I[0] + I[4] + I[8]) / (3.0 * mem[q + MASS])


@tiny
def length_of_turns(q_a, q_b, mem):
    """Length at which angular rates between two bodies count as velocities: ``((1/m_a + 1/m_b) / (1/I_a + 1/I_b))^(1/2)``; 1 for none.

    ``I = m rho^2`` with the radius of gyration rho, which it is where only one of them moves. q_a, q_b: ABSENT for what cannot move.
    """
    straight = turning = 0.0
    for side in range(2):
        q = q_a if side == 0 else q_b
        if q != ABSENT:
            straight += 1.0 / mem[q + MASS]
            turning += 1.0 / (mem[q + MASS] * _square_of_gyration(q, mem))
    return math.sqrt(straight / turning) if 0.0 < turning < math.inf and straight > 0.0 else 1.0
