"""Every figure and table of the paper has its counterpart, by the paper's own labels."""

import re
from pathlib import Path

import pytest

from mbdnode.experiments import CASES
from mbdnode.experiments.material import gather
from mbdnode.experiments.plan import Plan, Request
from mbdnode.report.exhibits import DRAWERS
from mbdnode.report.paper_tables import error_table, mass_spring_table, time_table
from mbdnode.report.setting_tables import architecture_table, cases_table, methods_table

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
# Of control that the paper does not have.
OURS = {"control:cart-pole", "control:slider-crank"}


def names(text):
    return {name.strip() for name in text.replace("\n", " ").split(",")}


def test_every_figure_has_a_counterpart_that_can_be_drawn():
    exhibits = [exhibit for case in CASES.values() for exhibit in case.exhibits]
    assert {e.label for e in exhibits} == names(FIGURES) | OURS
    assert {e.kind for e in exhibits} <= set(DRAWERS)


def test_every_table_has_a_counterpart(tmp_path):
    nothing = Plan(Request(cases=(), models=()), ())
    empty = gather(nothing, {}, tmp_path, command="")
    makers = (error_table, time_table, cases_table, architecture_table, methods_table)
    made = {make(empty).label for make in makers}
    own = {case.hyperparameters[0].source for case in CASES.values()}
    assert made | own | {"tab:sms_test"} == names(TABLES)
    assert mass_spring_table.__doc__


def test_the_list_is_the_papers_own():
    paper = Path(__file__).parents[3] / "shared" / "paper" / "mbd-node.tex"
    if not paper.is_file():
        pytest.skip("the paper's source is not beside the repository")
    labels = re.findall(r"\\label\{((?:fig|tab):[^}]*)\}", paper.read_text())
    assert set(labels) == names(FIGURES) | names(TABLES)
