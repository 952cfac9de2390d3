"""Data in and out: files, samples of a mechanism, and streams of them.

Names are loaded when first used, so that logs can be looked at without loading JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
