"""External functions of CasADi: a step and the rates in minimal coordinates, with Jacobians.

    <name>_step   x, u, p, dt  ->  x after a step
    <name>_rates  x, u, p      ->  x'

An optimizer wants a function without memory whose arguments are independent, so `x` is the minimal
state, the independent coordinates and velocities where the model is assembled, and the constraints
are closed from that configuration: on its branch, and as far as these coordinates reach. Jacobians
are traced by forward-mode autodiff; CasADi finds them in the library as `jac_<name>_step`.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.exports.compiling import compiled, find_compiler
from mbdnode.exports.functions import PlainFunction
from mbdnode.exports.languages.c import c_functions
from mbdnode.exports.program import Program

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


def write_casadi(program: Program, path: Path) -> None:
    """Fill an empty folder with a library of external functions, and with its sources."""
    compiler = find_compiler("external functions")
    name, functions = program.name, _functions(program)
    printed = c_functions(f"{name}_minimal", functions)
    texts = [f'#include "{name}_minimal.h"', "", "#include <string.h>", ""]
    texts += [_wrapper(name, key, given) for key, given in functions.items()]
    files = {
        f"{name}_minimal.h": printed.header,
        f"{name}_minimal.c": printed.source,
        f"{name}_casadi.c": "\n".join(texts),
    }
    (path / f"lib{name}.so").write_bytes(compiled(compiler, files))
    for file, text in files.items():
        (path / file).write_text(text, encoding="utf-8")


def _functions(program: Program) -> dict[str, PlainFunction]:
    """Step, rates and their Jacobians."""
    plant, partition = program.plant, program.plant.partition
    home = jnp.asarray(program.reference.q)

    def rate_at(t, x, u, mu):
        return plant.minimal_motion(partition, t, x, home, u, mu).rates

    def rates(x, u, p):
        """The rates of the minimal state."""
        return rate_at(jnp.zeros(()), x, u, plant.mu(p))

    def step(x, u, p, dt):
        """The minimal state a step later; u is held over the step."""
        mu, count = plant.mu(p), partition.position.independent.shape[0]

        def rate(t, y):
            found = rate_at(t, jnp.concatenate(y), u, mu)
            return found[:count], found[count:]

        start = (x[:count], x[count:])
        after, _ = plant.integrator.step(rate, jnp.zeros(()), dt[0], start)
        return jnp.concatenate(after)

    splits = partition.position, partition.velocity
    size = sum(split.independent.shape[0] for split in splits)
    sizes = (size, len(program.tables.inputs), len(program.tables.parameters), 1)
    x, u, p, dt = map(np.zeros, sizes)
    return {
        "step": (step, (x, u, p, dt)),
        "jac_step": (_jacobian(step, 4), (x, u, p, dt)),
        "rates": (rates, (x, u, p)),
        "jac_rates": (_jacobian(rates, 3), (x, u, p)),
    }


def _jacobian(function: Callable, count: int) -> Callable:
    @functools.wraps(function)
    def jacobian(*given: Any) -> tuple[Any, ...]:
        made = jax.jacfwd(function, argnums=tuple(range(count)))(*given)
        return tuple(block.T for block in made)

    jacobian.__doc__ = "The Jacobians with respect to each argument, column by column."
    return jacobian


def _wrapper(name: str, key: str, given: PlainFunction) -> str:
    function, arrays = given
    takes = dict(zip(inspect.signature(function).parameters, map(np.size, arrays), strict=True))
    size, full = takes["x"], f"{name}_{key}"
    widths = {k: (n, 1) for k, n in takes.items()}
    into = dict(widths)
    shapes = {"result": (size, 1)}
    if key.startswith("jac_"):
        full = f"jac_{name}_{key[4:]}"
        shapes = {f"jac_result_{k}": (size, n) for k, n in takes.items()}
        # A Jacobian is also given the function's own result, which it has no use for.
        into["out_result"] = (size, 1)
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
