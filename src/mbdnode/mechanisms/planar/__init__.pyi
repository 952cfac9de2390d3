from .description import Description as Description
from .mechanism import AbstractPlanar as AbstractPlanar
from .mechanism import PlanarKinematics as PlanarKinematics
from .mechanism import PlanarMechanism as PlanarMechanism
