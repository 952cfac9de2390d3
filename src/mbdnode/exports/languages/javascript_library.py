"""Functions that printed JavaScript may call: those that are used are printed before the model's.

An array argument is followed by the place where it begins.
"""

_LU = """
// LU factors in place, rows exchanged by the largest pivot.
function lu{S}(rows, columns, a, at, pivots, pt, order, ot) {
    const least = rows < columns ? rows : columns;
    for (let i = 0; i < rows; ++i) order[ot + i] = i;
    for (let k = 0; k < least; ++k) {
        let best = k;
        let most = Math.abs(a[at + k * columns + k]);
        for (let i = k + 1; i < rows; ++i) {
            const here = Math.abs(a[at + i * columns + k]);
            if (here > most) { most = here; best = i; }
        }
        pivots[pt + k] = best;
        if (best !== k) {
            const place = order[ot + k];
            order[ot + k] = order[ot + best];
            order[ot + best] = place;
            for (let j = 0; j < columns; ++j) {
                const other = a[at + k * columns + j];
                a[at + k * columns + j] = a[at + best * columns + j];
                a[at + best * columns + j] = other;
            }
        }
        if (a[at + k * columns + k] !== 0) {
            const inverse = {R}(1 / a[at + k * columns + k]);
            for (let i = k + 1; i < rows; ++i) {
                const factor = {R}(a[at + i * columns + k] * inverse);
                a[at + i * columns + k] = factor;
                for (let j = k + 1; j < columns; ++j)
                    a[at + i * columns + j] -= {R}(factor * a[at + k * columns + j]);
            }
        }
    }
}
"""

_TRIANGULAR = """
// Solves op(A) X = B in place of B, for a triangle of A.
function triangular{S}(n, columns, lower, transposed, unit, a, at, b, bt) {
    const row = transposed ? 1 : n, column = transposed ? n : 1;
    const forward = lower !== transposed;
    for (let step = 0; step < n; ++step) {
        const i = forward ? step : n - 1 - step;
        const first = forward ? 0 : i + 1, last = forward ? i : n;
        for (let k = first; k < last; ++k) {
            const factor = a[at + i * row + k * column];
            for (let j = 0; j < columns; ++j)
                b[bt + i * columns + j] -= {R}(factor * b[bt + k * columns + j]);
        }
        if (!unit)
            for (let j = 0; j < columns; ++j)
                b[bt + i * columns + j] /= a[at + i * row + i * column];
    }
}
"""

_CHOLESKY = """
// The lower Cholesky factor in place; not a number if there is none.
function cholesky{S}(n, a, at) {
    for (let i = 0; i < n; ++i) {
        for (let j = 0; j <= i; ++j) {
            let sum = a[at + i * n + j];
            for (let k = 0; k < j; ++k)
                sum = {R}(sum - {R}(a[at + i * n + k] * a[at + j * n + k]));
            a[at + i * n + j] = i === j ? Math.sqrt(sum) : sum / a[at + j * n + j];
        }
        for (let j = i + 1; j < n; ++j) a[at + i * n + j] = 0;
    }
}
"""

_PERMUTATION = """
// The order of rows after a series of exchanges.
function permutation(least, size, pivots, pt, order, ot) {
    for (let i = 0; i < size; ++i) order[ot + i] = i;
    for (let i = 0; i < least; ++i) {
        const other = order[ot + i];
        order[ot + i] = order[ot + pivots[pt + i]];
        order[ot + pivots[pt + i]] = other;
    }
}
"""

# W. J. Cody's rational approximations of the error function, good to the last digits.
_ERF = """
function erfc_scaled(a) {
    if (a <= 4) {
        const p = [2.15311535474403846343e-8, 0.564188496988670089180, 8.88314979438837594118,
            66.1191906371416294775, 298.635138197400131132, 881.95222124176909041,
            1712.04761263407058314, 2051.07837782607146532, 1230.33935479799725272];
        const q = [1, 15.7449261107098347253, 117.693950891312499305, 537.181101862009857509,
            1621.38957456669018874, 3290.79923573345962678, 4362.61909014324715820,
            3439.36767414372163696, 1230.33935480374942043];
        let above = p[0], below = q[0];
        for (let i = 1; i < 9; ++i) { above = above * a + p[i]; below = below * a + q[i]; }
        return above / below;
    }
    const z = 1 / (a * a);
    const p = [0.0163153871373020978498, 0.305326634961232344035, 0.360344899949804439429,
        0.125781726111229246204, 0.0160837851487422766278, 0.000658749161529837803157];
    const q = [1, 2.56852019228982242072, 1.87295284992346047209, 0.527905102951428412248,
        0.0605183413124413191178, 0.00233520497626869185443];
    let above = p[0], below = q[0];
    for (let i = 1; i < 6; ++i) { above = above * z + p[i]; below = below * z + q[i]; }
    return (0.564189583547756286948 - z * above / below) / a;
}
function erfc_tail(a) {
    if (a > 30) return 0;
    const cut = Math.trunc(a * 16) / 16, rest = (a - cut) * (a + cut);
    return Math.exp(-cut * cut) * Math.exp(-rest) * erfc_scaled(a);
}
function erf_middle(a) {
    const z = a * a;
    const p = [0.185777706184603152673, 3.16112374387056560, 113.864154151050156,
        377.485237685302021, 3209.37758913846947];
    const q = [1, 23.6012909523441209, 244.024637934444173, 1282.61652607737228,
        2844.23683343917062];
    let above = p[0], below = q[0];
    for (let i = 1; i < 5; ++i) { above = above * z + p[i]; below = below * z + q[i]; }
    return a * above / below;
}
"""

_SHORT = {
    "erf": _ERF
    + """function erf(a) {
    const size = Math.abs(a);
    if (!(size > 0.46875)) return erf_middle(a);
    return a > 0 ? 1 - erfc_tail(size) : erfc_tail(size) - 1;
}
""",
    "erfc": _ERF
    + """function erfc(a) {
    const size = Math.abs(a);
    if (!(size > 0.46875)) return 1 - erf_middle(a);
    return a > 0 ? erfc_tail(size) : 2 - erfc_tail(size);
}
""",
    "rint": """// To the nearest, of two equally near ones to the even.
function rint(a) {
    const below = Math.floor(a), rest = a - below;
    if (rest < 0.5) return below === 0 && a < 0 ? -0 : below;
    if (rest > 0.5) return below + 1 === 0 ? -0 : below + 1;
    if (rest !== 0.5) return a;
    return below % 2 === 0 ? below : below + 1;
}
""",
    "integer_div": """// Cut towards zero; by zero it is -1, as JAX has it.
function integer_div(a, b) { return b === 0 ? -1 : Math.trunc(a / b) + 0; }
""",
    "integer_rem": "function integer_rem(a, b) { return b === 0 ? a : a % b + 0; }\n",
    "integer_from": """// Cut towards zero, kept within the range; zero for what is not a number.
function integer_from(a, least, most) {
    if (a !== a) return 0;
    return a >= most ? most : a <= least ? least : Math.trunc(a) + 0;
}
""",
    "and": "function and(a, b) { return a & b; }\n",
    "or": "function or(a, b) { return a | b; }\n",
    "xor": "function xor(a, b) { return a ^ b; }\n",
    "not": "function not(a) { return ~a; }\n",
    "shl": "function shl(a, b) { return b < 0 || b > 31 ? 0 : a << b; }\n",
    "shr": "function shr(a, b) { return a >> (b < 0 || b > 31 ? 31 : b); }\n",
}


def helper_source(name: str) -> str:
    """The JavaScript of a function of the library, by a name such as "lu" or "lu_f32"."""
    if name == "permutation":
        return _PERMUTATION
    single = name.endswith("_f32")
    base = name.removesuffix("_f32")
    templates = {"lu": _LU, "triangular": _TRIANGULAR, "cholesky": _CHOLESKY}
    if base in templates:
        rounded = "Math.fround" if single else ""
        return templates[base].replace("{S}", "_f32" if single else "").replace("{R}", rounded)
    return "\n" + _SHORT[base]
