"""Small reproductions to make reports of: three mechanisms, a few models, one that failed."""

from dataclasses import replace

from predictions import diverging, drifting, truth_of

from mbdnode.control import QuadraticCost
from mbdnode.reproduction.cases import get_case
from mbdnode.reproduction.cases.case import Trial
from mbdnode.reproduction.cases.control_task import ControlTask
from mbdnode.reproduction.cases.printed import Exhibit, Reference
from mbdnode.reproduction.chapters import Chapter, Reproduction
from mbdnode.reproduction.config import configure
from mbdnode.reproduction.folder import StoredRun
from mbdnode.reproduction.results import Result, key_of, tidy
from mbdnode.reproduction.run import Probe


def row(seed, mse):
    """The metrics of a finished run."""
    return {
        "seed": seed,
        "mse": mse,
        "mse_id": None if mse is None else mse / 2,
        "mse_ood": None if mse is None else 2 * mse,
        "mse_sum": None if mse is None else 4 * mse,
        "nrmse": None if mse is None else mse**0.5,
        "train_seconds": 10.0 + seed,
        "compile_seconds": 2.0,
        "outcome": "completed",
        "status": "completed 5 epochs",
        "rollout": "completed at t = 3 s (step 60)",
    }


def result(name, model, integrator, recipe, rows, shown=None):
    """A result whose rows say what it is of."""
    who = {"case": name, "model": model, "integrator": integrator, "recipe": recipe}
    config = None
    if model == "law":
        config = configure(name, recipe="best")
    elif model in ("mbd-node", "lstm", "fcnn"):
        config = configure(name, model=model)
    rows = tuple({**one, **who} for one in rows)
    return Result(get_case(name), *key_of(who)[1:], rows, config=config, shown=shown)


def of_recipe(made, recipe):
    """The same result, as if it were of another recipe."""
    rows = tuple({**one, "recipe": recipe} for one in made.rows)
    return replace(made, recipe=recipe, rows=rows)


def entry(name, model="mbd-node", integrator="rk4", errors=(1e-3,), recipe="paper", rate=0.01):
    """A result whose seeds have these errors; a law has no epochs and no layers."""
    truth = truth_of(name)
    rows = tuple(row(seed, error) for seed, error in enumerate(errors))
    losses = ()
    if model != "law":
        rows, losses = tuple({**one, "layers": [3, 256, 256, 1]} for one in rows), (1.0, 0.1, 0.01)
    return result(name, model, integrator, recipe, rows, run(truth, drifting(truth, rate), losses))


def run(truth, prediction, losses=(), probes=()):
    """A finished run, as its folder holds it."""
    config = configure("single-pendulum")
    return StoredRun(config, {}, truth, prediction, losses, tuple(probes))


def failed_entry(model="fcnn", reason="the worker died twice", name="single-pendulum"):
    """A result of which no run came to an end."""
    rows = tuple({"seed": s, "outcome": "failed", "status": reason} for s in range(2))
    return result(name, model, "-", "paper", rows)


def chapter(name, entries, kinds=(), references=(), **changes):
    """A chapter with one figure of each of these kinds."""
    case = get_case(name)
    made = replace(
        case,
        title=name.replace("-", " ").capitalize(),
        source="paper, a section",
        train_steps=0 if name == "slider-crank" else 200,
        references=tuple(references),
        hyperparameters=(replace(case.hyperparameters[0], source=f"tab:hyper_{name}"),),
        exhibits=tuple(Exhibit(f"fig: {name} {k}", k, f"The {k} of it.") for k in kinds),
        trials=(),
        notes=(),
    )
    return changed(Chapter(made, tuple(entries)), **changes)


def changed(made, results=None, **changes):
    """The chapter with other results, or with a case that differs in these fields."""
    case = replace(made.case, **changes)
    old = made.results if results is None else tuple(results)
    rows = [{**one, "case": case.name} for each in old for one in each.rows]
    table = tidy(rows, {case.name: case})
    results = [
        replace(new, shown=each.shown, config=each.config)
        for new, each in zip(table, old, strict=True)
    ]
    return replace(made, case=case, results=tuple(results))


def probes(truth):
    """Two other starts and a random force."""
    other = drifting(truth, 0.02)
    return (
        Probe("start-1", "from (1, 0)", truth, other, 1e-3, 0.02),
        Probe("start-2", "from (-1, 0)", truth, diverging(truth), None, None),
        Probe("random-force", "under a random force", truth, other, 2e-3, 0.2),
    )


def asked(made, found):
    """A result with probes, whose rows say the same."""
    errors = {probe.name: {"mse": probe.mse, "nrmse": probe.nrmse} for probe in found}
    rows = tuple({**one, "probes": errors} for one in made.rows)
    return replace(made, rows=rows, shown=replace(made.shown, probes=tuple(found)))


def pendulum_chapter(errors=(1e-3, 2e-3, 4e-3)):
    """With a model that reproduces, one that explodes and one that failed."""
    name = "single-pendulum"
    truth = truth_of(name)
    found = probes(truth)
    good = asked(entry(name, errors=errors), found)
    trials = tuple(Trial(p.name, p.title, {}, 1, figure="fig: a study") for p in found)
    rows = ({**row(0, None), "rollout": "diverged (NaN or Inf)"},)
    wild = result(name, "lstm", "-", "paper", rows, run(truth, diverging(truth)))
    references = (
        Reference("mbd-node", "rk4", 2e-3, "a table"),
        Reference("lstm", "-", 3.4e-3, "a table"),
        Reference("fcnn", "-", 8e-1, "a table"),
        Reference("mbd-node", "rk4", 800.0, "another table", "train_seconds"),
    )
    kinds = ("over-time", "phase", "starts", "forced", "diagram")
    return chapter(name, (good, wild, failed_entry()), kinds, references, trials=trials)


def mass_spring_chapter():
    """With two integrators, one of them without a printed error, and a law at round-off."""
    name = "single-mass-spring"
    entries = (
        entry(name, integrator="lf2", errors=(1e-7,)),
        entry(name, integrator="ys4", errors=(1e-9,)),
        entry(name, "law", "rk4", errors=(1e-28,), recipe="best", rate=1e-14),
    )
    both = ("tab: model_errors", "tab:sms_test")
    references = (
        Reference("mbd-node", "lf2", 1.3e-6, "a table", tables=both, setting="generalized"),
        Reference("numerical", "rk4", 2e-3, "a table", tables=("tab:sms_test",)),
    )
    return chapter(name, entries, ("system", "phase-energy", "errors"), references)


def crank_chapter():
    """Driven all the time, without a training range."""
    name = "slider-crank"
    references = (Reference("mbd-node", "rk4", 3.2e-2, "a table", incomparable="Another size."),)
    made = entry(name, errors=(5.0,))
    loop = Probe(
        "speed", "at a constant speed", made.shown.truth, made.shown.prediction, 1e-3, 0.01
    )
    speed = ControlTask(
        "speed",
        "at a constant speed",
        {},
        1,
        {"horizon": 25, "dt": 0.04},
        QuadraticCost(terminal=None),
        figure="control:crank",
    )
    kinds = ("driven", "dependent", "controlled", "control-trials")
    more = {"notes": ("A note.",), "trials": (speed,)}
    return chapter(name, (asked(made, (loop,)),), kinds, references, **more)


def reproduction(*chapters, **changes):
    """All three chapters, unless others are given."""
    made = Reproduction(
        chapters=chapters or (mass_spring_chapter(), pendulum_chapter(), crank_chapter()),
        command="mbdnode reproduce --seeds 3 --out somewhere",
        quick=False,
        seeds=3,
        seconds=90.0,
        versions={"mbdnode": "0.1.0"},
        machine="a machine",
        date="a day",
        recipes={"paper": "as the paper says", "best": "a law, by regression"},
    )
    return replace(made, **changes)
