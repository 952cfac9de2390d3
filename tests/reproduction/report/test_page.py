"""The page in a browser: it asks for nothing, complains of nothing, moves, and fits."""

import pytest

DESKTOP, PHONE = (1280, 900), (390, 844)
WIDE, NARROW = (1400, 900), (420, 800)


@pytest.fixture
def page(written):
    return written / "report.html"


# Everything that sticks out to the right of the screen, but for what scrolls in its own box.
_STICKING_OUT = """
    [...document.querySelectorAll('body *')]
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
      .filter((e) => !e.closest('.table-box, .picture-box, .plot-box, nav ul, .command, .skip'))
      .filter((e) => !e.closest('svg'))
      .map((e) => e.outerHTML.slice(0, 100))
"""


def scroll_through(tab):
    """Show every figure, so that all plots are made."""
    for number in range(tab.ask("document.querySelectorAll('.plot').length")):
        tab.ask(f"document.querySelectorAll('.plot')[{number}].scrollIntoView()")
        tab.wait_for(
            f"document.querySelectorAll('.plot')[{number}].classList.contains('js-plotly-plot')"
        )


@pytest.fixture(scope="module")
def drawn(browser, written):
    """The page with all of its plots; who clicks clicks again."""
    with browser.open(written / "report.html", *DESKTOP) as tab:
        scroll_through(tab)
        yield tab


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "dark"), (PHONE, "light")])
def test_page_needs_no_network_has_no_errors_and_does_not_overflow(browser, page, size, scheme):
    with browser.open(page, *size, prefers_color_scheme=scheme) as tab:
        scroll_through(tab)
        assert tab.problems == []
        assert tab.requests == [page.as_uri()]
        assert tab.ask("document.documentElement.scrollWidth <= innerWidth")
        assert tab.ask(_STICKING_OUT) == []


def test_film_plays_when_it_comes_into_view_and_stops_on_demand(browser, page):
    with browser.open(page, *DESKTOP) as tab:
        tab.show(".film canvas")
        tab.wait_for("Number(document.querySelector('.film canvas').dataset.time) > 0.05")
        first = tab.picture()
        tab.wait_for("Number(document.querySelector('.film canvas').dataset.time) > 0.4")
        assert tab.picture() != first
        tab.ask("document.querySelector('.film .play').click()")
        stopped = tab.ask("document.querySelector('.film canvas').dataset.time")
        tab.ask("new Promise((resolve) => setTimeout(resolve, 200))")
        assert tab.ask("document.querySelector('.film canvas').dataset.time") == stopped


def test_film_draws_another_picture_at_another_time(browser, page):
    with browser.open(page, *DESKTOP, prefers_reduced_motion="reduce") as tab:
        tab.show(".film canvas")
        drawn = "document.querySelector('.film canvas').toDataURL()"
        first = tab.ask(drawn)
        tab.ask("""{
            const slider = document.querySelector('.film .time');
            slider.value = 500;
            slider.dispatchEvent(new Event('input'));
        }""")
        assert tab.ask(drawn) != first
        assert tab.ask("Number(document.querySelector('.film canvas').dataset.time)") == 3.0


def test_film_waits_for_whoever_asks_for_calm(browser, page):
    with browser.open(page, *DESKTOP, prefers_reduced_motion="reduce") as tab:
        tab.show(".film canvas")
        tab.ask("new Promise((resolve) => setTimeout(resolve, 400))")
        assert tab.ask("document.querySelector('.film canvas').dataset.time") == "0.0000"
        tab.ask("document.querySelector('.film .play').click()")
        tab.wait_for("Number(document.querySelector('.film canvas').dataset.time) > 0.05")


def test_film_says_that_a_prediction_has_ended(browser, page):
    with browser.open(page, *DESKTOP, prefers_reduced_motion="reduce") as tab:
        tab.ask("""{
            const film = document.querySelector('#case-single-pendulum .film');
            film.querySelector('.prediction').value = '1';
            film.querySelector('.prediction').dispatchEvent(new Event('change'));
            film.querySelector('.time').value = 900;
            film.querySelector('.time').dispatchEvent(new Event('input'));
        }""")
        state = "document.querySelector('#case-single-pendulum .film .state').textContent"
        assert tab.ask(state) == "the prediction has ended"


def chips(tab, box):
    return tab.ask(f"[...document.querySelectorAll('{box} .chip')].map((c) => c.textContent)")


def gone(tab, box, chip):
    """By how many lines a click makes the plot poorer, until the next click."""
    count = f"document.querySelector('{box} .plot').data.length"
    click = f"document.querySelectorAll('{box} .chip')[{chip}].click()"
    before = tab.ask(count)
    tab.ask(click)
    without = before - tab.ask(count)
    tab.ask(click)
    assert tab.ask(count) == before
    return without


def test_model_can_be_taken_out_of_a_plot_and_put_back(drawn):
    box = "#case-single-mass-spring .paper-figure:last-of-type"
    assert chips(drawn, box)[:2] == ["MBD-NODE LF2, paper", "MBD-NODE YS4, paper"]
    # Its squared error and its loss.
    assert gone(drawn, box, 0) == 2


def test_tables_banner_and_marks_are_there(drawn):
    text = drawn.ask("document.body.innerText")
    assert "Quick settings." in text
    assert "mbdnode reproduce --seeds 3 --out somewhere" in text
    for title in (
        "Errors of all models on all cases",
        "Seconds of training",
        "Single pendulum: studies",
    ):
        assert title in text
    rows = "document.querySelectorAll('#summary tbody tr').length"
    assert drawn.ask(rows) == 7
    assert drawn.ask("document.querySelectorAll('img:not([alt])').length") == 0
    assert drawn.ask("[...document.images].every((i) => i.alt.length > 5)")


def test_every_figure_of_the_page_is_shown(drawn):
    drawn.ask("document.querySelectorAll('img').forEach((i) => { i.loading = 'eager'; })")
    drawn.wait_for("[...document.images].every((i) => i.complete && i.naturalWidth > 300)")
    # The system, by its parts; all others as plots, with one of errors in each chapter.
    assert drawn.ask("document.images.length") == 1
    assert drawn.ask("document.querySelectorAll('.chapter .plot').length") == 13


def test_method_can_be_taken_out_of_the_study(drawn):
    assert chips(drawn, "#costs") == [
        "Pareto front",
        "MBD-NODE, printed in the paper",
        "MBD-NODE, paper",
        "law, best",
        "LSTM, printed in the paper",
        "FCNN, printed in the paper",
    ]
    # A mark has four traces: itself, two bars, and the time to compile; there are four of them.
    assert gone(drawn, "#costs", 2) == 16
    # The slider-crank's cannot be compared, and is not drawn.
    assert gone(drawn, "#costs", 1) == 2


def test_study_has_its_place_in_the_navigation_and_its_table(drawn):
    assert drawn.ask("document.querySelector('nav a[href=\"#costs\"]').textContent") == (
        "What accuracy costs"
    )
    assert drawn.ask("document.querySelectorAll('#costs tbody tr').length") == 7
    assert drawn.ask("document.querySelectorAll('#costs .found li').length") == 3


# The verdicts of tables that are shown, with how far each lies from the edges of the screen and of
# the box that its table scrolls in.
_VERDICTS = """
    [...document.querySelectorAll('td.verdict')].filter((cell) => cell.offsetParent).map((cell) => {
      const own = cell.getBoundingClientRect();
      const box = cell.closest('.table-box').getBoundingClientRect();
      return Math.min(own.left - box.left, box.right - own.right, innerWidth - own.right);
    })
"""


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_verdicts_are_seen_without_scrolling_to_the_side(browser, page, size):
    with browser.open(page, *size) as tab:
        room = tab.ask(_VERDICTS)
        # Of the error table, of its parts in the chapters, and of the studies.
        assert len(room) >= 14
        assert min(room) >= -1


def test_round_off_has_a_band_in_the_plots(drawn):
    for plot in ("#costs .plot", "#case-single-mass-spring .paper-figure:last-of-type .plot"):
        shown = f"document.querySelector('{plot}').layout"
        assert "round-off" in drawn.ask(f"{shown}.annotations.map((a) => a.text)")
        tops = drawn.ask(f"{shown}.shapes.map((s) => s.y1)")
        assert any(abs(top / 1e-24 - 1) < 1e-6 for top in tops)
