"""Calls of every primitive that has a rule, on random arrays: small ones and large ones."""

import itertools

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax import lax

from tests.exports.harness import Call

RNG = np.random.default_rng(5)
# Few enough elements to be written out, and enough for loops.
SHAPES = ((3,), (4, 6))


def normal(*shape, dtype=float):
    return RNG.normal(size=shape).astype(dtype)


def whole(*shape, low=-9, high=10, dtype=int):
    return RNG.integers(low, high, shape).astype(dtype)


def _odd(*shape):
    """Numbers with infinities, zeros of both signs and NaN among them."""
    values = normal(*shape)
    flat = values.ravel()
    flat[:6] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5][: len(flat)]
    return values


def elementwise() -> list[Call]:
    one = {
        "neg": lax.neg, "abs": lax.abs, "sign": lax.sign, "exp": lax.exp, "exp2": lax.exp2,
        "expm1": lax.expm1, "sin": lax.sin, "cos": lax.cos, "tan": lax.tan, "atan": lax.atan,
        "sinh": lax.sinh, "cosh": lax.cosh, "tanh": lax.tanh, "asinh": lax.asinh,
        "erf": lax.erf, "erfc": lax.erfc, "floor": lax.floor, "ceil": lax.ceil,
        "logistic": lax.logistic, "square": lax.square, "cbrt": lax.cbrt,
        "is_finite": lax.is_finite, "stop_gradient": lax.stop_gradient, "copy": jnp.copy,
        "round": lambda x: lax.round(4 * x, lax.RoundingMethod.TO_NEAREST_EVEN),
        "round_away": lambda x: lax.round(4 * x, lax.RoundingMethod.AWAY_FROM_ZERO),
        "integer_pow": lambda x: lax.integer_pow(x, 5),
        "integer_pow_negative": lambda x: lax.integer_pow(x, -3),
        "signbit": jnp.signbit,
        "optimization_barrier": lax.optimization_barrier,
    }  # fmt: skip
    calls = [
        Call(f"{name}{shape}", function, (_odd(*shape),))
        for (name, function), shape in itertools.product(one.items(), SHAPES)
    ]
    above = {"log": lax.log, "log1p": lax.log1p, "sqrt": lax.sqrt, "rsqrt": lax.rsqrt,
             "acosh": lambda x: lax.acosh(x + 1)}  # fmt: skip
    inside = {"asin": lax.asin, "acos": lax.acos, "atanh": lax.atanh}
    for shape in SHAPES:
        calls += [Call(f"{n}{shape}", f, (np.abs(normal(*shape)),)) for n, f in above.items()]
        calls += [Call(f"{n}{shape}", f, (np.tanh(normal(*shape)),)) for n, f in inside.items()]
    two = {
        "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "max": lax.max,
        "min": lax.min, "atan2": lax.atan2, "rem": lax.rem, "eq": lax.eq, "ne": lax.ne,
        "lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge,
        "copysign": jnp.copysign,
    }  # fmt: skip
    for (name, function), shape in itertools.product(two.items(), SHAPES):
        calls.append(Call(f"{name}{shape}", function, (_odd(*shape), normal(*shape))))
        calls.append(Call(f"{name}{shape}'", function, (normal(*shape), _odd(*shape))))
    for shape in SHAPES:
        base = np.abs(normal(*shape))
        calls.append(Call(f"pow{shape}", lax.pow, (base, normal(*shape))))
        calls.append(Call(f"clamp{shape}", lax.clamp, (-0.5, _odd(*shape), 0.5)))
        which = whole(*shape, low=0, high=2) > 0
        calls.append(Call(f"select{shape}", lax.select, (which, normal(*shape), normal(*shape))))
        three = whole(*shape, low=0, high=3, dtype=np.int32)
        cases = [normal(*shape) for _ in range(3)]
        calls.append(Call(f"select_n{shape}", lax.select_n, (three, *cases)))
    return calls


def integers() -> list[Call]:
    calls = []
    two = {
        "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "rem": lax.rem,
        "max": lax.max, "min": lax.min, "floor_divide": jnp.floor_divide, "mod": jnp.mod,
        "lt": lax.lt, "eq": lax.eq,
    }  # fmt: skip
    one = {"neg": lax.neg, "abs": lax.abs, "sign": lax.sign}
    for dtype, shape in itertools.product((np.int32, np.int64), SHAPES):
        a, b = whole(*shape, dtype=dtype), whole(*shape, dtype=dtype)
        b.ravel()[0] = 0
        tag = f"{dtype.__name__}{shape}"
        calls += [Call(f"{n} {tag}", f, (a, b)) for n, f in two.items()]
        calls += [Call(f"{n} {tag}", f, (a,)) for n, f in one.items()]
    logic = {"and": lax.bitwise_and, "or": lax.bitwise_or}
    for shape in SHAPES:
        a, p, q = whole(*shape, dtype=np.int32), whole(*shape) > 0, whole(*shape) > 0
        calls += [Call(f"{name} bool{shape}", f, (p, q)) for name, f in logic.items()]
        calls.append(Call(f"not bool{shape}", lax.bitwise_not, (p,)))
        far = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, -2.9])
        far = np.resize(far, shape)
        for dtype in ("int32", "bool", "float32"):
            cut = lambda x, d=dtype: lax.convert_element_type(x, d)  # noqa: E731
            calls.append(Call(f"convert {dtype}{shape}", cut, (far,)))
        calls.append(Call(f"float of int{shape}", lambda x: x.astype(float), (a,)))
        calls.append(Call(f"float of bool{shape}", lambda x: x.astype(float), (p,)))
    return calls


def shapes() -> list[Call]:
    x, y = normal(4, 6), normal(4, 6)
    small, scalar = normal(2, 2), np.float64(0.7)

    def scalars(x):
        """An array made of scalars, so that it is one of expressions."""
        return jnp.stack([x[0, 0], x[0, 1] * 2, x[1, 0] + 1, x[1, 1], x[0, 0], x[1, 1] - x[0, 0]])

    return [
        Call("broadcast", lambda a: jnp.broadcast_to(a[:, None], (4, 3, 6)) + 0, (x,)),
        Call("broadcast scalar", lambda a: jnp.broadcast_to(a, (5, 3)), (scalar,)),
        Call("reshape", lambda a: (a * 2).reshape(3, 8), (x,)),
        Call("reshape transposed", lambda a: a.T.reshape(8, 3), (x,)),
        Call("reshape in another order", lambda a: lax.reshape(a, (8, 3), (1, 0)), (x,)),
        Call("squeeze", lambda a: lax.squeeze(a[1:2], (0,)) * 1, (x,)),
        Call("expand", lambda a: lax.expand_dims(a, (1,)), (x,)),
        Call("transpose", lambda a: lax.transpose(a, (1, 0)), (x,)),
        Call("transpose lazy", lambda a, b: (a + b).T, (x, y)),
        Call("slice", lambda a: lax.slice(a, (1, 0), (4, 6), (2, 3)), (x,)),
        Call("slice lazy", lambda a, b: (a * b)[1:, ::2], (x, y)),
        Call("tile", lambda a: jnp.tile(a, (2, 3)), (x,)),
        Call("tile lazy", lambda a, b: jnp.tile(a * b, (3, 1)), (x, y)),
        Call("tile scalars", lambda a: jnp.tile(scalars(a), (2,)), (small,)),
        Call("split", lambda a: jnp.split(a, [2, 3], axis=1), (x,)),
        Call("concatenate", lambda a, b: jnp.concatenate([a, b[:, :2], a], 1), (x, y)),
        Call("concatenate scalars", lambda a: jnp.concatenate([scalars(a), scalars(a)]), (small,)),
        Call("stack", lambda a, b: jnp.stack([a, b], 1), (x, y)),
        Call("rev", lambda a: lax.rev(a, (0, 1)), (x,)),
        Call("rev small", lambda a: lax.rev(a, (1,)), (small,)),
        Call("pad", lambda a: lax.pad(a, 0.5, ((1, 2, 1), (-1, 3, 0))), (x,)),
        Call("pad small", lambda a: lax.pad(a, 0.5, ((0, 1, 2), (1, -1, 0))), (small,)),
        Call("iota", lambda a: a + lax.broadcasted_iota(float, (4, 6), 1), (x,)),
        Call("large iota", lambda a: a * jnp.arange(700.0), (scalar,)),
        Call("diag", lambda a: jnp.diag(scalars(a)), (small,)),
        Call("dynamic slice", lambda a, i: lax.dynamic_slice(a, (i, 2), (2, 3)), (x, np.int64(3))),
        Call("dynamic slice below", lambda a, i: lax.dynamic_slice(a, (i, i), (2, 3)),
             (x, np.int64(-5))),
        Call("dynamic slice of scalars",
             lambda a, i: lax.dynamic_slice(scalars(a), (i,), (2,)), (small, np.int64(9))),
        Call("dynamic update", lambda a, b, i: lax.dynamic_update_slice(a, b, (i, 4)),
             (x, small, np.int64(1))),
        Call("dynamic update of scalars",
             lambda a, i: lax.dynamic_update_slice(scalars(a), a[0], (i,)), (small, np.int64(2))),
        Call("known update", lambda a: scalars(a).at[2:4].set(a[1]), (small,)),
    ]  # fmt: skip


def indexing() -> list[Call]:
    x, rows = normal(5, 7), whole(4, low=-8, high=9)
    calls = []
    for mode in ("clip", "fill", "promise_in_bounds"):
        at = np.clip(rows, 0, 4) if mode == "promise_in_bounds" else rows
        calls += [
            Call(f"gather {mode}", lambda a, i, m=mode: a.at[i].get(mode=m), (x, at)),
            Call(f"gather two {mode}", lambda a, i, m=mode: a.at[i, i].get(mode=m), (x, at)),
            Call(f"gather column {mode}", lambda a, i, m=mode: a.at[:, i].get(mode=m), (x, at)),
            Call(f"gather one {mode}", lambda a, i, m=mode: a.at[i[0], 2].get(mode=m), (x, at)),
        ]
    for mode in ("clip", "drop"):
        new = normal(4, 7)
        calls += [
            Call(f"scatter {mode}", lambda a, i, b, m=mode: a.at[i].set(b, mode=m),
                 (x, np.array([3, -9, 9, 1]), new)),
            Call(f"add {mode}", lambda a, i, b, m=mode: a.at[i].add(b, mode=m), (x, rows, new)),
            Call(f"multiply {mode}", lambda a, i, b, m=mode: a.at[i].multiply(b, mode=m),
                 (x, rows, new)),
            Call(f"subtract {mode}", lambda a, i, b, m=mode: a.at[i].subtract(b, mode=m),
                 (x, rows, new)),
            Call(f"min {mode}", lambda a, i, b, m=mode: a.at[i].min(b, mode=m), (x, rows, new)),
            Call(f"max {mode}", lambda a, i, b, m=mode: a.at[i].max(b, mode=m), (x, rows, new)),
            Call(f"one {mode}", lambda a, i, m=mode: a.at[i[1]].set(2.0, mode=m), (x, rows)),
        ]  # fmt: skip
    calls += [
        Call("take_along_axis", lambda a, i: jnp.take_along_axis(a, i, 1),
             (x, whole(5, 2, low=0, high=7))),
        Call("batched gather", lambda a, i: jax.vmap(lambda r, k: r[k])(a, i),
             (x, whole(5, low=0, high=7))),
        Call("batched scatter", lambda a, i: jax.vmap(lambda r, k: r.at[k].set(1.0))(a, i),
             (x, whole(5, low=0, high=7))),
        Call("known gather", lambda a: a[np.array([4, 0, 2])], (x,)),
        Call("gather of integers", lambda a, i: a.at[i].get(mode="fill"), (whole(5), rows)),
        Call("jacobian", jax.jacfwd(lambda v: jnp.stack([v[0] * v[1], jnp.sin(v[2]), v[0] ** 2])),
             (normal(3),)),
    ]  # fmt: skip
    return calls


def reductions() -> list[Call]:
    x, odd = normal(4, 5, 3), normal(4, 5)
    odd[1, 3] = np.nan
    truth = whole(4, 5) > 0
    calls = []
    for name in ("sum", "prod", "max", "min"):
        function = getattr(jnp, name)
        calls += [
            Call(f"{name} all", function, (x,)),
            Call(f"{name} axis", lambda a, f=function: f(a, axis=1), (x,)),
            Call(f"{name} axes", lambda a, f=function: f(a, axis=(0, 2)), (x,)),
            Call(f"{name} nan", lambda a, f=function: f(a, axis=1), (odd,)),
            Call(f"{name} small", function, (normal(3),)),
            Call(f"{name} int", lambda a, f=function: f(a, axis=0), (whole(4, 5),)),
        ]
    for name in ("argmax", "argmin"):
        function = getattr(jnp, name)
        calls += [
            Call(f"{name} axis", lambda a, f=function: f(a, axis=1), (odd,)),
            Call(f"{name} large", lambda a, f=function: f(a, axis=0), (x[:, :, 0],)),
            Call(f"{name} small", function, (np.array([1.0, 3.0, 3.0]),)),
            Call(f"{name} truth", lambda a, f=function: f(a, axis=1), (truth,)),
        ]
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        function = getattr(lax, name)
        calls += [
            Call(name, lambda a, f=function: f(a, axis=1), (x,)),
            Call(f"{name} back", lambda a, f=function: f(a, axis=0, reverse=True), (x,)),
            Call(f"{name} small", function, (normal(3),)),
        ]
    for name, function in (("all", jnp.all), ("any", jnp.any)):
        calls.append(Call(name, lambda a, f=function: f(a, axis=0), (truth,)))
    return calls


def linear_algebra() -> list[Call]:
    a, b = normal(5, 5), normal(5, 3)
    small, spd = normal(2, 2), normal(4, 4)
    spd = spd @ spd.T + np.eye(4)
    stack = normal(3, 4, 4)
    weights, wide = normal(40, 70), normal(300, 20)
    calls = [
        Call("matmul", jnp.matmul, (a, b)),
        Call("matvec", jnp.matmul, (a, normal(5))),
        Call("small matmul", jnp.matmul, (small, small)),
        Call("batched matmul", jnp.matmul, (stack, normal(3, 4, 2))),
        Call("outer contraction", lambda x, y: jnp.einsum("ijk,kjl->il", x, y), (stack, stack.T)),
        Call("weights", lambda x: weights @ x, (normal(70),)),
        Call("weights from the left", lambda x: x @ weights, (normal(40),)),
        Call("rows of weights", lambda x: x @ wide.T, (normal(2, 20),)),
        Call("integers", jnp.matmul, (whole(5, 5), whole(5, 2))),
        Call("lu", lambda x: lax.linalg.lu(x), (a,)),
        Call("lu of a stack", lambda x: lax.linalg.lu(x), (stack,)),
        Call("lu of one", lambda x: lax.linalg.lu(x), (normal(1, 1),)),
        Call("lu of a wide one", lambda x: lax.linalg.lu(x), (normal(3, 5),)),
        Call("solve", jnp.linalg.solve, (a, b)),
        Call("inverse", jnp.linalg.inv, (stack,)),
        Call("solve transposed", lambda x, y: jsl.lu_solve(jsl.lu_factor(x), y, trans=1), (a, b)),
        Call("determinant", jnp.linalg.det, (a,)),
        Call("cholesky", lambda x: lax.linalg.cholesky(x, symmetrize_input=False), (spd,)),
        Call("sort", jnp.sort, (np.array([3.0, np.nan, -1.0, 3.0, 0.0, -7.0]),)),
        Call("sort rows", lambda x: jnp.sort(x, axis=0), (a,)),
        Call("argsort", lambda x: jnp.argsort(x, axis=1), (whole(4, 6),)),
        Call("argsort of truth", lambda x: jnp.argsort(x), (whole(9) > 0,)),
    ]
    for left, lower, transposed, unit in itertools.product((False, True), repeat=4):
        flags = {
            "left_side": left,
            "lower": lower,
            "transpose_a": transposed,
            "unit_diagonal": unit,
        }
        solve = lambda x, y, f=flags: lax.linalg.triangular_solve(x, y, **f)  # noqa: E731
        calls.append(Call(f"triangular {flags}", solve, (a + 3 * np.eye(5), b if left else b.T)))
        right = normal(1, 3) if left else normal(3, 1)
        calls.append(Call(f"triangular one {flags}", solve, (normal(1, 1), right)))
    return calls


def control_flow() -> list[Call]:
    x, long = normal(3), normal(8)

    def collatz(n):
        def body(c):
            return jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1

        return lax.while_loop(lambda c: c[0] > 1, body, (n, 0))[1]

    def swap(a, b):
        return lax.fori_loop(0, 7, lambda i, c: (c[1], c[0] + i), (a, b))

    def scan(a, rows):
        def body(carry, row):
            carry = jnp.tanh(carry + row)
            return carry, (carry.sum(), carry * 2)

        return lax.scan(body, a, rows)

    def big_scan(a, rows, reverse):
        def body(carry, row):
            total, kept = carry
            for _ in range(6):
                total = jnp.sin(total) + row
            return (total, kept), total * kept[0]

        return lax.scan(body, (a, a + 1), rows, reverse=reverse)

    def branch(i, a):
        return lax.switch(i, [lambda y: y + 1, lambda y: jnp.sin(y), lambda y: y[::-1]], a)

    def two(p, a):
        return lax.cond(p, lambda y: (jnp.sum(y), y * 2), lambda y: (jnp.max(y), y), a)

    def cube_root(a):
        def newton(f, y):
            return lax.fori_loop(0, 40, lambda _, z: z - f(z) / (3 * z**2), y)

        solve = lambda g, y: y / g(jnp.ones_like(y))  # noqa: E731
        return lax.custom_root(lambda y: y**3 - a, a, newton, solve)

    def nested(a):
        def body(i, c):
            inner = lax.while_loop(lambda d: d[0] < i, lambda d: (d[0] + 1, d[1] * 0.5), (0, c))[1]
            return lax.cond(i % 2 == 0, lambda y: y + inner, lambda y: y - inner, c)

        return lax.fori_loop(0, 5, body, a)

    return [
        Call("while", collatz, (np.int64(27),)),
        Call("swap small", swap, (x, x + 1)),
        Call("swap large", swap, (normal(30), normal(30))),
        Call("swap scalars", swap, (np.float64(1.0), np.float64(-2.0))),
        Call("scan", scan, (long, normal(4, 8))),
        Call("scan small", scan, (x, normal(2, 3))),
        Call("long scan", lambda a, r: big_scan(a, r, False), (long, normal(9, 8))),
        Call("scan back", lambda a, r: big_scan(a, r, True), (long, normal(9, 8))),
        *[Call(f"switch {i}", branch, (np.int32(i), long)) for i in (-1, 0, 1, 2, 7)],
        *[Call(f"cond {p}", two, (np.bool_(p), long)) for p in (False, True)],
        Call("nested", nested, (long,)),
        Call("jit", lambda a: jax.jit(lambda y: jax.jit(jnp.sin)(y) * 2)(a), (long,)),
        Call("softplus", jax.nn.softplus, (long,)),
        Call("relu's derivative", jax.jacfwd(jax.nn.relu), (long,)),
        Call("gradient", jax.grad(lambda a: jnp.sum(jnp.tanh(a) ** 3)), (long,)),
        Call("root", cube_root, (np.abs(long) + 0.5,)),
    ]  # fmt: skip


def single_precision() -> list[Call]:
    a, b = normal(4, 4, dtype=np.float32), normal(4, dtype=np.float32)
    return [
        Call("f32 sum", lambda x: jnp.sum(x**2), (b,)),
        Call("f32 functions", lambda x: jnp.sin(x) * jnp.exp(-x) / (1 + x * x), (a,)),
        Call("f32 solve", jnp.linalg.solve, (a, b)),
        Call("f32 sqrt", lambda x: jnp.sqrt(jnp.abs(x)) ** 3, (a,)),
    ]


def all_calls() -> list[Call]:
    groups = (elementwise, integers, shapes, indexing, reductions, linear_algebra, control_flow)
    return [call for group in (*groups, single_precision) for call in group()]
