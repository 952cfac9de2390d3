"""A model in other people's loops: functions of CasADi, a block of Simulink."""

from mbdnode.exports.loops.casadi import casadi_files
from mbdnode.exports.loops.simulink import simulink_files

__all__ = ["casadi_files", "simulink_files"]
