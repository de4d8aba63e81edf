"""Progress bars."""

import sys


class Progress:
    """A progress bar, if requested: `progress` is True, or None at a terminal.

    It starts after the first part of the work, which may have been compiled: the remaining time is estimated from the others only.
    """

    def __init__(self, progress, total, unit="it"):
        self._is_wanted = progress or (progress is None and sys.stderr.isatty())
        self._total, self._unit, self._at_once, self._bar, self._done = total, unit, progress, None, 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._bar is not None:
            self._bar.close()

    def update(self, n):
        """Another part is done, of n units."""
        if not self._is_wanted:
            return
        if self._bar is not None:
            self._bar.update(n)
            return
        from tqdm.auto import tqdm

        self._done += n
        wait = 0.0 if self._at_once else 0.5  # s, before it is shown
        self._bar = tqdm(total=self._total, initial=self._done, unit=self._unit, unit_scale=True, delay=wait)
