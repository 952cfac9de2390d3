from .files import check_destination as check_destination
from .logs.trajectory_files import write as write
from .sampling import AbstractStream as AbstractStream
from .sampling import StepStream as StepStream
from .sampling import sample_accelerations as sample_accelerations
