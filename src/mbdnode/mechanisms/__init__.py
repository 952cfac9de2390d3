"""The catalog: the paper's seven mechanisms, their Cartesian twins, and six more.

Names are loaded when first used: who looks for a name need not wait for JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
