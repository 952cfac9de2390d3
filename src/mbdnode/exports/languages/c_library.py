"""Functions that printed C may call: those that are used are printed before the model's own."""

# What an operation gives: of numbers with a fraction, and of integers. C has the others itself.
_OF_TWO = {
    "max": ("a > b || a != a ? a : b", "a > b ? a : b"),
    "min": ("a < b || a != a ? a : b", "a < b ? a : b"),
    "div": ("", "b == 0 ? -1 : a / b"),  # by zero it is -1, as JAX has it
    "rem": ("", "b == 0 ? a : a % b"),
}
_OF_ONE = {"sign": "a > 0 ? 1 : a < 0 ? -1 : a", "abs": "a < 0 ? -a : a"}
_TYPES = {"f64": "double", "f32": "float", "i64": "int64_t", "i32": "int32_t", "index": "int"}


def helper_source(name: str) -> str:
    """The C of a function of the library, by a name such as "max_i32" or "i64_from_f64"."""
    base, _, short = name.rpartition("_")
    if base.endswith("_from"):
        return _conversion(base.removesuffix("_from"), short)
    kind, given, body = _TYPES[short], "const {0} a", _OF_ONE.get(base)
    if body is None:
        given, body = "const {0} a, const {0} b", _OF_TWO[base][short not in ("f64", "f32")]
    head = f"static inline {kind} {name}({given.format(kind)})"
    return f"\n{head}\n{{\n    return {body};\n}}\n"


def _conversion(target: str, source: str) -> str:
    """Cut towards zero, kept within the range; zero for what is not a number."""
    bits, suffix = int(target[1:]), "" if source == "f64" else "f"
    limit = f"{2.0 ** (bits - 1)!r}{suffix}"
    return (
        f"\nstatic inline {_TYPES[target]} {target}_from_{source}(const {_TYPES[source]} a)\n{{\n"
        f"    if (a != a) return 0;\n"
        f"    if (a >= {limit}) return INT{bits}_MAX;\n"
        f"    if (a <= -{limit}) return INT{bits}_MIN;\n"
        f"    return ({_TYPES[target]})a;\n}}\n"
    )
