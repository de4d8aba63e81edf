"""Tiles of an ensemble: members in lockstep, which take the same step in vector registers (`nsds._jit.lanes`).

The module of a step provides this in a module ``tiles``: ``suits`` decides for which tables; ``propose`` computes a step into memory of the
tile and reports members that have to leave it, ``commit`` makes it the state. A member that leaves makes the step by the ordinary time
loop, and returns after it. So rows, statuses and failures are those of the ordinary loop, to the last bit.
"""

from typing import NamedTuple

import numpy as np

from nsds import _jit
from nsds._jit import is_compiled, larger, load, put, view
from nsds.model.records import N_ITER, RESIDUAL, STATUS, STEP, T0, T
from nsds.schemes.run.recording import DONE, ROW, ROW_N_ITER, ROW_RESIDUAL, ROW_STATUS, ROW_STEP, ROW_T, STARTED, STOPPED
from nsds.status import CONVERGED

WIDTH = 8  # members of a tile: two registers of four; four take a quarter longer each, sixteen no less
_MOST_WORDS = 512  # entries of a member: larger ones do not fit the nearest cache
WORTH = 100_000  # steps of all members: with fewer, tiles save no noticeable time
WORTH_COMPILING = 100_000_000  # with fewer, compiling for tiles takes longer than they save
_FEW_LEAVE = 4  # a tile ends if more than every fourth step is made alone,
_AT_LEAST = 32  # from so many on
_COUNTERS = 5  # of each member


class Tile(NamedTuple):
    """Memory of a tile: entries of its members, interleaved, and a few numbers of each."""

    mem: np.ndarray
    work: np.ndarray
    kept: np.ndarray  # from `propose` to `commit`
    step: np.ndarray  # number of the last step
    t: np.ndarray  # its end
    n_iter: np.ndarray  # of that step
    sum_iter: np.ndarray  # of the next row, so far
    residual: np.ndarray


def whole_tiles(bounds):
    """Bounds of groups of an ensemble, moved to those of tiles if there is one for each."""
    width = WIDTH if bounds[1] - bounds[0] >= WIDTH else 1
    return [*(width * np.round(bounds[:-1] / width)).astype(int).tolist(), int(bounds[-1])]


def tiles_of(run, n_steps, march):
    """Function with the arguments of the time loop that advances the members in whole tiles; None if there are none.

    march: the compiled time loop; n_steps: of the whole run.
    """
    prepared, module = run.prepared, getattr(run.prepared.stepper, "tiles", None)
    words = run.mem.shape[1] + prepared.work.shape[1]
    if module is None or run.records.size < WIDTH or run.records.size * n_steps < WORTH or words > _MOST_WORDS:
        return None
    if run.controls.table.size > 0 or run.watched is not None or not module.suits(prepared.tables, run.solver_options):
        return None
    places, kernel = module.places(prepared.tables), kernel_of(module, WIDTH, march)
    if run.records.size * n_steps < WORTH_COMPILING and not is_compiled(kernel):
        return None

    def advance(*arguments):
        kernel(*arguments, places, np.empty((words + places["size"].item() + _COUNTERS) * WIDTH))

    return advance


_kernels = {}


def kernel_of(module, width, march):
    """`_tiles_template` for the steps of a scheme, and tiles of so many members."""
    name = f"{module.__name__.removeprefix('nsds.schemes.').replace('.', '_')}_{width}"
    if name not in _kernels:
        names = {"WIDTH": width, "march": march} | {key: getattr(module, key) for key in ("propose", "commit", "recall", "release")}
        for key, template in (("take_in", _take_in_template), ("put_out", _put_out_template), ("save", _save_template)):
            names[key] = _jit.kernel(_jit.specialised(template, name, **names))
        _kernels[name] = _jit.announcing(_jit.kernel(_jit.specialised(_tiles_template, name, **names)), f"kernels of {name}")
    return _kernels[name]


def _tiles_template(first, last, until, n_total, save_every, stop, first_row, sources, reached, tables, functions, controls, solver,
                    solver_options, options, mems, imems, works, iworks, rows, irows, width, places, lanes):  # fmt: skip
    """Steps up to number ``until`` of those members first..last that make whole tiles; arguments as of the time loop.

    Members at different steps, or with a stopped one among them, are left to the time loop, and so is a tile that too many leave.
    """
    # 1. memory of one tile
    n_mem, n_work, n_kept = mems.shape[1], works.shape[1], places[0].size
    behind = n_mem + n_work + n_kept
    mem, work = view(lanes, 0, n_mem * WIDTH), view(lanes, n_mem * WIDTH, n_work * WIDTH)
    kept, step = view(lanes, (n_mem + n_work) * WIDTH, n_kept * WIDTH), view(lanes, behind * WIDTH, WIDTH)
    t, n_iter = view(lanes, (behind + 1) * WIDTH, WIDTH), view(lanes, (behind + 2) * WIDTH, WIDTH)
    sum_iter, residual = view(lanes, (behind + 3) * WIDTH, WIDTH), view(lanes, (behind + 4) * WIDTH, WIDTH)
    tile = Tile(mem, work, kept, step, t, n_iter, sum_iter, residual)
    # 2. eight members at the same step, into the tile
    for m in range(first, last - WIDTH + 1, WIDTH):
        done, row, n_left, most_left = reached[m, DONE], reached[m, ROW], 0, _AT_LEAST
        is_tile = True
        for member in range(m, m + WIDTH):
            is_tile &= reached[member, DONE] == done and reached[member, ROW] == row
            is_tile &= reached[member, STARTED] != 0 and reached[member, STOPPED] == 0
        for lane in range(WIDTH if is_tile else 0):
            take_in(m, lane, (row - first_row) * width, tables, places, mems, imems, works, iworks, rows, irows, tile)  # noqa: F821
        # 3. steps; the clock of each lane, as a member that leaves may have another
        while done < until and is_tile and n_left <= most_left:
            put(step, 0, WIDTH, load(step, 0, WIDTH) + 1.0)
            put(t, 0, WIDTH, load(mem, T0, WIDTH) + load(step, 0, WIDTH) * options.h)
            left, merit, solved = propose(WIDTH, m, t, tables, places, functions, solver_options, options, mems, works, iworks, mem,  # noqa: F821
                                          work, kept)  # fmt: skip
            # 4. members that leave get their state before the step; commit then writes theirs, too, which they ignore
            for lane in range(WIDTH if left != 0 else 0):
                if left >> lane & 1 != 0:
                    step[lane] -= 1.0
                    put_out(m, lane, (row - first_row) * width, tables, mems, imems, works, iworks, rows, irows, tile)  # noqa: F821
                    reached[m + lane, DONE], reached[m + lane, ROW] = done, row
                    n_left += 1
            # 5. state, statistics and row of the others
            commit(WIDTH, m, tables, places, options, iworks, mem, work, kept)  # noqa: F821
            put(mem, T, WIDTH, load(t, 0, WIDTH))
            put(mem, RESIDUAL, WIDTH, merit)
            put(mem, STATUS, WIDTH, 0.0)
            put(residual, 0, WIDTH, larger(load(residual, 0, WIDTH), merit))
            put(n_iter, 0, WIDTH, solved)
            put(sum_iter, 0, WIDTH, load(sum_iter, 0, WIDTH) + solved)
            done += 1
            most_left += WIDTH // _FEW_LEAVE
            if done % save_every == 0 or done == n_total:
                save(m, left, (row - first_row) * width, width, sources, rows, irows, tile)  # noqa: F821
                row += 1
            # 6. members that left make the step alone, and return
            for lane in range(WIDTH if left != 0 else 0):
                if left >> lane & 1 != 0:
                    march(m + lane, m + lane + 1, done, n_total, save_every, stop, first_row, sources, reached, tables, functions, controls,  # noqa: F821
                          solver, solver_options, options, mems, imems, works, iworks, rows, irows, width)  # fmt: skip
                    is_tile &= reached[m + lane, STOPPED] == 0
                    take_in(m, lane, (row - first_row) * width, tables, places, mems, imems, works, iworks, rows, irows, tile)  # noqa: F821
        # 7. back to the records
        for lane in range(WIDTH if done > reached[m, DONE] or n_left > 0 else 0):
            if reached[m + lane, STOPPED] == 0:
                put_out(m, lane, (row - first_row) * width, tables, mems, imems, works, iworks, rows, irows, tile)  # noqa: F821
                reached[m + lane, DONE], reached[m + lane, ROW] = done, row


def _take_in_template(m, lane, at, tables, places, mems, imems, works, iworks, rows, irows, tile):
    """Copy the memory of a member into its tile, and the head of its next row, at entry ``at``, so far."""
    member = m + lane
    for i in range(mems.shape[1]):
        tile.mem[i * WIDTH + lane] = mems[member, i]
    for i in range(works.shape[1]):
        tile.work[i * WIDTH + lane] = works[member, i]
    recall(lane, WIDTH, tables, places[0], iworks[member], tile.kept)  # noqa: F821
    tile.step[lane], tile.n_iter[lane] = float(imems[member, STEP]), float(imems[member, N_ITER])
    is_inside = at < rows.shape[1]
    tile.sum_iter[lane] = float(irows[member, at + ROW_N_ITER]) if is_inside else 0.0
    tile.residual[lane] = rows[member, at + ROW_RESIDUAL] if is_inside else 0.0


def _put_out_template(m, lane, at, tables, mems, imems, works, iworks, rows, irows, tile):
    """The reverse of `_take_in_template`."""
    member = m + lane
    for i in range(mems.shape[1]):
        mems[member, i] = tile.mem[i * WIDTH + lane]
    for i in range(works.shape[1]):
        works[member, i] = tile.work[i * WIDTH + lane]
    release(tables, iworks[member])  # noqa: F821
    imems[member, STEP], imems[member, N_ITER] = int(tile.step[lane]), int(tile.n_iter[lane])
    if at < rows.shape[1]:
        irows[member, at + ROW_N_ITER], rows[member, at + ROW_RESIDUAL] = int(tile.sum_iter[lane]), tile.residual[lane]


def _save_template(m, left, at, width, sources, rows, irows, tile):
    """Save the row at entry ``at`` of the members that have not left, and clear the status of the next, as the time loop does."""
    for lane in range(WIDTH):
        if left >> lane & 1 == 0:
            row, irow = rows[m + lane], irows[m + lane]
            row[at + ROW_T], irow[at + ROW_STEP] = tile.t[lane], int(tile.step[lane])
            irow[at + ROW_N_ITER], row[at + ROW_RESIDUAL] = int(tile.sum_iter[lane]), tile.residual[lane]
            for i in range(sources.size):
                row[at + ROW_RESIDUAL + 1 + i] = tile.mem[sources[i] * WIDTH + lane]
            if at + width < row.size:
                irow[at + width + ROW_STATUS] = CONVERGED
        tile.sum_iter[lane], tile.residual[lane] = 0.0, 0.0
