"""Says for which Python and platform a wheel is: for any, or with compiled kernels for one. All else stands in pyproject.toml."""

from pathlib import Path

from setuptools import Distribution, setup


class _WithKernels(Distribution):
    def has_ext_modules(self):
        """Whether there is machine code, as `python -m nsds.build_kernels` leaves it."""
        return any(Path(__file__).parent.glob("nsds/_jit/kernels-*.nbk"))


setup(distclass=_WithKernels)
