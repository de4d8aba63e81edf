"""VTKHDF files: points, cells and contacts of each row are where the layout of the format says."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nsds

h5py = pytest.importorskip("h5py")
GROUPS = ("Vertices", "Lines", "Polygons", "Strips")


def _row(path, k, group):
    """(points, cells by their points, data of points, data of cells) of row k, as VTK reads a file of one part a row."""
    with h5py.File(path) as file:
        root, steps, column = file["VTKHDF"], file["VTKHDF/Steps"], GROUPS.index(group)
        part, first = steps["PartOffsets"][k], steps["PointOffsets"][k]
        n, cell, connectivity = root["NumberOfPoints"][part], steps["CellOffsets"][k, column], steps["ConnectivityIdOffsets"][k, column]
        m = root[f"{group}/NumberOfCells"][part]
        offsets = connectivity + root[f"{group}/Offsets"][cell + part : cell + part + m + 1]
        cells = [root[f"{group}/Connectivity"][a:b] for a, b in itertools.pairwise(offsets)]
        assert offsets[-1] - offsets[0] == root[f"{group}/NumberOfConnectivityIds"][part]
        data = {name: values[first : first + n] for name, values in root["PointData"].items()}
        of_cells = {name: values[cell : cell + m] for name, values in root.get("CellData", {}).items()}
        return root["Points"][first : first + n], cells, data, of_cells


def test_a_stack_has_its_boxes_and_contacts_at_each_row(tmp_path):
    system = nsds.examples.box_stack(n=3)
    rows = nsds.simulate(system, t_end=0.3, h=1e-3, save_every=30)
    path, contacts = tmp_path / "stack.vtkhdf", tmp_path / "contacts.vtkhdf"
    nsds.to_vtkhdf(system, rows, path, contacts=contacts)
    for k in (0, 4, rows.size - 1):
        x, cells, data, of_cells = _row(path, k, "Polygons")
        for body in range(3):
            own = np.unique(np.concatenate([cell for cell, of in zip(cells, of_cells["body"], strict=True) if of == body]))
            assert own.size == 8
            assert_allclose(x[own].mean(axis=0), rows["boxes"]["q"][k, body, :3], atol=1e-12)
            assert_allclose(data["velocity"][own].mean(axis=0), rows["boxes"]["v"][k, body, :3], atol=1e-12)
        points, vertices, data, _ = _row(contacts, k, "Vertices")
        assert [cell.tolist() for cell in vertices] == [[i] for i in range(rows["contacts"]["n"][k])]
        assert_allclose(points, rows["contacts"]["point"][k, : len(points)])
    # at rest the impulses on the lowest box from the floor carry the weight of all three, without friction in sum
    on_floor = data["normal"][:, 2] > 0.99
    on_floor &= points[:, 2] < 0.01
    assert_allclose(data["impulse"][on_floor].sum(axis=0), [0, 0, 3 * 9.81e-3], atol=1e-9)


def test_shapes_that_come_and_go_are_there_while_they_are_alive(tmp_path):
    system = nsds.examples.conveyor(n=3)
    rows = nsds.simulate(system, t_end=2.5, h=1e-2, save_every=10)
    path = tmp_path / "belt.vtkhdf"
    nsds.to_vtkhdf(system, rows, path, extent=1.0)
    for k in range(rows.size):
        _, cells, _, of_cells = _row(path, k, "Polygons")
        assert set(of_cells["body"]) == {-1, *np.flatnonzero(rows["parcels"]["alive"][k])}
        assert len(cells) == of_cells["body"].size


def test_bad_arguments(tmp_path):
    system = nsds.examples.box_stack(n=1)
    rows = nsds.simulate(system, t_end=2e-3, h=1e-3)
    with pytest.raises(ValueError, match=r"path is written as VTKHDF, and its name must end in \.vtkhdf, got .*stack\.vtp"):
        nsds.to_vtkhdf(system, rows, tmp_path / "stack.vtp")
    nsds.to_vtkhdf(system, rows, tmp_path / "stack.vtkhdf")
    with pytest.raises(FileExistsError, match=r"stack\.vtkhdf exists; overwrite=True replaces it"):
        nsds.to_vtkhdf(system, rows, tmp_path / "stack.vtkhdf")
    few = nsds.simulate(system, t_end=2e-3, h=1e-3, fields=["boxes.q"])
    with pytest.raises(ValueError, match=r"the trajectory must hold contacts\.lambda, which was not recorded"):
        nsds.to_vtkhdf(system, few, tmp_path / "few.vtkhdf", contacts=tmp_path / "contacts.vtkhdf")
    assert [file.name for file in tmp_path.iterdir()] == ["stack.vtkhdf"]
    ball = nsds.examples.bouncing_ball()
    rows = nsds.simulate(ball, t_end=0.1, h=1e-2)
    with pytest.raises(ValueError, match="system must have rigid bodies"):
        nsds.to_vtkhdf(ball, rows, tmp_path / "ball.vtkhdf")
