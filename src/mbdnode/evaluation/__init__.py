"""What a trajectory says, and how far predictions are from it.

Runs are held out by `split` and `hold_out_runs`, predictions of them are scored by `score`, and
`measure_horizon` says how far ahead they are valid.

Names are loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
