"use strict";
// Plots that one can zoom and read values from, made when they come into view.
(() => {
  const chapters = JSON.parse(document.getElementById("chapters-data").textContent);
  const { dark, style, layout } = look;

  // Limits that the truth fills, however far a prediction goes.
  function view(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
    if (low > high) return undefined;
    const room = 0.15 * Math.max(high - low, 1e-9);
    return [low - room, high + room];
  }

  function fold(q, v) {
    const x = [], y = [];
    q.forEach((angle, i) => {
      const folded = angle === null ? null : ((((angle + Math.PI) % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI)) - Math.PI;
      if (x.length && folded !== null && x[x.length - 1] !== null && Math.abs(folded - x[x.length - 1]) > Math.PI) {
        x.push(null);
        y.push(null);
      }
      x.push(folded);
      y.push(v[i]);
    });
    return [x, y];
  }

  class Plots {
    constructor(root, curves) {
      Object.assign(this, { root, curves, made: false });
      this.on = curves.entries.map((entry) => entry.shown);
      this.column = root.querySelector(".column");
      this.pair = root.querySelector(".pair");
      this.buildChips();
      for (const [key, { title, unit }] of Object.entries(curves.columns)) this.column.add(new Option(`${title} [${unit}]`, key));
      curves.pairs.forEach((pair, i) => this.pair.add(new Option(curves.columns[pair.position].title, i)));
      this.column.addEventListener("change", () => this.time());
      this.pair.addEventListener("change", () => this.phase());
      dark.addEventListener("change", () => { this.paint(); if (this.made) this.all(); });
      look.whenNear(root, () => { this.made = true; this.all(); });
    }
    buildChips() {
      const box = this.root.querySelector(".chips");
      this.chips = this.curves.entries.map((entry, i) => {
        const chip = look.chip(`${entry.title}: ${entry.error}`, this.on[i], () => {
          this.on[i] = !this.on[i];
          if (this.made) this.all();
          return this.on[i];
        });
        box.append(chip);
        return chip;
      });
      this.paint();
    }
    paint() { this.chips.forEach((chip, i) => chip.style.setProperty("--chip", this.shade(i))); }
    shade(i) { return look.shade(this.curves.entries[i].place, this.curves.entries[i].variant); }
    all() {
      this.time();
      this.phase();
      this.error();
      if (this.root.querySelector('[data-plot="loss"]')) this.loss();
    }
    show(name, traces, figure) { look.show(this.root.querySelector(`[data-plot="${name}"]`), traces, figure); }
    split() {
      const { t, trainEnd } = this.curves;
      const after = trainEnd > 0 ? t.findIndex((time) => time > trainEnd * (1 + 1e-9)) : 0;
      return after < 0 ? t.length : after;
    }
    // Dashed inside the training range, dotted after it; both pieces meet in one point.
    lines(x, y, i) {
      const cut = this.split(), base = { mode: "lines", type: "scatter", name: this.curves.entries[i].title };
      const piece = (from, to, dash) => ({ ...base, x: x.slice(from, to), y: y.slice(from, to), line: { color: this.shade(i), width: 1.8, dash } });
      const pieces = [];
      if (cut > 0) pieces.push(piece(0, cut, "dash"));
      if (cut < x.length) pieces.push(piece(Math.max(cut - 1, 0), x.length, "dot"));
      return pieces;
    }
    range() {
      const { t, trainEnd } = this.curves;
      if (!(trainEnd > 0)) return {};
      return { shapes: [{ type: "rect", xref: "x", yref: "paper", x0: t[0], x1: trainEnd, y0: 0, y1: 1, fillcolor: style("shade"), line: { width: 0 }, layer: "below" }] };
    }
    chosen(make) { return this.curves.entries.flatMap((entry, i) => (this.on[i] ? make(entry, i) : [])); }
    truth(x, y) {
      return { x, y, mode: "lines", type: "scatter", name: "truth", line: { color: style("ghost"), width: 5 }, opacity: 0.6 };
    }
    time() {
      const { t, truth, columns } = this.curves, key = this.column.value, { title, unit } = columns[key];
      const traces = [this.truth(t, truth[key]), ...this.chosen((entry, i) => this.lines(t, entry.columns[key], i))];
      this.show("time", traces, layout("t [s]", `${title} [${unit}]`, { ...this.range(), hovermode: "x unified", yaxis: { range: view(truth[key]) }, xaxis: { range: [t[0], t[t.length - 1]] } }));
    }
    phase() {
      const { truth, columns, pairs } = this.curves, { position, velocity, isAngle } = pairs[Number(this.pair.value)];
      const turning = isAngle && truth[position].some((angle) => Math.abs(angle) > Math.PI);
      const place = (q, v) => (turning ? fold(q, v) : [q, v]);
      // Folding adds breaks, so that the split by row no longer holds: one dotted line then.
      const drawn = (entry, i) => {
        const [x, y] = place(entry.columns[position], entry.columns[velocity]);
        if (!turning) return this.lines(x, y, i);
        return [{ x, y, mode: "lines", type: "scatter", name: entry.title, line: { color: this.shade(i), width: 1.6, dash: "dot" } }];
      };
      const [x, y] = place(truth[position], truth[velocity]);
      const named = (key) => `${columns[key].title} [${columns[key].unit}]`;
      this.show("phase", [this.truth(x, y), ...this.chosen(drawn)], layout(named(position), named(velocity), { xaxis: { range: view(x) }, yaxis: { range: view(y) } }));
    }
    error() {
      // All round-off alike, in a band of its own.
      const { t, roundOff } = this.curves, low = roundOff / 1e3, amid = Math.sqrt(low * roundOff);
      const drawn = (value) => (value === null ? null : value < roundOff ? amid : value);
      const traces = this.chosen((entry, i) => [{ x: t, y: entry.squares.map(drawn), mode: "lines", type: "scatter", name: entry.title, line: { color: this.shade(i), width: 1.5 } }]);
      const values = traces.flatMap((trace) => trace.y).filter((value) => value !== null);
      const inBand = values.includes(amid), band = look.roundOff(inBand ? roundOff : null, low), range = this.range();
      // The least span that an axis of magnitudes shows well is a few decades.
      const top = Math.max(...values, roundOff * 1e3);
      const ends = inBand ? { range: [Math.log10(low), Math.log10(top) + 0.5] } : {};
      const shapes = [...(range.shapes || []), ...(band.shapes || [])];
      this.show("error", traces, layout("t [s]", "", { ...band, shapes, yaxis: { type: "log", exponentformat: "e", nticks: 7, ...ends }, xaxis: { range: [t[0], t[t.length - 1]] } }));
    }
    loss() {
      const traces = this.chosen((entry, i) => [{ x: entry.losses.epochs, y: entry.losses.values, mode: "lines", type: "scatter", name: entry.title, line: { color: this.shade(i), width: 1.5 } }]);
      this.show("loss", traces, layout("epoch", "", { yaxis: { type: "log", exponentformat: "e", nticks: 7 } }));
    }
  }

  document.querySelectorAll(".plots").forEach((root) => {
    new Plots(root, chapters[Number(root.dataset.chapter)].curves);
  });

  // The case that is being read is marked in the navigation.
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.getAttribute("href").slice(1), a]));
  const marker = new IntersectionObserver((seen) => {
    for (const entry of seen) {
      if (!entry.isIntersecting) continue;
      links.forEach((a) => a.removeAttribute("aria-current"));
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("main > section").forEach((section) => marker.observe(section));

  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
    document.querySelectorAll("img").forEach((image) => { image.loading = "eager"; });
  });
})();
