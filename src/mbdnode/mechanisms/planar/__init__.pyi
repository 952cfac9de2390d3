from .analysis import Analysis as Analysis
from .analysis import Redundancy as Redundancy
from .analysis import analyze as analyze
from .description import Description as Description
from .mechanism import AbstractPlanar as AbstractPlanar
from .mechanism import PlanarKinematics as PlanarKinematics
from .mechanism import PlanarMechanism as PlanarMechanism
