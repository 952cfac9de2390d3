"""Integrators by name: explicit, symplectic, implicit, adaptive, under one interface.

Those of Diffrax are made when they are first asked for: it takes half as long to load as JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
