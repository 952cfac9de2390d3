from .cases import CASES as CASES
from .cases import CONTROL_TASKS as CONTROL_TASKS
from .cases import Case as Case
from .cases import ControlTask as ControlTask
from .cases import get_case as get_case
