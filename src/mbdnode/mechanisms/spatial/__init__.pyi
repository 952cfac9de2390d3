from .description import SpatialDescription as SpatialDescription
from .mechanism import SpatialMechanism as SpatialMechanism
