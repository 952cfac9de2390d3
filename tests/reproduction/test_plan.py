"""What a request asks for, and what is refused before anything is computed."""

import dataclasses
import json
import re

import pytest

from mbdnode.config import from_dict, to_dict
from mbdnode.reproduction.cases import PAPER_CASES, get_case
from mbdnode.reproduction.config import configure, integrator_of
from mbdnode.reproduction.plan import Request, make_plan, quick, shortened


def test_whole_plan_has_every_column_of_every_case_once():
    plan = make_plan()
    found = [(r.config.case, r.config.model, integrator_of(r.config)) for r in plan.runs]
    columns = [
        (case.name, column.model, column.integrator)
        for case in map(get_case, PAPER_CASES)
        for column in case.hyperparameters
    ]
    assert sorted(found) == sorted(set(columns))


def test_folders_have_names_of_their_own_that_every_file_system_takes():
    names = [run.name for run in make_plan(seeds=2).runs]
    assert len(names) == len({name.lower() for name in names})
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)
    assert "double-pendulum-released-low-mbd-node-rk4-paper-1" in names
    assert "cart-pole-lstm-none-paper-0" in names


def test_every_seed_is_run_but_where_nothing_is_drawn():
    plan = make_plan(cases=["single-mass-spring"], models=["numerical", "mbd-node"], seeds=3)
    seeds = {}
    for run in plan.runs:
        seeds.setdefault((run.config.model, integrator_of(run.config)), []).append(run.config.seed)
    assert seeds.pop(("numerical", "rk4")) == [0]
    assert set(map(tuple, seeds.values())) == {(0, 1, 2)}


def test_same_request_in_another_order_is_the_same_plan():
    one = make_plan(cases=["cart-pole", "single-pendulum"], models=["fcnn", "mbd-node"])
    other = make_plan(cases=["single-pendulum", "cart-pole"], models=["mbd-node", "fcnn"])
    assert one == other
    stored = json.loads(json.dumps(to_dict(one.request)))
    assert from_dict(Request, stored) == one.request


def test_quick_plan_of_the_paper_is_one_short_run_of_each_case():
    plan = make_plan(quick=True, recipes=["paper"])
    assert [run.config.case for run in plan.runs] == list(PAPER_CASES)
    assert {run.config.model for run in plan.runs} == {"mbd-node"}
    assert all(run.shortened for run in plan.runs)
    first = plan.runs[0].config
    assert first.training.integrator == "lf2"
    assert first.training.epochs == 45  # A tenth of the table's.


@pytest.mark.parametrize(
    ("recipe", "model"), [("adam-lm", "mbd-node"), ("fast", "law"), ("best", "law")]
)
def test_recipe_with_one_setting_for_all_cases_is_one_run_of_each(recipe, model):
    plan = make_plan(recipes=["paper", recipe])
    mine = [run.config for run in plan.runs if run.config.recipe == recipe]
    assert [config.case for config in mine] == list(PAPER_CASES)
    assert {config.model for config in mine} == {model}
    made_by = [case.integrator.replace("analytic", "rk4") for case in map(get_case, PAPER_CASES)]
    assert [integrator_of(config) for config in mine] == made_by
    paper = [run for run in plan.runs if run.config.recipe == "paper"]
    assert paper == list(make_plan().runs)


def test_shuffled_recipe_is_planned_for_the_papers_columns_of_its_own_network():
    plan = make_plan(cases=["cart-pole"], recipes=["paper-shuffled"])
    assert {run.config.model for run in plan.runs} == {"mbd-node"}
    assert [run.config.training.integrator for run in plan.runs] == ["mp2", "rk4", "fe1"]


def test_regression_is_planned_under_no_network_s_name():
    plan = make_plan(quick=True, recipes=["best"])
    assert plan.request.models == ("law",)
    assert plan.runs[0].name == "single-mass-spring-law-rk4-best-0"
    both = make_plan(cases=["cart-pole"], recipes=["paper", "best"])
    assert both.request.models == ("mbd-node", "law", "lstm", "fcnn")
    assert {run.config.model for run in both.runs if run.config.recipe == "best"} == {"law"}


def test_demonstration_has_the_papers_network_a_baseline_and_the_law_of_every_system():
    plan = make_plan(quick=True)
    made: dict[str, list[tuple[str, str]]] = {}
    for run in plan.runs:
        made.setdefault(run.config.case, []).append((run.config.recipe, run.config.model))
    assert all(runs[-1] == ("best", "law") for runs in made.values())
    law, network = ("best", "law"), ("paper-shuffled", "mbd-node")
    systems = {case: runs[:-1] for case, runs in made.items() if runs != [law]}
    by_time = [network, ("paper", "fcnn")]
    assert systems == {
        "single-mass-spring": [network, ("paper", "lnn")],
        "single-mass-spring-damper": by_time,
        "triple-mass-spring-damper": by_time,
        "single-pendulum": by_time,
        "double-pendulum:released-low": by_time,
        "cart-pole": by_time,
        "slider-crank": [("adam-lm", "mbd-node")],
    }
    assert len({type(get_case(case).mechanism) for case in systems}) == 7
    # Networks are trained as their recipes say; only laws of samples have fewer of them.
    cut = {(run.config.case, run.config.model) for run in plan.runs if run.shortened}
    assert cut == {(name, "law") for name in PAPER_CASES if get_case(name).bounds}
    for run in plan.runs:
        if run.config.model != "law":
            case, recipe = run.config.case, run.config.recipe
            whole = configure(case, model=run.config.model, recipe=recipe)
            assert run.config.training == whole.training


def test_quick_plan_tries_a_controller_only_where_control_is_the_task():
    tried = {run.config.case: run.config.control_trials for run in make_plan(quick=True).runs}
    assert [case for case in tried if not tried[case]] == ["slider-crank"]
    assert all(run.config.control_trials for run in make_plan(recipes=["best"]).runs)


def test_demonstration_can_be_limited_and_is_repeated_from_its_request():
    plan = make_plan(quick=True, cases=["single-pendulum"], models=["mbd-node", "law"])
    assert [run.config.recipe for run in plan.runs] == ["paper-shuffled", "best"]
    request = from_dict(Request, json.loads(json.dumps(to_dict(plan.request))))
    assert request == plan.request


def test_quick_refinement_chooses_its_structure_and_iterates_less():
    whole = configure("cart-pole", recipe="adam-lm")
    short = quick(whole)
    assert short.structures == whole.structures
    assert short.training.epochs == whole.training.epochs
    assert short.training.validation == whole.training.validation
    assert short.training.refinement == whole.training.refinement // 3 == 20
    assert "a third" in shortened("adam-lm")
    assert "a fifth of the samples" in shortened("best")


@pytest.mark.parametrize("model", ["mbd-node", "hnn", "numerical"])
def test_quick_run_lets_the_learning_rate_fall_as_far_as_the_whole_one(model):
    whole = configure("single-mass-spring", model=model)
    short = quick(whole)
    last = [c.training.learning_rate * c.training.decay**c.training.epochs for c in (whole, short)]
    assert last[1] == pytest.approx(last[0])
    assert 1 <= short.training.epochs <= max(1, whole.training.epochs // 5)


def test_quick_law_has_a_fifth_of_the_samples_and_is_the_same_otherwise():
    whole = configure("slider-crank", recipe="best")
    short = quick(whole)
    assert 5 * short.samples == whole.samples
    assert dataclasses.replace(short, samples=whole.samples) == whole


def test_samples_go_to_the_cases_that_are_drawn():
    cases = ["cart-pole", "slider-crank"]
    plan = make_plan(cases=cases, models=["mbd-node"], samples=12_345)
    usual = make_plan(cases=cases, models=["mbd-node"])
    for run, other in zip(plan.runs, usual.runs, strict=True):
        drawn = run.config.case == "slider-crank"
        assert (run.config.samples == 12_345) == drawn
        assert (run.config == other.config) != drawn


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"cases": ["cart-pol"]}, r"case 'cart-pol'.*'cart-pole'"),
        ({"models": ["mbdnode"]}, r"model 'mbdnode'.*'mbd-node'"),
        ({"recipes": ["papr"]}, r"recipe 'papr'.*'paper'"),
        ({"seeds": 0}, r"seeds is 0"),
        ({"cases": ["slider-crank"], "models": ["lstm"]}, r"Nothing to run for 'slider-crank'"),
        (
            {"cases": ["cart-pole", "slider-crank"], "models": ["lstm"]},
            r"Nothing to run for 'slider-crank' with lstm.*only mbd-node",
        ),
        (
            {"cases": ["cart-pole"], "models": ["hnn", "lstm"]},
            r"Nothing to run with the model 'hnn'",
        ),
        ({"models": ["sonode"]}, r"mbdnode run CASE --model sonode"),
        ({"models": ["mbd-node"], "recipes": ["best"]}, r"recipe 'best': a law.*add 'law'"),
        ({"models": ["mbd-node"], "recipes": ["paper", "best"]}, r"recipe 'best'.*it gives none"),
        ({"models": ["law"]}, r"recipe 'paper': networks.*add 'mbd-node'"),
        ({"cases": ["cart-pole"], "samples": 100}, r"would change nothing.*slider-crank"),
        ({"samples": 0}, r"samples is 0"),
        (
            {"quick": True, "cases": ["slider-crank"], "models": ["fcnn"]},
            r"Nothing to run for 'slider-crank' with fcnn: there is only mbd-node, law",
        ),
        ({"quick": True, "models": ["hnn"]}, r"Nothing to run with the model 'hnn'.*paper, best"),
        ({"cases": ["slider-crank"], "samples": 3}, r"samples is 3"),
    ],
)
def test_what_cannot_be_met_is_refused(request_, message):
    with pytest.raises(ValueError, match=message):
        make_plan(**request_)
