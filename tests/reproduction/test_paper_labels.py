"""Every figure and table of the paper has its counterpart, by the paper's own labels."""

import os
import re
from pathlib import Path

import pytest

from mbdnode.reproduction.cases import CASES
from mbdnode.reproduction.chapters import gather
from mbdnode.reproduction.config import integrator_of
from mbdnode.reproduction.figures import DIAGRAM, DRAWERS
from mbdnode.reproduction.plan import make_plan
from mbdnode.reproduction.report import case_tables, diagram, shared_tables
from mbdnode.reproduction.settings_tables import cases_table
from mbdnode.reproduction.tables import mass_spring_table

FIGURES = """
fig: MNODE_con, fig: MNODE_un, fig:single_mass_spring, fig:sms_x_V_time, fig:sms_phase_energy,
fig:smsd_figure, fig:smsd_xvt, fig:smsd_phase, fig:tmsd_figure, fig:tmsd_xvt, fig:tmsd_phase,
fig:single_pendulum, fig:sp_xvt, fig:sp_phase, fig: sp_initialization, fig: sp_force,
fig:double_pendulum, fig:dp_xvt, fig:dp_phase, fig:cart-pole, fig:cart-pole_x_v_t,
fig:cart-pole_phrase, fig:cart-pole_con_loss, fig:slider_crank, fig:slider_crank_dyanmics,
fig:slider_crank_full
"""
TABLES = """
tab:model_architecture, tab:methods_comparison, tab: tests, tab: model_errors, tab:sms_test,
tab:hyper_sms, tab:hyper_smsd, tab:hyper_tmsd, tab:hyper_sp, tab:hyper_dp, tab:hyper_cp,
tab:hyper_sc, tab:time_cost
"""
# Of control, and of parameters among the inputs, that the paper does not show.
OURS = {
    "control:cart-pole",
    "control:slider-crank",
    "parameters:over-time",
    "parameters:lengths",
    "friction:over-time",
    "friction:coefficients",
    "vehicle:over-time",
    "vehicle:parameters",
}


def names(text):
    return {name.strip() for name in text.replace("\n", " ").split(",")}


def test_every_figure_has_a_counterpart_that_can_be_drawn():
    exhibits = [exhibit for case in CASES.values() for exhibit in case.exhibits]
    assert {e.label for e in exhibits} == names(FIGURES) | OURS
    assert {e.kind for e in exhibits} <= {*DRAWERS, DIAGRAM}


def test_every_system_and_forward_pass_has_a_drawing_with_its_names():
    exhibits = [exhibit for case in CASES.values() for exhibit in case.exhibits]
    for exhibit in exhibits:
        drawn = diagram(exhibit.label)
        assert bool(drawn) == (exhibit.kind in (DIAGRAM, "system"))
        assert not drawn or "</svg>" in drawn


@pytest.fixture(scope="module")
def untried():
    """A report of which no run came to anything: what is written does not hang on that."""
    plan = make_plan()
    failed = {}
    for run in plan.runs:
        row = {name: getattr(run.config, name) for name in ("case", "model", "recipe")}
        row |= {"integrator": integrator_of(run.config), "seed": 0}
        failed[run.name] = {**row, "outcome": "failed", "status": "not tried"}
    return gather(plan, failed, Path(), command="")


def test_every_table_has_a_counterpart(untried):
    tables = [*case_tables(untried), *shared_tables(untried)]
    assert {table.label for table in tables if table.label} == names(TABLES)
    assert [table.name for table in tables if not table.label] == ["cost-quality"]


def test_mass_spring_table_has_the_rows_of_the_paper(untried):
    rows = mass_spring_table(untried.chapters[0]).rows
    printed = [
        ("MBD-NODE", "Generalized", "LF2", 1.3e-6),
        ("HNN", "Generalized", "RK4", 1.9e-2),
        ("LNN", "Cartesian", "RK4", 9.1e-6),
        ("Numerical", "Cartesian", "RK4", 2.0e-3),
        ("MBD-NODE", "Cartesian", "RK4", 9.2e-1),
    ]
    assert [(row[0], row[-2], row[1], row[-4]) for row in rows] == printed


def test_tests_table_has_the_models_of_the_paper(untried):
    found = {row[0]: row[1] for row in cases_table(untried).rows}
    assert found["Single mass-spring system"] == "MBD-NODE, HNN, LNN"
    assert found["Cart-pole under model predictive control"] == "MBD-NODE"
    assert found["Slider-crank mechanism"] == "MBD-NODE"
    others = ("Single mass-spring-damper system", "Cart-pole system", "Damped single pendulum")
    assert {found[title] for title in others} == {"MBD-NODE, LSTM, FCNN"}


def test_the_list_is_the_papers_own():
    beside = Path(__file__).parents[3] / "shared" / "paper" / "mbd-node.tex"
    paper = Path(os.environ.get("MBDNODE_PAPER", beside))
    if not paper.is_file():
        pytest.skip(
            f"there is no {paper}: put the LaTeX source of arXiv 2407.08664 there, or name the "
            "file in MBDNODE_PAPER"
        )
    labels = re.findall(r"\\label\{((?:fig|tab):[^}]*)\}", paper.read_text())
    assert set(labels) == names(FIGURES) | names(TABLES)
