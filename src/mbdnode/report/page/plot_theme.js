"use strict";
// What all plots share: colors by place, the theme's own, axes.
const look = (() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const coarse = window.matchMedia("(pointer: coarse)");
  const LIGHT = ["#24618e", "#d9772b", "#2c8567", "#a54a7d", "#9a7b13", "#6c6fb5", "#8a4b2d", "#3f87a1", "#c0426b", "#5d6b2f"];
  const DARK = ["#6fb0e0", "#f09a55", "#5cc19a", "#d887b4", "#d9bd58", "#a3a6ea", "#d09a7c", "#8fd0e6", "#f08aa8", "#b3c27a"];

  const style = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // A color by its place among those of the figures.
  function shade(place) {
    const colors = dark.matches ? DARK : LIGHT;
    return colors[place % colors.length];
  }

  function layout(more) {
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: style("ink") },
      margin: { l: 0, r: 0, t: 0, b: 0 }, showlegend: false, hovermode: "closest",
      hoverlabel: { bgcolor: style("paper"), font: { color: style("ink") } },
      // A finger on a plot scrolls the page.
      dragmode: coarse.matches ? false : "zoom",
      ...more,
    };
  }

  function show(target, traces, figure) {
    Plotly.react(target, traces, figure, { responsive: true, displaylogo: false, displayModeBar: false });
  }

  // Once, shortly before an element comes into view.
  function whenNear(element, act) {
    new IntersectionObserver((seen, watcher) => {
      if (!seen.some((entry) => entry.isIntersecting)) return;
      watcher.disconnect();
      act();
    }, { rootMargin: "300px" }).observe(element);
  }

  // A button that is on or off.
  function chip(text, on, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "chip";
    button.textContent = text;
    button.setAttribute("aria-pressed", String(on));
    button.addEventListener("click", () => button.setAttribute("aria-pressed", String(act())));
    return button;
  }

  return { dark, style, shade, layout, show, whenNear, chip };
})();
