"""External functions of CasADi: a step and the rates in minimal coordinates, with Jacobians.

    <name>_step   x, u, p, dt  ->  x after a step
    <name>_rates  x, u, p      ->  x'

An optimizer wants a function without memory whose arguments are independent, so `x` is the minimal
state, the independent coordinates and velocities where the model is assembled, and the constraints
are closed from that configuration: on its branch, and as far as these coordinates reach. Jacobians
are traced by forward-mode autodiff; CasADi finds them in the library as `jac_<name>_step`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.exports.ensembles import check_single
from mbdnode.exports.fmu.c_functions import PlainFunction, c_functions
from mbdnode.exports.program import Program
from mbdnode.multibody import complete

_WRAPPER = """/* What CasADi asks of an external function: {key}({takes}) -> {gives}. */
static const long long {full}_sparsity[{count}][3] = {{{sparsity}}};

long long {full}_n_in(void) {{ return {n_in}; }}
long long {full}_n_out(void) {{ return {n_out}; }}
const char *{full}_name_in(long long i) {{
    static const char *const names[] = {{{names_in}}};
    return names[i];
}}
const char *{full}_name_out(long long i) {{
    static const char *const names[] = {{{names_out}}};
    return names[i];
}}
/* Rows, columns, and that they are dense. */
const long long *{full}_sparsity_in(long long i) {{ return {full}_sparsity[i]; }}
const long long *{full}_sparsity_out(long long i) {{ return {full}_sparsity[{n_in} + i]; }}
int {full}_work(long long *args, long long *results, long long *integers, long long *numbers) {{
    *args = {n_in};
    *results = {n_out};
    *integers = *numbers = 0;
    return 0;
}}
int {full}(const double **arg, double **res, long long *iw, double *w, int mem) {{
{locals}
    (void)iw;
    (void)w;
    (void)mem;
{load}
    {call}
{store}
    return 0;
}}
"""


def casadi_files(program: Program) -> dict[str, str]:
    """The sources of a library with external functions of CasADi.

    **Arguments:**

    - `program`: of the model.

    **Returns:**

    Texts by file name: compile all `.c` into one shared library.
    """
    check_single(program, "A function of CasADi")
    name = program.name
    functions = _functions(program)
    plain = {key: given for key, (given, _) in functions.items()}
    printed = c_functions(f"{name}_minimal", plain)
    texts = [f'#include "{name}_minimal.h"', "", "#include <string.h>", ""]
    for key, (given, shapes) in functions.items():
        texts.append(_wrapper(name, key, given, shapes))
    return {
        f"{name}_minimal.h": printed.header,
        f"{name}_minimal.c": printed.source,
        f"{name}_casadi.c": "\n".join(texts),
    }


def _functions(program: Program) -> dict[str, tuple[PlainFunction, dict[str, tuple[int, int]]]]:
    """Step, rates and their Jacobians, with the rows and columns of what they give."""
    plant, partition = program.plant, program.plant.partition
    system, home = plant.system, jnp.asarray(program.reference.q)
    count = partition.position.independent.shape[0]
    size = count + partition.velocity.independent.shape[0]
    nu, np_ = len(program.tables.inputs), len(program.tables.parameters)

    def rate_at(t, y, u, mu):
        z, s = y
        if system.closed_on_minimal:
            return system.minimal_rates(t, z, s, u, mu)
        q, v, tangent, _ = complete(system, partition, t, z, s, home, mu)
        a = system.independent_acceleration(t, q, v, u, mu, tangent)
        return partition.position.take_independent(v), a

    def rates(x, u, p):
        """The rates of the minimal state."""
        made = rate_at(jnp.zeros(()), (x[:count], x[count:]), u, plant.mu(p))
        return jnp.concatenate(made)

    def step(x, u, p, dt):
        """The minimal state a step later; u is held over the step."""
        mu = plant.mu(p)
        rate = lambda t, y: rate_at(t, y, u, mu)  # noqa: E731
        start = (x[:count], x[count:])
        after, _ = plant.integrator.step(rate, jnp.zeros(()), dt[0], start)
        return jnp.concatenate(after)

    sizes = {"x": size, "u": nu, "p": np_, "dt": 1}
    found = {}
    for key, function, takes in (
        ("step", step, ("x", "u", "p", "dt")),
        ("rates", rates, ("x", "u", "p")),
    ):
        given = {k: np.zeros(sizes[k]) for k in takes}
        plain = (_as_tuple(function), given, ("result",))
        found[key] = (plain, {"result": (size, 1)})
        blocks = tuple(f"jac_result_{k}" for k in takes)
        jacobian: PlainFunction = (_jacobian(function, len(takes)), given, blocks)
        found[f"jac_{key}"] = (
            jacobian,
            {block: (size, sizes[k]) for block, k in zip(blocks, takes, strict=True)},
        )
    return found


def _as_tuple(function: Callable) -> Callable:
    made = lambda *given: (function(*given),)  # noqa: E731
    made.__doc__ = function.__doc__
    return made


def _jacobian(function: Callable, count: int) -> Callable:
    def jacobian(*given: Any) -> tuple[Any, ...]:
        """The Jacobians with respect to each argument, column by column."""
        made = jax.jacfwd(function, argnums=tuple(range(count)))(*given)
        return tuple(block.T for block in made)

    return jacobian


def _wrapper(name: str, key: str, given: PlainFunction, shapes: dict[str, tuple[int, int]]) -> str:
    _, takes, gives = given
    full = f"jac_{name}_{key[4:]}" if key.startswith("jac_") else f"{name}_{key}"
    widths = {k: (x.size, 1) for k, x in takes.items()}
    # A Jacobian is also given the function's own result, which it has no use for.
    extra = {"out_result": (shapes[gives[0]][0], 1)} if key.startswith("jac_") else {}
    into = {**widths, **extra}
    rows = [*into.values(), *shapes.values()]
    quoted: Callable[[Sequence[str]], str] = lambda names: ", ".join(f'"{n}"' for n in names)  # noqa: E731
    locals_ = [f"    double {k}_[{max(n, 1)}] = {{0}};" for k, (n, _) in widths.items()]
    locals_ += [f"    double {k}_[{max(n * m, 1)}];" for k, (n, m) in shapes.items()]
    # A pointer of zero stands for zeros, and for a result that is not wanted.
    load = [
        f"    if (arg[{i}]) memcpy({k}_, arg[{i}], {n} * sizeof(double));"
        for i, (k, (n, _)) in enumerate(widths.items())
        if n
    ]
    store = [
        f"    if (res[{i}]) memcpy(res[{i}], {k}_, {n * m} * sizeof(double));"
        for i, (k, (n, m)) in enumerate(shapes.items())
        if n * m
    ]
    arguments = ", ".join(f"{k}_" for k in (*widths, *shapes))
    return _WRAPPER.format(
        key=key,
        full=full,
        takes=", ".join(into),
        gives=", ".join(shapes),
        count=len(rows),
        sparsity=", ".join(f"{{{n}, {m}, 1}}" for n, m in rows),
        n_in=len(into),
        n_out=len(shapes),
        names_in=quoted(list(into)),
        names_out=quoted(list(shapes)),
        locals="\n".join(locals_),
        load="\n".join(load),
        call=f"{name}_minimal_{key}({arguments});",
        store="\n".join(store),
    )
