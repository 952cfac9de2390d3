"""Functions that printed JavaScript may call: those that are used are printed before the model's.

The error function is summed where it is near zero, `erf x = 2 x exp(-x^2) / sqrt(pi) sum_n
(2 x^2)^n / (2 n + 1)!!`, of which all terms are positive, and is a continued fraction further out.
"""

_ERF = """
function erf(a) {
    if (Math.abs(a) > 1) return Math.sign(a) * (1 - erfc(Math.abs(a)));
    let term = 2 * a * Math.exp(-a * a) / Math.sqrt(Math.PI), sum = term;
    for (let n = 1; n < 40; ++n) { term *= 2 * a * a / (2 * n + 1); sum += term; }
    return sum;
}
function erfc(a) {
    if (!(Math.abs(a) > 1)) return 1 - erf(a);
    if (a < 0) return 2 - erfc(-a);
    if (a > 30) return 0;
    let below = a;
    for (let n = 200; n > 0; --n) below = a + n / 2 / below;
    // exp(-a^2), of a square without rounding and of what is left.
    const cut = Math.trunc(a * 16) / 16, rest = (a - cut) * (a + cut);
    return Math.exp(-cut * cut) * Math.exp(-rest) / (below * Math.sqrt(Math.PI));
}
"""

_SOURCES = {
    "erf": _ERF,
    "erfc": _ERF,
    "round": """
// To the nearest, of two equally near ones to the even.
function round(a) {
    const below = Math.floor(a), rest = a - below;
    if (rest < 0.5) return below === 0 && a < 0 ? -0 : below;
    if (rest > 0.5) return below + 1 === 0 ? -0 : below + 1;
    if (rest !== 0.5) return a;
    return below % 2 === 0 ? below : below + 1;
}
""",
    "integer_div": """
// Cut towards zero; by zero it is -1, as JAX has it.
function integer_div(a, b) { return b === 0 ? -1 : Math.trunc(a / b) + 0; }
""",
    "integer_rem": """
function integer_rem(a, b) { return b === 0 ? a : a % b + 0; }
""",
    "integer_from": """
// Cut towards zero, kept within the range; zero for what is not a number.
function integer_from(a, most) {
    if (a !== a) return 0;
    return a >= most ? most : a <= -most - 1 ? -most - 1 : Math.trunc(a) + 0;
}
""",
}


def helper_source(name: str) -> str:
    """The JavaScript of a function of the library, by its name."""
    return _SOURCES[name]
