"use strict";
// The lines of the report's figures, in which one can zoom and read values; made when they come
// into view. A button for each name that several of a figure have takes its lines out.
(() => {
  const coarse = window.matchMedia("(pointer: coarse)"), style = parts.color;
  const key = (letter, i) => letter + (i ? i + 1 : "");
  let colors = parts.palette();
  parts.dark.addEventListener("change", () => { colors = parts.palette(); });
  const color = (named) => colors[named] ?? named;

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

  // Once, shortly before an element comes into view.
  function whenNear(element, act) {
    new IntersectionObserver((seen, watcher) => {
      if (!seen.some((entry) => entry.isIntersecting)) return;
      watcher.disconnect();
      act();
    }, { rootMargin: "300px" }).observe(element);
  }

  class Plot {
    constructor(root) {
      const figure = JSON.parse(root.nextElementSibling.textContent);
      Object.assign(this, { root, figure, off: new Set(), made: false });
      root.style.aspectRatio = `${this.figure.width} / ${this.figure.height}`;
      this.buildChips();
      parts.dark.addEventListener("change", () => { this.paint(); if (this.made) this.draw(); });
      whenNear(root, () => { this.made = true; this.draw(); });
    }
    buildChips() {
      const names = Object.keys(this.figure.names), box = this.root.parentElement.parentElement.querySelector(".chips");
      this.chips = names.length < 2 ? [] : names.map((name) => {
        const chip = document.createElement("button");
        Object.assign(chip, { type: "button", className: "chip", textContent: name });
        chip.setAttribute("aria-pressed", "true");
        chip.addEventListener("click", () => {
          if (!this.off.delete(name)) this.off.add(name);
          chip.setAttribute("aria-pressed", String(!this.off.has(name)));
          if (this.made) this.draw();
        });
        box.append(chip);
        return [chip, this.figure.names[name]];
      });
      this.paint();
    }
    paint() { for (const [chip, named] of this.chips) chip.style.setProperty("--chip", color(named)); }
    traces(panel, i) {
      return panel.lines.filter((line) => !this.off.has(line.name)).map((line) => ({
        type: "scatter", x: line.x, y: line.y, name: line.name, xaxis: key("x", i), yaxis: key("y", i), opacity: line.opacity, cliponaxis: !line.mark,
        mode: [line.dash && "lines", line.mark && "markers"].filter(Boolean).join("+") || "none",
        line: { color: color(line.color), width: 1.2 * line.width, dash: line.dash || "solid", shape: line.shape },
        marker: { color: color(line.color), size: line.size, symbol: line.mark || "circle" },
        ...(line.text ? { hovertemplate: "%{text}<extra></extra>", text: line.x.map(() => line.text) } : line.name ? {} : { hoverinfo: "skip" }),
      }));
    }
    axis(axis, domain, anchor, gap) {
      return {
        domain, anchor, type: axis.type, range: axis.range, showticklabels: axis.ticks, gridcolor: style("line"), linecolor: style("line"), zeroline: false,
        title: { text: axis.label, standoff: gap }, ...(axis.type === "log" ? { exponentformat: "power", ...(axis.range[1] - axis.range[0] < 7 ? { dtick: 1 } : { nticks: 6 }) } : {}),
      };
    }
    shades(panel, i) {
      return panel.shades.map(({ corners: [x0, y0, x1, y1], color: named }) => (
        { type: "rect", xref: key("x", i), yref: key("y", i), x0, x1, y0, y1, fillcolor: color(named), opacity: 0.6, line: { width: 0 }, layer: "below" }));
    }
    words(panel) {
      const [left, right] = panel.x, [low, high] = panel.y, size = { font: { size: 11, color: style("ink") }, showarrow: false, xref: "paper", yref: "paper" };
      const title = { ...size, x: left, y: high, xanchor: "left", yanchor: "bottom", align: "left", text: panel.title.replaceAll("\n", "<br>") };
      return [title, ...panel.words.map((text) => ({ ...size, x: right, y: low + 0.01, xanchor: "right", yanchor: "bottom", text, font: { size: 10, color: style("muted") } }))];
    }
    draw() {
      const { panels } = this.figure, axes = {};
      panels.forEach((panel, i) => {
        axes[key("xaxis", i)] = this.axis(panel.across, panel.x, key("y", i), 6);
        axes[key("yaxis", i)] = this.axis(panel.up, panel.y, key("x", i), 4);
      });
      const figure = layout({
        ...axes, shapes: panels.flatMap((panel, i) => this.shades(panel, i)), annotations: panels.flatMap((panel) => this.words(panel)),
      });
      const traces = panels.flatMap((panel, i) => this.traces(panel, i));
      Plotly.react(this.root, traces, figure, { responsive: true, displaylogo: false, displayModeBar: false });
    }
  }
  document.querySelectorAll(".plot").forEach((root) => new Plot(root));
})();
