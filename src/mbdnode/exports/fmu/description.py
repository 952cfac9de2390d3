"""`modelDescription.xml` of FMI 2.0 and of FMI 3.0, from the same list of variables.

The two differ in words (`guid` and `instantiationToken`), in how variables refer to each other (by
their place in the list, counted from one, and by value reference), and in where sources are listed.
What they say is the same.
"""

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from mbdnode.exports.fmu.variables import Variable, unit_definitions

# Relative tolerance and stop time that are suggested to an importer.
_TOLERANCE, _STOP_S = "1e-8", "10.0"
_LOGS = {
    "logStatusError": "what was asked for cannot be done",
    "logStatusWarning": "a step was taken near a singular configuration of the constraints",
    "logStatusDiscard": "the constraints cannot be closed at these states, or within this step",
}


def model_description(
    version: int,
    name: str,
    token: str,
    variables: Sequence[Variable],
    sources: Sequence[str],
    *,
    has_rates: bool,
    dt_s: float,
    generator: str,
    summary: str,
) -> str:
    """The text of `modelDescription.xml`; `token` is what the library asks for."""
    root = Xml.Element(
        "fmiModelDescription",
        {
            "fmiVersion": "2.0" if version == 2 else "3.0",
            "modelName": name,
            ("guid" if version == 2 else "instantiationToken"): token,
            "description": summary,
            "generationTool": generator,
            "variableNamingConvention": "flat",
            **({"numberOfEventIndicators": "0"} if version == 2 else {}),
        },
    )
    _interfaces(root, version, name, sources, has_rates)
    units = unit_definitions(variables)
    if units:
        definitions = Xml.SubElement(root, "UnitDefinitions")
        for unit, base in units.items():
            one = Xml.SubElement(definitions, "Unit", {"name": unit})
            if base or unit == "1":
                Xml.SubElement(one, "BaseUnit", base)
    categories = Xml.SubElement(root, "LogCategories")
    for category, meaning in _LOGS.items():
        Xml.SubElement(categories, "Category", {"name": category, "description": meaning})
    experiment = {"startTime": "0.0", "stopTime": _STOP_S, "tolerance": _TOLERANCE}
    Xml.SubElement(root, "DefaultExperiment", {**experiment, "stepSize": repr(dt_s)})
    # How variables refer to each other: by their place in the list, or by their reference.
    place = {x.reference: i + 1 if version == 2 else x.reference for i, x in enumerate(variables)}
    _list_variables(root, version, variables, place)
    _list_structure(root, version, variables, place)
    return _text(root)


def build_description(name: str, sources: Sequence[str]) -> str:
    """The text of FMI 3.0's `sources/buildDescription.xml`."""
    root = Xml.Element("fmiBuildDescription", {"fmiVersion": "3.0"})
    configuration = Xml.SubElement(root, "BuildConfiguration", {"modelIdentifier": name})
    files = Xml.SubElement(configuration, "SourceFileSet", {"language": "C99"})
    for source in sources:
        Xml.SubElement(files, "SourceFile", {"name": source})
    Xml.SubElement(configuration, "Library", {"name": "m", "external": "true"})
    return _text(root)


def _text(root: Xml.Element) -> str:
    Xml.indent(root, "  ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _interfaces(root, version: int, name: str, sources: Sequence[str], has_rates: bool) -> None:
    saved = {"canGetAndSetFMUstate": "true", "canSerializeFMUstate": "true"}
    if version == 3:
        saved = {key.replace("FMUstate", "FMUState"): value for key, value in saved.items()}
    plural = "" if version == 2 else "s"
    shared = {"modelIdentifier": name, **saved, f"providesDirectionalDerivative{plural}": "true"}
    if version == 2:
        shared["canNotUseMemoryManagementFunctions"] = "true"
    exchange = {"needsCompletedIntegratorStep": "true"} if version == 3 else {}
    stepping = {"canHandleVariableCommunicationStepSize": "true"}
    kinds = [("ModelExchange", exchange)] if has_rates else []
    for kind, own in [*kinds, ("CoSimulation", stepping)]:
        element = Xml.SubElement(root, kind, {**shared, **own})
        if version == 2:
            files = Xml.SubElement(element, "SourceFiles")
            for source in sources:
                Xml.SubElement(files, "File", {"name": source})


def _list_variables(root, version: int, variables: Sequence[Variable], place: dict) -> None:
    listed = Xml.SubElement(root, "ModelVariables")
    for one in variables:
        facts = {"name": one.name, "valueReference": str(one.reference)}
        words = {"description": one.description, "causality": one.causality}
        words |= {"variability": one.variability, "initial": one.initial}
        facts |= {key: word for key, word in words.items() if word}
        values = {"unit": one.unit} if one.unit else {}
        numbers = {"min": one.low, "max": one.high, "nominal": one.nominal, "start": one.start}
        values |= {key: repr(float(x)) for key, x in numbers.items() if x is not None}
        if one.derivative_of is not None:
            values["derivative"] = str(place[one.derivative_of])
        if version == 2:
            Xml.SubElement(Xml.SubElement(listed, "ScalarVariable", facts), "Real", values)
        else:
            Xml.SubElement(listed, "Float64", {**facts, **values})


def _unknowns(
    variables: Sequence[Variable],
) -> list[tuple[str, str, list[tuple[Variable, Sequence[int] | None]]]]:
    """By the words of FMI 2 and of FMI 3: outputs, rates, and what initialization computes.

    Each comes with the references of what it depends on. Initialization computes outputs, states
    and rates that are not given, from parameters and exact start values, rates from inputs too.
    """
    outputs = [one for one in variables if one.causality == "output"]
    rates = [one for one in variables if one.derivative_of is not None]
    states = {one.derivative_of for one in rates}
    given = [one.reference for one in variables if one.initial == "exact"]
    inputs = [one.reference for one in variables if one.causality == "input"]
    computed: list[tuple[Variable, Sequence[int] | None]] = [
        (one, given + inputs if one.derivative_of is not None else given)
        for one in variables
        if one.initial in ("approx", "calculated")
        and (one in outputs or one in rates or one.reference in states)
    ]
    return [
        ("Outputs", "Output", [(one, one.depends_on) for one in outputs]),
        ("Derivatives", "ContinuousStateDerivative", [(one, one.depends_on) for one in rates]),
        ("InitialUnknowns", "InitialUnknown", computed),
    ]


def _list_structure(root, version: int, variables: Sequence[Variable], place: dict) -> None:
    structure = Xml.SubElement(root, "ModelStructure")
    for group, kind, unknowns in _unknowns(variables):
        parent = Xml.SubElement(structure, group) if version == 2 and unknowns else structure
        for one, known in unknowns:
            facts = {"index" if version == 2 else "valueReference": str(place[one.reference])}
            if known is not None:
                facts["dependencies"] = " ".join(str(place[r]) for r in sorted(known))
            Xml.SubElement(parent, "Unknown" if version == 2 else kind, facts)
