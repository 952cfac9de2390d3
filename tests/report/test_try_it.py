"""The section "Try it" of reports: it moves in one file, or says why it does not."""

from contextlib import contextmanager
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from predictions import truth_of
from reproduction.report.samples import chapter, entry, reproduction
from workflow.test_report import held_out, off_by, story_of

import mbdnode as mbd
from mbdnode.mechanisms import SinglePendulum
from mbdnode.multibody import AccelerationFunction
from mbdnode.report import playground_html
from mbdnode.report.playground import Play
from mbdnode.report.playground_html import make_try_it, playground_scripts
from mbdnode.reproduction.report import write_report
from mbdnode.workflow.report.page import write_fit_page


def pendulum_play(function=None, label="law"):
    """A pendulum and what was learned of it: a thousandth weaker, unless another is given."""
    pendulum = SinglePendulum()
    weaker = lambda t, q, v, u, mu: -0.999 * mu["g"] / mu["L"] * jnp.sin(q)  # noqa: E731
    names = {"inputs": pendulum.inputs, "parameters": pendulum.parameters}
    system = AccelerationFunction(function or weaker, pendulum.coordinates, **names)
    return Play("A pendulum", "pendulum", system, label, {"theta": 0.5}, truth=pendulum)


@pytest.fixture(scope="module")
def section():
    return make_try_it(pendulum_play(), "fit")


@contextmanager
def one_export(section):
    """The export of a pendulum, which all pages here carry, is made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            playground_html, "make_playground", lambda play, key: _renamed(section.playground, key)
        )
        yield


def _renamed(playground, key):
    """The same playground under another key."""
    own = lambda name: name if name is None else name.replace("fit-", f"{key}-")  # noqa: E731
    systems = [{**one, "program": own(one["program"])} for one in playground.data["systems"]]
    data = {**playground.data, "systems": systems, "functions": own(playground.data["functions"])}
    return replace(
        playground, data=data, programs={own(name): p for name, p in playground.programs.items()}
    )


@pytest.fixture(scope="module")
def fit_page(section, tmp_path_factory):
    """The page of a fit with a film and a playground, which share a script."""
    truth = truth_of("single-pendulum")
    runs = [held_out(truth, off_by(truth, 0.05), recorded=("theta", "theta_dot"))]
    path = tmp_path_factory.mktemp("fit") / "report.html"
    with one_export(section):
        write_fit_page(story_of(SinglePendulum(), runs, play=pendulum_play()), path)
    return path


@pytest.fixture(scope="module")
def paper_page(section, tmp_path_factory):
    """The page of a reproduction with two chapters."""
    names = ("single-pendulum", "single-mass-spring")
    chapters = [replace(chapter(n, (entry(n),)), play=pendulum_play()) for n in names]
    with one_export(section):
        return write_report(reproduction(*chapters), tmp_path_factory.mktemp("paper"))


MOVING = {"prefers_reduced_motion": "no-preference"}


def moved(tab, place):
    """Whether the drawing of a playground changes, once it is in sight."""
    root = f"document.querySelectorAll('.playground')[{place}]"
    tab.ask(f"{root}.scrollIntoView({{behavior: 'instant'}}), 0")
    tab.wait_for(f"Boolean({root}.playground)")
    first = tab.ask(f"{root}.querySelector('.stage:last-child canvas').toDataURL()")
    begun = float(tab.ask(f"{root}.dataset.time"))
    tab.wait_for(f"Number({root}.dataset.time) > {begun + 0.2}")
    return tab.ask(f"{root}.querySelector('.stage:last-child canvas').toDataURL()") != first


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (420, "dark")])
def test_report_of_a_fit_moves_without_errors_and_without_a_network(
    browser, fit_page, width, scheme
):
    with browser.open(fit_page, width, 900, prefers_color_scheme=scheme, **MOVING) as tab:
        assert moved(tab, 0)
        assert tab.ask("document.documentElement.scrollWidth <= innerWidth")
        assert tab.ask("document.querySelector('nav a[href=\"#try-it\"]').textContent") == "Try it"
        assert tab.problems == []
        assert tab.requests == [fit_page.as_uri()]


def test_model_in_a_report_computes_what_python_computes(browser, fit_page):
    run = mbd.simulate(pendulum_play().system, 0.01 * np.arange(201), {"theta": 0.5})
    with browser.open(fit_page, 1400, 900, prefers_reduced_motion="reduce") as tab:
        root = "document.querySelector('.playground')"
        tab.ask(f"{root}.scrollIntoView({{behavior: 'instant'}}), 0")
        tab.wait_for(f"Boolean({root}.playground)")
        found = tab.ask(f"""{{
            const m = {root}.playground.motion;
            for (let i = 0; i < 200; i++) m.step();
            [m.main.state.q[0], m.main.state.v[0]];
        }}""")
    # Round-off of two seconds; the goal of the playground is 1e-9.
    np.testing.assert_allclose(found, [run.q[-1, 0], run.v[-1, 0]], atol=1e-12)


def test_every_chapter_of_a_reproduction_has_a_playground_of_its_own(browser, paper_page):
    with browser.open(paper_page, 1400, 900, **MOVING) as tab:
        assert tab.ask("document.querySelectorAll('.chapter .playground').length") == 2
        # A program is made for who comes near.
        assert tab.ask("Boolean(document.querySelectorAll('.playground')[1].playground)") is False
        assert moved(tab, 0)
        assert moved(tab, 1)
        assert tab.problems == []
        assert tab.requests == [paper_page.as_uri()]


def test_model_that_only_continues_a_motion_has_a_sentence():
    model = mbd.FCNN.for_system(SinglePendulum())
    made = make_try_it(Play("No", "no", model, "FCNN", {"theta": 1.0}), "fit")
    assert made.playground is None
    assert made.text.startswith("The FCNN cannot run in this page. FCNN continues a recorded")
    assert "playground" not in made.html
    assert playground_scripts([made]) == ""


def test_primitive_that_cannot_be_printed_is_named_in_the_report():
    odd = lambda t, q, v, u, mu: jax.lax.lgamma(q)  # noqa: E731
    made = make_try_it(pendulum_play(odd), "fit")
    assert made.playground is None
    assert "'lgamma', which the export does not know" in made.text


def test_mistake_of_ours_costs_the_section_and_not_the_report(monkeypatch):
    def broken(play, key):
        raise KeyError("<b>")

    monkeypatch.setattr(playground_html, "make_playground", broken)
    with pytest.warns(UserWarning, match="was left out: KeyError"):
        made = make_try_it(pendulum_play(), "fit")
    assert made.playground is None
    assert "&lt;b&gt;" in made.html
