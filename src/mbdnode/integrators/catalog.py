"""Integrators by name.

Those of Diffrax are made when they are first asked for: it takes half as long to load as JAX.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mbdnode.integrators.base import AbstractIntegrator
from mbdnode.integrators.explicit import ForwardEuler, Midpoint, RungeKutta4
from mbdnode.integrators.implicit import ImplicitOneStage
from mbdnode.integrators.symplectic import YOSHIDA4, YOSHIDA6, Composition
from mbdnode.naming import is_own, known_object, unknown_name


class _Integrators(Mapping[str, AbstractIntegrator]):
    """By name; what is given as a function is made when it is first asked for."""

    def __init__(self, given: Mapping[str, AbstractIntegrator | Callable]):
        self._given = dict(given)

    def __getitem__(self, name: str) -> AbstractIntegrator:
        found = self._given[name]
        if not isinstance(found, AbstractIntegrator):
            found = self._given[name] = found()
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, name: object) -> bool:
        return name in self._given


def _adaptive(solver: str, order: int, tolerance: float) -> Callable[[], AbstractIntegrator]:
    def make() -> AbstractIntegrator:
        import diffrax

        from mbdnode.integrators.adaptive import Adaptive

        return Adaptive(getattr(diffrax, solver)(), order, rtol=tolerance, atol=tolerance)

    return make


INTEGRATORS: Mapping[str, AbstractIntegrator] = _Integrators(
    {
        "fe1": ForwardEuler(),
        "mp2": Midpoint(),
        "rk4": RungeKutta4(),
        "lf2": Composition((1.0,), 2),
        "ys4": Composition(YOSHIDA4, 4),
        "fk6": Composition(YOSHIDA6, 6),
        "backward-euler": ImplicitOneStage(1.0, 1, symplectic=False),
        "implicit-midpoint": ImplicitOneStage(0.5, 2, symplectic=True),
        "dopri5": _adaptive("Dopri5", 5, 1e-9),
        "dopri8": _adaptive("Dopri8", 8, 1e-13),
        "kvaerno5": _adaptive("Kvaerno5", 5, 1e-8),
    }
)


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
    if is_own(integrator):
        return get_integrator(known_object(integrator))
    if integrator.lower() not in INTEGRATORS:
        raise unknown_name("integrator", integrator, INTEGRATORS)
    return INTEGRATORS[integrator.lower()]
