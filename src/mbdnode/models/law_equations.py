r"""A law as a person would write it: mass matrix, potential, forces; as text and as LaTeX.

A law is a sum of terms, each a coefficient times functions of coordinates, velocities and inputs.
A `LearnedMechanism` is written as

    d(M(q) v)/dt - d(v.M(q) v/2)/dq = -dV/dq + Q(q, v, u)

with the entries of `M`, `V` and `Q` in closed form. Its equations are homogeneous, so one factor is
free: it is chosen so that the first input acts with the coefficient 1, or, where nothing acts from
outside, so that the first constant entry of the mass matrix is 1. A `Library` is written as one
equation for each acceleration.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.errors import UserError
from mbdnode.models.basis import Basis
from mbdnode.models.function_library import Library
from mbdnode.models.learned_mechanism import LearnedMechanism

# Coefficients below this part of the largest one beside them are round-off.
_ROUND_OFF = 1e-9
# Longer sums are a table, not an equation: only their largest terms are printed.
_MOST_TERMS = 12
_GREEK = {
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda"),
    *("mu", "nu", "xi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"),
}


@dataclass(frozen=True)
class Symbol:
    """A function or quantity, as text and as LaTeX."""

    text: str
    latex: str


@dataclass(frozen=True)
class Term:
    """A coefficient times symbols; a constant has none."""

    coefficient: float
    factors: tuple[Symbol, ...] = ()


@dataclass(frozen=True)
class Equation:
    """A left-hand side and the sum that it equals."""

    left: Symbol
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Equations:
    """A law, group by group.

    **Arguments:**

    - `title`: what kind of law it is.
    - `groups`: equations under their headings.
    - `notes`: what the equations do not say themselves.
    """

    title: str
    groups: tuple[tuple[str, tuple[Equation, ...]], ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.title]
        for heading, equations in self.groups:
            lines += ["", heading]
            width = max(len(equation.left.text) for equation in equations)
            lines += [f"  {e.left.text:<{width}} = {_sum_text(e.terms)}" for e in equations]
        return "\n".join([*lines, *(["", *self.notes] if self.notes else [])])

    def latex(self) -> str:
        """The same for a paper: an `align*` environment, a line for each equation."""
        if not self.groups:
            raise UserError(f"{self.title} has no equation to set in LaTeX. Simulate or export it.")
        lines = [
            rf"{equation.left.latex} &= {_sum_latex(equation.terms)}"
            for _, equations in self.groups
            for equation in equations
        ]
        return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"


def equations_of(model: Any) -> Equations:
    """The equations of a law.

    `Equations`, to be printed or set in LaTeX; of a fit of random features its name alone, as what
    stands beside the features says nothing without them. Raises `UserError` for a network.
    """
    if (name := features_name(model)) is not None:
        title = f"A {name} in {', '.join(model.independent)}"
        return Equations(title, (), ("Random features (tanh of the state) have no short formula.",))
    if isinstance(model, LearnedMechanism):
        return _of_mechanism(model)
    if isinstance(model, Library):
        return _of_library(model)
    raise UserError(
        f"{type(model).__name__} is not a law, so it has no equation to print. "
        "mbd.identify(system, data) finds laws."
    )


def features_name(model: Any) -> str | None:
    """What a fit of random features is called, which is no law; None for every other model."""
    count = model.settings.features if isinstance(model, Library) else 0
    return f"fit of {count} random features" if count else None


def _of_mechanism(model: LearnedMechanism) -> Equations:
    """Mass, potential, forces."""
    names = model.independent
    mass, potential, damping, drive, resistance = (np.asarray(part) for part in model.parts())
    factor, rule = _common_factor(mass, drive, model)
    pairs = [(i, j) for i in range(len(names)) for j in range(i, len(names))]
    places = (*names, *model.settings.use_parameters)
    entries = [
        Equation(
            Symbol(f"M[{names[i]}, {names[j]}]", rf"M_{{{_latex(names[i])} {_latex(names[j])}}}"),
            _expanded(row / factor, model.mass_basis, places),
        )
        for (i, j), row in zip(pairs, mass, strict=True)
    ]
    stored = len(model.potential_basis) - 1
    springs = tuple(
        Term(float(value) / factor, (_stretch(model, joint, power),))
        for value, (joint, power) in zip(potential[stored:], model.joints.springs, strict=True)
        if value != 0
    )
    with_constant = np.concatenate([[0.0], potential[:stored]]) / factor
    terms = (*_expanded(with_constant, model.potential_basis, places), *springs)
    groups = [("mass matrix", _nonzero(entries)), ("potential", (Equation(_V, _largest(terms)),))]
    forces = [
        Equation(
            Symbol(f"Q[{name}]", rf"Q_{{{_latex(name)}}}"),
            _largest(
                [
                    *(
                        Term(-damping[i, j] / factor, (_rate(other),))
                        for j, other in enumerate(names)
                    ),
                    *_resistances(model, resistance / factor, i),
                    *(
                        Term(term.coefficient, (*term.factors, _plain(one.name)))
                        for k, one in enumerate(model.inputs)
                        for term in _expanded(drive[i, k] / factor, model.input_basis, places)
                    ),
                ]
            ),
        )
        for i, name in enumerate(names)
    ]
    groups.append(("forces of velocities and inputs", _nonzero(forces)))
    return Equations(
        f"Law of a mechanism in {', '.join(names)}: d(M v)/dt - d(v.M v/2)/dq = -dV/dq + Q",
        tuple((heading, equations) for heading, equations in groups if equations),
        (f"One factor of these equations is free; here {rule}.",),
    )


def _common_factor(mass: np.ndarray, drive: np.ndarray, model) -> tuple[float, str]:
    """What to divide by, and the rule in words."""
    acting = np.abs(drive) > _ROUND_OFF * max(np.abs(drive).max(initial=0.0), 1e-300)
    for k, one in enumerate(model.inputs):
        if acting[:, k].any():
            own = drive[:, k].ravel()
            value = float(own[np.argmax(np.abs(own))])
            # Masses are positive: the diagonal's rows come first of those with the same row of M.
            count = len(model.minimal)
            diagonal = [i * count - i * (i - 1) // 2 for i in range(count)]
            heavy = mass[diagonal].ravel()
            sign = np.sign(value * heavy[np.argmax(np.abs(heavy))]) or 1.0
            return value * sign, f"{one.name} acts with the coefficient {sign:g}"
    constant = mass[:, 0]
    first = int(np.argmax(np.abs(constant) > _ROUND_OFF * np.abs(constant).max()))
    if constant[first] != 0:
        return float(constant[first]), "the first constant entry of the mass matrix is 1"
    return 1.0, "it is as the regression left it"


def _of_library(model: Library) -> Equations:
    """One equation for each acceleration, or for each force that was learned."""
    names, inputs = model.independent, [one.name for one in model.inputs]
    places = (*names, *model.settings.use_parameters)
    linear = [*(_rate(name) for name in names), *(_plain(name) for name in inputs)]
    rates = linear[: len(names)]
    if model.settings.quadratic:
        squares = [_product(a, b) for i, a in enumerate(rates) for b in rates[i:]]
        factors = [(), *((one,) for one in linear), *squares]
    else:
        factors = [()]
    size = len(model.basis)

    def terms(row: np.ndarray) -> Iterable[Term]:
        for number, factor in enumerate(factors):
            for term in _expanded(row[number * size : (number + 1) * size], model.basis, places):
                yield Term(term.coefficient, (*factor, *term.factors))
        if not model.settings.quadratic:
            for value, one in zip(row[size:], linear, strict=False):
                yield Term(float(value), (one,))

    known = model.settings.known
    lefts = {
        "nothing": [Symbol(f"{name}''", rf"\ddot{{{_latex(name)}}}") for name in names],
        "mass": [Symbol(f"F[{name}]", rf"F_{{{_latex(name)}}}") for name in names],
        "mechanism": [Symbol(f"dF[{name}]", rf"\Delta F_{{{_latex(name)}}}") for name in names],
    }[known]
    weights = np.asarray(model.network.weights)
    equations = tuple(
        Equation(
            left,
            _largest(terms(row)),
        )
        for left, row in zip(lefts, weights, strict=True)
    )
    heading = {
        "nothing": "accelerations",
        "mass": "forces, beside the known mass",
        "mechanism": "forces that the mechanism lacks",
    }[known]
    return Equations(f"Law of {', '.join(names)}", ((heading, equations),))


def _expanded(row: np.ndarray, basis: Basis, places: Sequence[str]) -> tuple[Term, ...]:
    """A row of coefficients as the terms of its sum, in as few as sums of angles allow."""
    plain = {term: float(value) for term, value in zip(basis.terms, row, strict=True) if value != 0}
    terms = []
    while plain:
        term = next(iter(plain))
        couple = [i for i, is_angle in enumerate(basis.angles) if is_angle and term[i]]
        terms += (
            _in_sums(plain, term, couple, basis, places)
            if len(couple) == 2
            else [_basis_term({term: plain.pop(term)}, basis, places)]
        )
    return _largest(terms)


def _in_sums(plain, term, couple, basis: Basis, places) -> list[Term]:
    """Products of sines and cosines of two angles, taken from `plain`.

    As they are, or by `cos A cos B = (cos(A - B) + cos(A + B))/2` and its relatives as functions
    of sums and differences, whichever needs fewer terms.
    """
    first, second = couple
    orders = [(term[i] + 1) // 2 for i in couple]

    def member(a: int, b: int) -> tuple[int, ...]:
        """The term with sine (0) or cosine (1) of each of the two."""
        changed = list(term)
        changed[first], changed[second] = 2 * orders[0] - a, 2 * orders[1] - b
        return tuple(changed)

    family = {key: plain.pop(key) for key in map(lambda ab: member(*ab), _FOUR) if key in plain}
    cc, ss, sc, cs = (family.get(member(*ab), 0.0) for ab in _FOUR)
    sums = {("cos", -1): cc + ss, ("cos", 1): cc - ss, ("sin", 1): sc + cs, ("sin", -1): sc - cs}
    largest = max(abs(value) for value in family.values())
    sums = {key: value / 2 for key, value in sums.items() if abs(value) > _ROUND_OFF * largest}
    if len(sums) >= sum(abs(value) > _ROUND_OFF * largest for value in family.values()):
        return [_basis_term({key: value}, basis, places) for key, value in family.items()]
    rest = tuple(0 if i in couple else factor for i, factor in enumerate(term))
    return [
        _basis_term({rest: value}, basis, places, _of_sum(kind, sign, orders, couple, places))
        for (kind, sign), value in sums.items()
    ]


_FOUR = ((1, 1), (0, 0), (0, 1), (1, 0))


def _of_sum(kind, sign, orders, couple, places) -> Symbol:
    """`cos(A + B)`, `cos(A - B)`, `sin(A + B)` or `sin(A - B)`."""
    texts, latexes = zip(
        *(_multiple(order, places[i]) for order, i in zip(orders, couple, strict=True)), strict=True
    )
    between = " + " if sign > 0 else " - "
    return Symbol(f"{kind}({between.join(texts)})", rf"\{kind}({between.join(latexes)})")


def _multiple(order: int, name: str) -> tuple[str, str]:
    times = "" if order == 1 else f"{order} "
    return f"{times}{name}", f"{times}{_latex(name)}"


def _basis_term(
    one: dict[tuple[int, ...], float], basis: Basis, places: Sequence[str], *more: Symbol
) -> Term:
    """A function of the basis with its coefficient, in the units of the coordinates."""
    [(term, value)] = one.items()
    origin, size = np.asarray(basis.origin), np.asarray(basis.size)
    symbols = []
    for place, (factor, is_angle) in enumerate(zip(term, basis.angles, strict=True)):
        if not factor:
            continue
        name = places[place]
        if is_angle:
            kind = "cos" if factor % 2 else "sin"
            text, latex = _multiple((factor + 1) // 2, name)
            symbols.append(Symbol(f"{kind}({text})", rf"\{kind}({latex})"))
        else:
            value /= float(size[place]) ** factor
            symbols.append(_power(_offset(name, float(origin[place])), factor))
    return Term(value, (*symbols, *more))


def _stretch(model: LearnedMechanism, joint: int, power: int) -> Symbol:
    """The twist or stretch of a joint, to a power."""
    row = model.joints.stretches[joint]
    origin = float(np.dot(row, np.asarray(model.joints.origin)))
    return _power(_combination(row, model.independent, origin), power)


def _resistances(model: LearnedMechanism, resistance: np.ndarray, i: int) -> Iterable[Term]:
    """Drag and friction of the joints, as forces on one coordinate."""
    count = model.joints.resisting
    rates = [f"{name}_dot" for name in model.independent]
    widths = np.asarray(model.network.widths)
    for joint, row in enumerate(model.joints.stretches[:count]):
        if not row[i]:
            continue
        rate = _combination(row, rates, 0.0)
        drag = Symbol(f"{rate.text}|{rate.text}|", rf"{rate.latex}\left|{rate.latex}\right|")
        width = widths[joint]
        slip = Symbol(
            f"tanh({rate.text}/{width:.6g})", rf"\tanh\left({rate.latex}/{width:.6g}\right)"
        )
        yield Term(-row[i] * resistance[joint], (drag,))
        yield Term(-row[i] * resistance[count + joint], (slip,))


def _combination(row: Sequence[int], names: Sequence[str], origin: float) -> Symbol:
    """A coordinate, or the difference of two, from an origin."""
    used = [
        (coefficient, name) for coefficient, name in zip(row, names, strict=True) if coefficient
    ]
    if len(used) == 1 and used[0][0] == 1:
        return _offset(used[0][1], origin)
    text = " ".join(f"{'+' if c > 0 else '-'} {name}" for c, name in used).removeprefix("+ ")
    latex = " ".join(f"{'+' if c > 0 else '-'} {_latex(n)}" for c, n in used).removeprefix("+ ")
    end = "" if origin == 0 else f" {'-' if origin > 0 else '+'} {abs(origin):.6g}"
    return Symbol(f"({text}{end})", f"({latex}{end})")


def _offset(name: str, origin: float) -> Symbol:
    if origin == 0:
        return _plain(name)
    end = f"{'-' if origin > 0 else '+'} {abs(origin):.6g}"
    return Symbol(f"({name} {end})", f"({_latex(name)} {end})")


def _power(symbol: Symbol, power: int) -> Symbol:
    if power == 1:
        return symbol
    return Symbol(f"{symbol.text}^{power}", f"{symbol.latex}^{{{power}}}")


def _product(a: Symbol, b: Symbol) -> tuple[Symbol, ...]:
    return (_power(a, 2),) if a == b else (a, b)


def _plain(name: str) -> Symbol:
    return Symbol(name, _latex(name))


def _rate(name: str) -> Symbol:
    return Symbol(f"{name}_dot", _latex(f"{name}_dot"))


_V = Symbol("V", "V")


def _latex(name: str) -> str:
    """A name as mathematics: `theta1_dot` becomes a dotted theta with an index."""
    stem, dotted = name.removesuffix("_dot"), name.endswith("_dot")
    match = re.fullmatch(r"([A-Za-z]+?)_?(\d*)", stem)
    if match is None:
        body = rf"\mathrm{{{stem.replace('_', chr(92) + '_')}}}"
        return rf"\dot{{{body}}}" if dotted else body
    letter = match[1]
    letter = f"\\{letter}" if letter in _GREEK else letter
    letter = letter if len(match[1]) == 1 or match[1] in _GREEK else rf"\mathrm{{{letter}}}"
    letter = rf"\dot{{{letter}}}" if dotted else letter
    return f"{letter}_{{{match[2]}}}" if match[2] else letter


def _largest(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms above round-off, in their order."""
    terms = tuple(terms)
    largest = max((abs(term.coefficient) for term in terms), default=0.0)
    return tuple(
        term for term in terms if term.coefficient and abs(term.coefficient) > _ROUND_OFF * largest
    )


def _nonzero(equations: Sequence[Equation]) -> tuple[Equation, ...]:
    return tuple(equation for equation in equations if equation.terms)


def _shown(terms: Sequence[Term]) -> tuple[list[Term], int]:
    """What is printed of a sum, in its order, and how many terms are not."""
    if len(terms) <= _MOST_TERMS:
        return list(terms), 0
    order = np.argsort([-abs(term.coefficient) for term in terms])[:_MOST_TERMS]
    return [terms[i] for i in sorted(order)], len(terms) - _MOST_TERMS


def _sum_text(terms: Sequence[Term]) -> str:
    if not terms:
        return "0"
    shown, more = _shown(terms)
    words = [f"{'-' if term.coefficient < 0 else '+'} {_product_text(term)}" for term in shown]
    rest = [f"+ {more} smaller terms"] if more else []
    return " ".join([*words, *rest]).removeprefix("+ ")


def _product_text(term: Term) -> str:
    number = f"{abs(term.coefficient):.6g}"
    factors = [factor.text for factor in term.factors]
    return " ".join(factors if factors and number == "1" else [number, *factors])


def _sum_latex(terms: Sequence[Term]) -> str:
    if not terms:
        return "0"
    shown, more = _shown(terms)
    words = []
    for term in shown:
        number = _latex_number(abs(term.coefficient))
        factors = [factor.latex for factor in term.factors]
        product = r" \, ".join(factors if factors and number == "1" else [number, *factors])
        words.append(f"{'-' if term.coefficient < 0 else '+'} {product}")
    return " ".join([*words, *([r"+ \dots"] if more else [])]).removeprefix("+ ")


def _latex_number(value: float) -> str:
    text = f"{value:.6g}"
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
