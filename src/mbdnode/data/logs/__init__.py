"""Logs of measurements: read, cleaned and summed up; and what is in them, before they are.

Nothing here loads JAX before trajectories are made, so that `inspect` answers at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
