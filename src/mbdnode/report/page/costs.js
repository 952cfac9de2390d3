"use strict";
// Error against seconds of training, a plot for each case; methods can be taken out.
(() => {
  const root = document.querySelector(".costs");
  if (!root) return;
  const study = JSON.parse(document.getElementById("costs-data").textContent);
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x"];
  const GLYPHS = ["\u25cf", "\u25a0", "\u25c6", "\u25b2", "\u25bc", "\u271a", "\u2716"];
  const OPEN = ["\u25cb", "\u25a1", "\u25c7", "\u25b3", "\u25bd", "\u2795", "\u2715"];
  const places = [...root.querySelectorAll(".plot")];
  const off = new Set(), offPrinted = new Set();
  let made = false;

  const symbol = (mark) => SYMBOLS[mark % SYMBOLS.length];

  function traces(point) {
    const color = look.shade(point.place), common = { type: "scatter", hoverinfo: "skip" };
    const line = (x, y, width, opacity) => ({ ...common, x, y, opacity, mode: "lines", line: { color: color, width } });
    const { seconds, error } = point;
    return [
      line([seconds, seconds + point.compiling], [error, error], 6, 0.25),
      line(point.secondsRange, [error, error], 1.2, 1),
      line([seconds, seconds], point.errorRange, 1.2, 1),
      { type: "scatter", x: [seconds], y: [error], mode: "markers", cliponaxis: false, name: point.title, text: [point.text], hovertemplate: "%{text}<extra></extra>", marker: { color: color, size: 11, symbol: symbol(point.mark), line: { color: look.style("paper"), width: 1 } } },
    ];
  }

  function printed(one) {
    const color = look.shade(one.place), about = { text: [one.text, one.text], hovertemplate: "%{text}<extra></extra>" };
    if (one.seconds === null) {
      return { type: "scatter", x: study.seconds, y: [one.error, one.error], mode: "lines", line: { color: color, width: 1.2, dash: "dot" }, ...about };
    }
    return { type: "scatter", x: [one.seconds], y: [one.error], mode: "markers", cliponaxis: false, marker: { color: color, size: 11, symbol: `${symbol(one.mark)}-open`, line: { width: 1.8 } }, ...about };
  }

  function draw() {
    made = true;
    const limits = (ends) => ends.map(Math.log10);
    study.cases.forEach((one, i) => {
      const shown = one.points.filter((point) => !off.has(point.place));
      const front = { type: "scatter", hoverinfo: "skip", ...one.front, mode: "lines", line: { color: look.style("ghost"), width: 1.4 } };
      const theirs = one.printed.filter((other) => !offPrinted.has(other.place));
      look.show(places[i], [front, ...theirs.map(printed), ...shown.flatMap(traces)], look.layout("training [s]", "mse", {
        ...look.roundOff(study.roundOff, study.errors[0]),
        xaxis: { type: "log", range: limits(study.seconds), exponentformat: "power", dtick: 1 },
        yaxis: { type: "log", range: limits(study.errors), exponentformat: "power", nticks: 7 },
      }));
    });
  }

  // A button for each method; open marks are the paper's own numbers.
  function add(methods, without, glyphs) {
    return methods.map((method) => {
      const chip = look.chip(method.title, true, () => {
        if (!without.delete(method.place)) without.add(method.place);
        if (made) draw();
        return !without.has(method.place);
      });
      chip.dataset.glyph = glyphs[method.mark % glyphs.length];
      root.querySelector(".chips").append(chip);
      return [chip, method.place];
    });
  }
  const chips = [...add(study.methods, off, GLYPHS), ...add(study.printed, offPrinted, OPEN)];
  const paint = () => chips.forEach(([chip, place]) => chip.style.setProperty("--chip", look.shade(place)));
  paint();
  look.dark.addEventListener("change", () => { paint(); if (made) draw(); });
  look.whenNear(root, draw);
})();
