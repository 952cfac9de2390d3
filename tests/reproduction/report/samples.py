"""Small reproductions to make reports of: three mechanisms, a few models, one that failed."""

from dataclasses import replace

from predictions import diverging, drifting, truth_of

from mbdnode.mechanisms import SingleMassSpring, SinglePendulum, SliderCrank
from mbdnode.reproduction.reference import Reference
from mbdnode.reproduction.report.chapters import Chapter, Entry, Exhibit, Probe, Reproduction, Study


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


def entry(name, model="mbd-node", integrator="rk4", errors=(1e-3,), recipe="paper", rate=0.01):
    """An entry whose seeds have these errors; a law has no epochs and no layers."""
    truth = truth_of(name)
    rows = tuple(row(seed, error) for seed, error in enumerate(errors))
    shown = drifting(truth, rate)
    if model == "law":
        return Entry(model, integrator, recipe, rows, truth, shown)
    rows = tuple({**one, "layers": [3, 256, 256, 1]} for one in rows)
    network = {"activation": "tanh", "initialization": "xavier"}
    losses = (1.0, 0.1, 0.01)
    return Entry(model, integrator, recipe, rows, truth, shown, losses, network=network)


def failed_entry(model="fcnn", reason="the worker died twice"):
    """An entry of which no run came to an end."""
    rows = tuple({"seed": s, "outcome": "failed", "status": reason} for s in range(2))
    return Entry(model, "-", "paper", rows)


def chapter(name, entries, kinds=(), references=(), **changes):
    """A chapter with one figure of each of these kinds."""
    mechanisms = {
        "single-mass-spring": SingleMassSpring(),
        "single-pendulum": SinglePendulum(),
        "slider-crank": SliderCrank(),
    }
    made = Chapter(
        name=name,
        title=name.replace("-", " ").capitalize(),
        source="paper, a section",
        mechanism=mechanisms[name],
        parameters={},
        train_end_s=0.0 if name == "slider-crank" else 2.0,
        references=tuple(references),
        hyperparameters=({"model": "mbd-node", "integrator": "rk4", "epochs": 350, "decay": 0.98},),
        hyperparameter_label=f"tab:hyper_{name}",
        exhibits=tuple(Exhibit(f"fig: {name} {k}", k, f"The {k} of it.") for k in kinds),
        entries=tuple(entries),
    )
    return replace(made, **changes)


def probes(truth):
    """Two other starts and a random force."""
    other = drifting(truth, 0.02)
    return (
        Probe("start-1", "from (1, 0)", truth, other, 1e-3, 0.02),
        Probe("start-2", "from (-1, 0)", truth, diverging(truth), None, None),
        Probe("random-force", "under a random force", truth, other, 2e-3, 0.2),
    )


def asked(made, found):
    """An entry with probes, whose rows say the same."""
    errors = {probe.name: {"mse": probe.mse, "nrmse": probe.nrmse} for probe in found}
    rows = tuple({**one, "probes": errors} for one in made.rows)
    return replace(made, probes=tuple(found), rows=rows)


def pendulum_chapter(errors=(1e-3, 2e-3, 4e-3)):
    """With a model that reproduces, one that explodes and one that failed."""
    name = "single-pendulum"
    truth = truth_of(name)
    good = asked(entry(name, errors=errors), probes(truth))
    studies = tuple(Study(p.name, p.title, "fig: a study") for p in good.probes)
    rows = ({**row(0, None), "rollout": "diverged (NaN or Inf)"},)
    wild = Entry("lstm", "-", "paper", rows, truth, diverging(truth))
    references = (
        Reference("mbd-node", "rk4", 2e-3, "a table"),
        Reference("lstm", "-", 3.4e-3, "a table"),
        Reference("fcnn", "-", 8e-1, "a table"),
        Reference("mbd-node", "rk4", 800.0, "another table", "train_seconds"),
    )
    kinds = ("over-time", "phase", "starts", "forced", "forward-pass-forces")
    return chapter(name, (good, wild, failed_entry()), kinds, references, studies=studies)


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
    return chapter(name, entries, ("system", "phase-energy", "forward-pass"), references)


def crank_chapter():
    """Driven all the time, without a training range."""
    name = "slider-crank"
    references = (Reference("mbd-node", "rk4", 3.2e-2, "a table", incomparable="Another size."),)
    made = entry(name, errors=(5.0,))
    loop = Probe("speed", "at a constant speed", made.truth, made.prediction, 1e-3, 0.01)
    setting = "25 steps of 0.04 s; terminal cost: none"
    studies = (Study("speed", "at a constant speed", "control:crank", setting),)
    kinds = ("driven", "dependent", "controlled", "control-trials")
    entries = (asked(made, (loop,)),)
    return chapter(name, entries, kinds, references, notes=("A note.",), studies=studies)


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
