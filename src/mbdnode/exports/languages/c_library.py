"""Functions that printed C may call: those that are used are printed before the model's own.

Each is a short, plain function of arrays with known sizes, which a compiler turns into code for
these sizes.
"""

# By name; {T} is the C type of the numbers, {S} its short name, {f} the suffix of math functions.
_LU = """
/* LU factors in place, rows exchanged by the largest pivot. */
static void lu_{S}(const int rows, const int columns, {T} *a, int32_t *pivots, int32_t *order)
{{
    const int least = rows < columns ? rows : columns;
    for (int i = 0; i < rows; ++i) order[i] = i;
    for (int k = 0; k < least; ++k) {{
        int best = k;
        {T} most = fabs{f}(a[k * columns + k]);
        for (int i = k + 1; i < rows; ++i) {{
            const {T} here = fabs{f}(a[i * columns + k]);
            if (here > most) {{ most = here; best = i; }}
        }}
        pivots[k] = best;
        if (best != k) {{
            const int32_t place = order[k];
            order[k] = order[best];
            order[best] = place;
            for (int j = 0; j < columns; ++j) {{
                const {T} other = a[k * columns + j];
                a[k * columns + j] = a[best * columns + j];
                a[best * columns + j] = other;
            }}
        }}
        if (a[k * columns + k] != 0) {{
            const {T} inverse = 1 / a[k * columns + k];
            for (int i = k + 1; i < rows; ++i) {{
                const {T} factor = a[i * columns + k] * inverse;
                a[i * columns + k] = factor;
                for (int j = k + 1; j < columns; ++j)
                    a[i * columns + j] -= factor * a[k * columns + j];
            }}
        }}
    }}
}}
"""

_TRIANGULAR = """
/* Solves op(A) X = B in place of B, for a triangle of A. */
static void triangular_{S}(const int n, const int columns, const int lower, const int transposed,
                           const int unit, const {T} *a, {T} *b)
{{
    const int row = transposed ? 1 : n, column = transposed ? n : 1;
    const int forward = lower != transposed;
    for (int step = 0; step < n; ++step) {{
        const int i = forward ? step : n - 1 - step;
        const int first = forward ? 0 : i + 1, last = forward ? i : n;
        for (int k = first; k < last; ++k) {{
            const {T} factor = a[i * row + k * column];
            for (int j = 0; j < columns; ++j) b[i * columns + j] -= factor * b[k * columns + j];
        }}
        if (!unit)
            for (int j = 0; j < columns; ++j) b[i * columns + j] /= a[i * row + i * column];
    }}
}}
"""

_CHOLESKY = """
/* The lower Cholesky factor in place; not a number if there is none. */
static void cholesky_{S}(const int n, {T} *a)
{{
    for (int i = 0; i < n; ++i) {{
        for (int j = 0; j <= i; ++j) {{
            {T} sum = a[i * n + j];
            for (int k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt{f}(sum) : sum / a[j * n + j];
        }}
        for (int j = i + 1; j < n; ++j) a[i * n + j] = 0;
    }}
}}
"""

_PERMUTATION = """
/* The order of rows after a series of exchanges. */
static void permutation(const int least, const int size, const int32_t *pivots, int32_t *order)
{
    for (int i = 0; i < size; ++i) order[i] = i;
    for (int i = 0; i < least; ++i) {
        const int32_t other = order[i];
        order[i] = order[pivots[i]];
        order[pivots[i]] = other;
    }
}
"""

_FLOAT = {
    "max": "return a > b || a != a ? a : b;",
    "min": "return a < b || a != a ? a : b;",
}
# Wrapped around, as XLA does; a signed overflow has no meaning in C.
_WRAPPED = {"add": "+", "sub": "-", "mul": "*"}
_INTEGER = {
    "max": "return a > b ? a : b;",
    "min": "return a < b ? a : b;",
    "div": "if (b == 0) return ({T})-1;\n    return {guard}({T})(a / b);",
    "rem": "if (b == 0) return a;\n    return {guard0}({T})(a % b);",
    "and": "return ({T})(a & b);",
    "or": "return ({T})(a | b);",
    "xor": "return ({T})(a ^ b);",
    "shl": "return b < 0 || b >= {bits} ? 0 : ({T})(({U})a << b);",
    "shr": "return ({T})(a >> (b < 0 || b >= {bits} ? {bits} - 1 : b));",
}
_INTEGER_ONE = {
    "neg": "return ({T})(0u - ({U})a);",
    "abs": "return a < 0 ? ({T})(0u - ({U})a) : a;",
    "sign": "return ({T})((a > 0) - (a < 0));",
    "not": "return ({T})~a;",
}
_UNSIGNED_ONE = {"abs": "return a;", "sign": "return a > 0;"}
_TYPES = {
    "i64": ("int64_t", "uint64_t", 64),
    "i32": ("int32_t", "uint32_t", 32),
    "u32": ("uint32_t", "uint32_t", 32),
    "u8": ("uint8_t", "uint8_t", 8),
    "index": ("int", "unsigned", 32),
}


def helper_source(name: str) -> str:
    """The C of a function of the library, by a name such as "lu_f64" or "max_i32"."""
    if name == "permutation":
        return _PERMUTATION
    base, _, short = name.rpartition("_")
    if base.endswith("_from"):
        return _conversion(base.removesuffix("_from"), short)
    if short in ("f64", "f32"):
        kind, suffix = ("double", "") if short == "f64" else ("float", "f")
        templates = {"lu": _LU, "triangular": _TRIANGULAR, "cholesky": _CHOLESKY}
        if base in templates:
            return templates[base].format(T=kind, S=short, f=suffix)
        if base == "sign":
            body = "return a > 0 ? 1 : a < 0 ? -1 : a;"
            return f"\nstatic inline {kind} {name}(const {kind} a)\n{{\n    {body}\n}}\n"
        return _two(name, kind, _FLOAT[base])
    kind, unsigned, bits = _TYPES[short]
    if base in _WRAPPED:
        wide = "uint32_t" if bits < 32 else unsigned
        body = f"return ({kind})(({wide})a {_WRAPPED[base]} ({wide})b);"
        return _two(name, kind, body)
    signed = short.startswith("i")
    if base in _INTEGER:
        # The most negative number over minus one has no quotient.
        guard = f"b == -1 ? ({kind})(0u - ({unsigned})a) : " if signed else ""
        guard0 = "b == -1 ? 0 : " if signed else ""
        template = _INTEGER[base]
        if not signed:
            template = template.replace("b < 0 || ", "")
        body = template.format(T=kind, U=unsigned, bits=bits, guard=guard, guard0=guard0)
        return _two(name, kind, body)
    one = (_INTEGER_ONE if signed else {**_INTEGER_ONE, **_UNSIGNED_ONE})[base]
    body = one.format(T=kind, U=unsigned)
    return f"\nstatic inline {kind} {name}(const {kind} a)\n{{\n    {body}\n}}\n"


def _two(name: str, kind: str, body: str) -> str:
    head = f"static inline {kind} {name}(const {kind} a, const {kind} b)"
    return f"\n{head}\n{{\n    {body}\n}}\n"


def _conversion(target: str, source: str) -> str:
    """Cut towards zero, kept within the range; zero for what is not a number."""
    kind, _, bits = _TYPES[target]
    number = "double" if source == "f64" else "float"
    suffix = "" if source == "f64" else "f"
    signed = target.startswith("i")
    upper = f"{2.0 ** (bits - signed)!r}{suffix}"
    lower = f"-{upper}" if signed else f"0.0{suffix}"
    most = f"{'INT' if signed else 'UINT'}{bits}_MAX"
    least = f"INT{bits}_MIN" if signed else "0"
    return (
        f"\nstatic inline {kind} {target}_from_{source}(const {number} a)\n{{\n"
        f"    if (a != a) return 0;\n"
        f"    if (a >= {upper}) return {most};\n"
        f"    if (a <= {lower}) return {least};\n"
        f"    return ({kind})a;\n}}\n"
    )
