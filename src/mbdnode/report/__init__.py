"""Drawing and page primitives that every report shares.

Names are loaded when first used: a case names its figures, and listing the cases should not wait
for Matplotlib.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
