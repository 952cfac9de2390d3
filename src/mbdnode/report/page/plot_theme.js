"use strict";
// What all plots share: colors by place, the theme's own, axes.
const look = (() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const coarse = window.matchMedia("(pointer: coarse)");
  const LIGHT = ["#24618e", "#d9772b", "#2c8567", "#a54a7d", "#9a7b13", "#6c6fb5", "#8a4b2d", "#3f87a1", "#c0426b", "#5d6b2f"];
  const DARK = ["#6fb0e0", "#f09a55", "#5cc19a", "#d887b4", "#d9bd58", "#a3a6ea", "#d09a7c", "#8fd0e6", "#f08aa8", "#b3c27a"];

  const style = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // A method's color by its place; its second and third integrator are paler.
  function shade(place, variant = 0) {
    const colors = dark.matches ? DARK : LIGHT;
    const alpha = ["", "a6", "73", "52"][Math.min(variant, 3)];
    return colors[place % colors.length] + alpha;
  }

  function layout(xTitle, yTitle, more = {}) {
    const axis = { gridcolor: style("line"), zeroline: false, linecolor: style("line"), automargin: true };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: style("ink") },
      margin: { l: 48, r: 8, t: 8, b: 38 }, showlegend: false, hovermode: "closest",
      hoverlabel: { bgcolor: style("paper"), font: { color: style("ink") } },
      // A finger on a plot scrolls the page.
      dragmode: coarse.matches ? false : "zoom",
      ...more,
      xaxis: { ...axis, title: { text: xTitle, standoff: 6 }, ...more.xaxis },
      yaxis: { ...axis, title: { text: yTitle, standoff: 6 }, ...more.yaxis },
    };
  }

  // The band in which squared errors are round-off, on an axis of magnitudes that begins at `low`.
  function roundOff(end, low) {
    if (end === null) return {};
    return {
      shapes: [{ type: "rect", xref: "paper", yref: "y", x0: 0, x1: 1, y0: low, y1: end, fillcolor: style("line"), opacity: 0.55, line: { width: 0 }, layer: "below" }],
      annotations: [{ xref: "paper", yref: "y", x: 1, y: Math.log10(end), xanchor: "right", yanchor: "bottom", text: "round-off", showarrow: false, font: { size: 10, color: style("muted") } }],
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

  return { dark, style, shade, layout, roundOff, show, whenNear, chip };
})();
