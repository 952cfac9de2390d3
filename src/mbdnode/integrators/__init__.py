"""Integrators by name: explicit, symplectic, implicit, adaptive, under one interface."""

from typing import Any

import diffrax

import mbdnode.numerics  # noqa: F401  (float64 before the first array)
from mbdnode.integrators.adaptive import Adaptive
from mbdnode.integrators.base import AbstractIntegrator, Tableau
from mbdnode.integrators.explicit import ForwardEuler, Midpoint, RungeKutta4
from mbdnode.integrators.implicit import ImplicitOneStage
from mbdnode.integrators.symplectic import YOSHIDA4, YOSHIDA6, Composition
from mbdnode.naming import unknown_name

INTEGRATORS: dict[str, AbstractIntegrator] = {
    "fe1": ForwardEuler(),
    "mp2": Midpoint(),
    "rk4": RungeKutta4(),
    "lf2": Composition((1.0,), 2),
    "ys4": Composition(YOSHIDA4, 4),
    "fk6": Composition(YOSHIDA6, 6),
    "backward-euler": ImplicitOneStage(1.0, 1, symplectic=False),
    "implicit-midpoint": ImplicitOneStage(0.5, 2, symplectic=True),
    "dopri5": Adaptive(diffrax.Dopri5(), 5, rtol=1e-9, atol=1e-9),
    "dopri8": Adaptive(diffrax.Dopri8(), 8, rtol=1e-13, atol=1e-13),
    "kvaerno5": Adaptive(diffrax.Kvaerno5(), 5, rtol=1e-8, atol=1e-8),
}


def get_integrator(integrator: Any) -> AbstractIntegrator:
    """An integrator by name (in any case), or the one given.

    **Arguments:**

    - `integrator`: a key of `INTEGRATORS`, or an integrator.

    **Returns:**

    An integrator. Raises `UserError` for an unknown name.
    """
    if isinstance(integrator, AbstractIntegrator):
        return integrator
    if not isinstance(integrator, str):
        raise TypeError(
            f"The integrator is {integrator!r}; give a name such as 'rk4', or an instance such as "
            "RungeKutta4()."
        )
    if integrator.lower() not in INTEGRATORS:
        raise unknown_name("integrator", integrator, INTEGRATORS)
    return INTEGRATORS[integrator.lower()]


__all__ = [
    "INTEGRATORS",
    "AbstractIntegrator",
    "Adaptive",
    "Composition",
    "ForwardEuler",
    "ImplicitOneStage",
    "Midpoint",
    "RungeKutta4",
    "Tableau",
    "get_integrator",
]
