"""From logs to a folder with a model and its report, and from the folder to predictions.

`fit_logs` is the work of `mbdnode fit`, `predict_like` that of `mbdnode predict`, and
`predict_from` that of `mbdnode simulate` with a fit. Names are loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
