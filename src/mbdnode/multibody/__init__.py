"""What a constrained multibody system is, and how all of it follows from a part.

Names are loaded when first used: who checks a parameter need not wait for JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
