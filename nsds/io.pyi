"""Types of a group of names of the package. Made from the docstrings by ``python -m tests.stubs``."""

from nsds import read_system as read_system
from nsds import read_trajectory as read_trajectory
from nsds import resume as resume
from nsds import stream as stream
from nsds import to_pandas as to_pandas
from nsds import to_vtkhdf as to_vtkhdf
from nsds import to_xarray as to_xarray

__all__ = ["read_system", "read_trajectory", "resume", "stream", "to_pandas", "to_vtkhdf", "to_xarray"]
