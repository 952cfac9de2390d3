"""The paper's baselines: one file each, with its equations, its loss and the paper's settings."""

from mbdnode.models.baselines.fcnn import FCNN, FCNNConfig
from mbdnode.models.baselines.hnn import HNN, HNNConfig
from mbdnode.models.baselines.lnn import LNN, LNNConfig
from mbdnode.models.baselines.lstm import LSTM, LSTMConfig

__all__ = ["FCNN", "HNN", "LNN", "LSTM", "FCNNConfig", "HNNConfig", "LNNConfig", "LSTMConfig"]
