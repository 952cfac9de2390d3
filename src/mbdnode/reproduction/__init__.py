"""The paper, made again: its cases, the runs that its tables and figures need, and its report.

Names are loaded when first used, so that the name of a case can be checked without loading JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
