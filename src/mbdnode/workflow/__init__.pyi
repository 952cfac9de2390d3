from .config import FitConfig as FitConfig
from .fitted import Fitted as Fitted
from .folder import StoredFit as StoredFit
from .folder import read_folder as read_folder
from .from_logs import fit_logs as fit_logs
from .predict import predict_from as predict_from
from .predict import predict_like as predict_like
