"""Every kind of model, by the name that files and the command line use."""

from mbdnode.models.base import AbstractModel
from mbdnode.models.fcnn import FCNN
from mbdnode.models.hnn import HNN
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.models.library import Library
from mbdnode.models.lnn import LNN
from mbdnode.models.lstm import LSTM
from mbdnode.models.mbdnode import MBDNODE

KINDS: dict[str, type[AbstractModel]] = {
    kind.kind: kind for kind in (MBDNODE, LearnedMechanism, Library, HNN, LNN, LSTM, FCNN)
}
