"""Mechanisms in space: bodies, joints, loops, loads and sensors, from files or as plain data.

Names are loaded when first used: a file is read and checked without JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
