"""Contacts of rigid bodies that are detected: which there are, which take part in a step, and their frames and levers (seed 003, 12.0.4)."""

import math

import numpy as np

from nsds._jit import kernel, stack, tiny, view
from nsds.collision import WORLD, detect, place, work_size
from nsds.collision.kinds import SPHERE, bound
from nsds.kinds import NEWTON_EULER, collisions_of
from nsds.laws import LAWS
from nsds.layout import ABSENT, table
from nsds.records import model_of, words
from nsds.schemes.newton_euler_bodies import cross, norm
from nsds.schemes.newton_euler_interactions import contact_rows, frame_of

# One row per part. In the record: n, the contacts, the shapes, parameters of the law. In the work memory: poses and reaches of shapes, the
# contacts found at the end of a step, in the order of (a, b, feature), and scratch; scratch_i in the integer one.
COLLISIONS = table(
    "capacity", "n_shapes", "each", "n", "a", "b", "feature", "normal", "point", "y", "lam", "e_n", "e_t", "mu", "mu_r", "margin",
    "kind", "size", "local", "body", "group", "mask", "pose", "reach", "new_normal", "new_point", "new_gap", "new_lam", "scratch", "n_scratch",
    "new_a", "new_b", "new_feature", "scratch_i", "n_scratch_i",
)  # fmt: skip


def table_of(records, work, iwork):
    """Table of the collisions of a record or ensemble; the work memory is reserved."""
    lines = collisions_of(model_of(records))
    rows = np.zeros(len(lines), COLLISIONS)
    for row, (name, _, law, *_) in zip(rows, lines, strict=True):
        start, dtype = words(records.dtype, name)
        at = {field: start + dtype.fields[field][1] // 8 for field in dtype.names}
        row["capacity"], row["n_shapes"] = dtype["a"].shape[0], dtype["shape_kind"].shape[0]
        row["each"] = LAWS[law].block(NEWTON_EULER)
        for column, field in (("lam", "lambda"), ("e_n", "e" if "e" in at else "e_n"), ("kind", "shape_kind"), ("size", "shape_size"),
                              ("local", "shape_pose"), ("body", "shape_body")):  # fmt: skip
            row[column] = at[field]
        for column in ("n", "a", "b", "feature", "normal", "point", "y", "e_t", "mu", "mu_r", "margin", "group", "mask"):
            row[column] = at.get(column, ABSENT)
        capacity, n_shapes = int(row["capacity"]), int(row["n_shapes"])
        floats, integers = work_size(n_shapes)
        sizes = {"pose": 7 * n_shapes, "reach": n_shapes, "new_normal": 3 * capacity, "new_point": 3 * capacity, "new_gap": capacity}
        for column, size in (sizes | {"new_lam": int(row["each"]) * capacity, "scratch": floats}).items():
            row[column] = work.reserve(size)
        for column, size in (("new_a", capacity), ("new_b", capacity), ("new_feature", capacity), ("scratch_i", integers)):
            row[column] = iwork.reserve(size)
        row["n_scratch"], row["n_scratch_i"] = floats, integers
    return rows


@kernel
def find(c, ahead, q, v, mem, imem, work, iwork):
    """Contacts of part c at the state (q, v) of all bodies; returns their number, which may exceed the capacity. Out: new_*.

    ahead: gaps are listed that motion may close in this time, from where v points.
    """
    n, m = c.n_shapes, c.capacity
    kind, size, body = view(imem, c.kind, n), view(mem, c.size, 3 * n), view(imem, c.body, n)
    local, pose, reach = view(mem, c.local, 7 * n), view(work, c.pose, 7 * n), view(work, c.reach, n)
    place(body, local, q, pose)
    for s in range(n):
        reach[s] = 0.5 * mem[c.margin]
        if body[s] != WORLD:
            far = norm(view(local, 7 * s, 3))
            if kind[s] != SPHERE:
                r = bound(kind, size, s)
                far += r if r < math.inf else size[3 * s]
            reach[s] += ahead * (norm(view(v, 6 * body[s], 3)) + norm(view(v, 6 * body[s] + 3, 3)) * far)
    return detect(
        kind, size, pose, body, reach, view(imem, c.group, n), view(imem, c.mask, n), view(iwork, c.new_a, m), view(iwork, c.new_b, m),
        view(iwork, c.new_feature, m), view(work, c.new_normal, 3 * m), view(work, c.new_point, 3 * m), view(work, c.new_gap, m),
        view(work, c.scratch, c.n_scratch), view(iwork, c.scratch_i, c.n_scratch_i),
    )  # fmt: skip


@tiny
def _is_before(imem, c, k, iwork, i):
    """Whether the k-th contact of the record comes before the i-th of those found."""
    a, b, feature = imem[c.a + k], imem[c.b + k], imem[c.feature + k]
    new_a, new_b = iwork[c.new_a + i], iwork[c.new_b + i]
    return a < new_a or (a == new_a and (b < new_b or (b == new_b and feature < iwork[c.new_feature + i])))


@kernel
def inherit(c, n, mem, imem, work, iwork):
    """Impulses of the n contacts found: those of the same contacts in the record, turned with the frame; 0 of new ones. Out: new_lam."""
    k, n_old, old, new = 0, imem[c.n], stack(9), stack(9)
    for i in range(n):
        while k < n_old and _is_before(imem, c, k, iwork, i):
            k += 1
        known = k < n_old and imem[c.a + k] == iwork[c.new_a + i] and imem[c.b + k] == iwork[c.new_b + i]
        known = known and imem[c.feature + k] == iwork[c.new_feature + i]
        for j in range(c.each):
            work[c.new_lam + c.each * i + j] = mem[c.lam + c.each * k + j] if known else 0.0
        if known and c.each > 1:
            frame_of(view(mem, c.normal + 3 * k, 3), old)
            frame_of(view(work, c.new_normal + 3 * i, 3), new)
            for first in range(1, c.each, 2):
                _turn(old, new, view(work, c.new_lam + c.each * i + first, 2))


@tiny
def _turn(old, new, tangential):
    """Components on the tangents of the new frame of a vector given on those of the old one."""
    x, y = tangential[0], tangential[1]
    for j in range(2):
        s = 0.0
        for l in range(3):
            s += new[3 * (1 + j) + l] * (x * old[3 + l] + y * old[6 + l])
        tangential[j] = s


@kernel
def take_over(c, n, mem, imem, work, iwork):
    """The n contacts found become those of the record; the rest of its arrays is cleared."""
    last = max(n, imem[c.n])
    imem[c.n] = n
    for i in range(last):
        known = i < n
        imem[c.a + i] = iwork[c.new_a + i] if known else 0
        imem[c.b + i] = iwork[c.new_b + i] if known else 0
        imem[c.feature + i] = iwork[c.new_feature + i] if known else 0
        mem[c.y + i] = work[c.new_gap + i] if known else 0.0
        for k in range(3):
            mem[c.normal + 3 * i + k] = work[c.new_normal + 3 * i + k] if known else 0.0
            mem[c.point + 3 * i + k] = work[c.new_point + 3 * i + k] if known else 0.0
        for k in range(c.each):
            mem[c.lam + c.each * i + k] = work[c.new_lam + c.each * i + k] if known else 0.0


@kernel
def locate(c, i, q, mem, imem, frame, lever):
    """(a, b): bodies of contact i of part c, -1 for the world. Out: frame (9,), lever (6,): contact point minus the centres of the bodies."""
    a, b = imem[c.body + imem[c.a + i]], imem[c.body + imem[c.b + i]]
    frame_of(view(mem, c.normal + 3 * i, 3), frame)
    way = 0.0 if b == WORLD else 0.5 * mem[c.y + i]
    for k in range(3):
        x = mem[c.point + 3 * i + k] - way * frame[k]
        lever[k] = x - q[7 * a + k]
        lever[3 + k] = 0.0 if b == WORLD else x - q[7 * b + k]
    return a, b


@kernel
def relative_velocity(each, a, b, frame, lever, w, u):
    """Velocity of a against b at the contact in its frame; then, of five, angular velocities about the tangents. Out: u (each,)."""
    x, turned = stack(3), stack(3)
    for k in range(3):
        x[k] = w[6 * a + k]
    cross(view(w, 6 * a + 3, 3), lever, turned)
    for k in range(3):
        x[k] += turned[k]
    if b != WORLD:
        cross(view(w, 6 * b + 3, 3), view(lever, 3, 3), turned)
        for k in range(3):
            x[k] -= w[6 * b + k] + turned[k]
    for j in range(min(each, 3)):
        u[j] = frame[3 * j] * x[0] + frame[3 * j + 1] * x[1] + frame[3 * j + 2] * x[2]
    for j in range(3, each):
        s = 0.0
        for k in range(3):
            s += frame[3 * (j - 2) + k] * (w[6 * a + 3 + k] - (0.0 if b == WORLD else w[6 * b + 3 + k]))
        u[j] = s


@kernel
def choose(c, ahead, first, q, w, mem, imem, bodies_of, which):
    """Contacts of part c that take part, ``y + ahead u_N <= 0`` (seed 003, eq. 11.203); returns the number of those so far.

    Out, from place ``first`` on: bodies_of (2 each), which: number of the contact.
    """
    frame, lever, u, n = stack(9), stack(6), stack(5), first
    for i in range(imem[c.n]):
        a, b = locate(c, i, q, mem, imem, frame, lever)
        relative_velocity(1, a, b, frame, lever, w, u)
        if mem[c.y + i] + ahead * u[0] <= 0.0:
            bodies_of[2 * n], bodies_of[2 * n + 1], which[n] = a, b, i
            n += 1
    return n


@kernel
def state_contact(c, i, d, q, w, mem, imem, disk, mu, body, frame, lever, b, r):
    """Contact i of part c for the one-step problem: all arguments from disk on are views of one contact."""
    u = stack(5)
    body[0], body[1] = locate(c, i, q, mem, imem, frame, lever)
    relative_velocity(c.each, body[0], body[1], frame, lever, w, u)
    disk[0] = 0 if c.each == 1 else 2
    mu[0] = 0.0 if c.each == 1 else mem[c.mu]
    mu[1] = mem[c.mu_r] if c.each == 5 else 0.0
    for k in range(d):
        e = mem[c.e_n] if k == 0 else mem[c.e_t] if k < min(c.each, 3) else 0.0
        b[k] = e * u[k] if k < min(c.each, 3) else 0.0
        r[k] = mem[c.lam + c.each * i + k] if k < c.each else 0.0


@kernel
def rows_of_contact(each, d, body, frame, lever, H, diagonal):
    """H (d, 12) of one contact, and which components are left over (1, else 0): for a problem with a matrix."""
    contact_rows(each, frame, lever, view(lever, 3, 3), body[1] != WORLD, H)
    for k in range(d):
        diagonal[k] = 0.0 if k < each else 1.0
    for k in range(12 * each, 12 * d):
        H[k] = 0.0
