"""Files and tables: runs that are written to disk and go on from it, what was saved, and trajectories for pandas, xarray and ParaView."""

from nsds.pictures.vtkhdf import to_vtkhdf
from nsds.results.storage import read_system, read_trajectory
from nsds.results.tables import to_pandas, to_xarray
from nsds.schemes.run.streaming import resume, stream

__all__ = ["read_system", "read_trajectory", "resume", "stream", "to_pandas", "to_vtkhdf", "to_xarray"]


def __dir__():
    return __all__
