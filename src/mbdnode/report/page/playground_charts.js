"use strict";
// Charts that change with every frame: axes, lines, bands and areas on a canvas.
const charts = (() => {
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const MINUS = "\u2212", WINDOW_S = 10;
  const labeled = (name, unit) => (unit ? `${name} [${unit}]` : name);

  // Round numbers between two bounds, about as many as asked for.
  function ticks(low, high, count) {
    const rough = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    return { found, digits: Math.max(0, Math.ceil(-Math.log10(step) - 1e-9) + (step / power === 2.5 ? 1 : 0)) };
  }

  const SUPER = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
  const raised = (n) => (n < 0 ? "\u207b" : "") + [...String(Math.abs(n))].map((d) => SUPER[d]).join("");

  // A short form of a number with a proper minus sign.
  function number(value, digits = 3) {
    if (!Number.isFinite(value)) return "\u2013";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e5)) {
      const power = Math.floor(Math.log10(size));
      return `${(value / 10 ** power).toFixed(1)}\u00b710${raised(power)}`.replace("-", MINUS);
    }
    return Number(value.toPrecision(digits)).toString().replace("-", MINUS);
  }

  // Bounds that hold all values seen since the last start, and grow by steps, so that axes are calm.
  class Bounds {
    constructor() { this.clear(); }
    clear() { this.low = Infinity; this.high = -Infinity; }
    see(value) {
      if (!Number.isFinite(value)) return;
      if (value < this.low) this.low = value;
      if (value > this.high) this.high = value;
    }
    // With some room, and never of no width.
    around(least = 1e-9) {
      if (!(this.low <= this.high)) return [-1, 1];
      const middle = (this.low + this.high) / 2, width = Math.max(this.high - this.low, least);
      return [middle - 0.56 * width, middle + 0.56 * width];
    }
  }

  class Chart {
    constructor(canvas, { x, y, log = false }) {
      Object.assign(this, { canvas, xTitle: x, yTitle: y, log, behind: null, behindKey: "" });
    }
    // Start a picture: clears, draws the axes, and clips to the plot.
    begin(colors, [x0, x1], [y0, y1]) {
      const sheet = parts.sheet(this.canvas);
      if (!sheet) return false;
      const { context: c, width, height } = sheet;
      Object.assign(this, { context: c, ratio: sheet.ratio });
      const size = Math.min(Math.max(height / 19, 10.5), 20);
      this.size = size;
      this.colors = colors;
      c.font = `${size}px ${FONT}`;
      this.range = { x0, x1, y0, y1 };
      const right = 0.9 * size, top = 0.7 * size, bottom = 3.2 * size;
      const marks = this.marks(height - top - bottom, size);
      // The widest mark so far says where the plot begins, so that it does not move to and fro.
      this.widest = Math.max(this.widest ?? 0, ...marks.map(({ text }) => c.measureText(text).width / size));
      const left = (this.widest + 2.3) * size;
      this.box = { left, top, width: width - left - right, height: height - top - bottom };
      this.axes(c, size, height, marks);
      c.save();
      c.beginPath();
      c.rect(left, top, this.box.width, this.box.height);
      c.clip();
      return true;
    }
    end() { this.context.restore(); }
    x(value) { return this.box.left + ((value - this.range.x0) / (this.range.x1 - this.range.x0)) * this.box.width; }
    y(value) {
      const { y0, y1 } = this.range;
      const v = this.log ? Math.log10(Math.max(value, 1e-300)) : value;
      return this.box.top + (1 - (v - y0) / (y1 - y0)) * this.box.height;
    }
    // The marks of the vertical axis: values and texts.
    marks(height, size) {
      const { y0, y1 } = this.range;
      if (this.log) {
        const every = Math.max(1, Math.ceil((y1 - y0) / (height / (2.4 * size)))), found = [];
        for (let power = Math.ceil(y0 / every) * every; power <= y1; power += every) {
          found.push({ value: 10 ** power, text: `10${raised(power)}` });
        }
        return found;
      }
      const up = ticks(y0, y1, height / (3 * size));
      return up.found.map((value) => {
        const plain = value.toFixed(up.digits).replace("-", MINUS);
        return { value, text: plain.length > 7 ? number(value, 2) : plain };
      });
    }
    axes(c, size, height, marks) {
      const { left, top } = this.box, { x0, x1 } = this.range, { colors } = this;
      const bottom = top + this.box.height, right = left + this.box.width;
      c.strokeStyle = colors.line;
      c.fillStyle = colors.muted;
      c.lineWidth = 1;
      c.textAlign = "center";
      c.textBaseline = "top";
      const across = ticks(x0, x1, this.box.width / (4.4 * size));
      for (const value of across.found) {
        const at = this.x(value);
        this.rule(c, at, top, at, bottom);
        c.fillText(value.toFixed(across.digits).replace("-", MINUS), at, bottom + 0.35 * size);
      }
      c.textAlign = "right";
      c.textBaseline = "middle";
      for (const { value, text } of marks) {
        const at = this.y(value);
        this.rule(c, left, at, right, at);
        c.fillText(text, left - 0.4 * size, at);
      }
      c.fillStyle = colors.ink;
      c.textAlign = "center";
      c.textBaseline = "bottom";
      c.fillText(this.xTitle, left + this.box.width / 2, height - 0.1 * size);
      c.save();
      c.translate(0.15 * size, top + this.box.height / 2);
      c.rotate(-Math.PI / 2);
      c.textBaseline = "top";
      c.fillText(this.yTitle, 0, 0, this.box.height);
      c.restore();
    }
    rule(c, x0, y0, x1, y1) {
      c.beginPath();
      c.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
      c.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
      c.stroke();
    }
    // A line through count points; `at(i)` gives [x, y], or null for a gap.
    line(count, at, color, width = 1.6, dash = []) {
      const c = this.context;
      c.beginPath();
      let pen = false;
      for (let i = 0; i < count; i++) {
        const point = at(i);
        if (point === null || !Number.isFinite(point[1])) { pen = false; continue; }
        if (pen) c.lineTo(this.x(point[0]), this.y(point[1]));
        else c.moveTo(this.x(point[0]), this.y(point[1]));
        pen = true;
      }
      c.strokeStyle = color;
      c.lineWidth = (width * this.size) / 11.5;
      c.lineJoin = c.lineCap = "round";
      c.setLineDash(dash);
      c.stroke();
      c.setLineDash([]);
    }
    // The area between two curves: `at(i)` gives [x, low, high].
    band(count, at, color, alpha) {
      const c = this.context;
      c.beginPath();
      let pieces = 0;
      for (let i = 0; i < count; i++) {
        const [x, , high] = at(i);
        if (Number.isFinite(high)) { c[pieces++ ? "lineTo" : "moveTo"](this.x(x), this.y(high)); }
      }
      for (let i = count - 1; i >= 0; i--) {
        const [x, low] = at(i);
        if (Number.isFinite(low)) c.lineTo(this.x(x), this.y(low));
      }
      c.globalAlpha = alpha;
      c.fillStyle = color;
      c.fill();
      c.globalAlpha = 1;
    }
    dot(x, y, color, radius = 4) {
      if (!Number.isFinite(y)) return;
      const c = this.context;
      c.beginPath();
      c.arc(this.x(x), this.y(y), (radius * this.size) / 11.5, 0, 2 * Math.PI);
      c.fillStyle = color;
      c.fill();
      c.strokeStyle = this.colors.back;
      c.lineWidth = 1;
      c.stroke();
    }
    // What is costly and seldom changes is drawn once, and copied: `paint(context)` of this chart.
    underlay(key, alpha, paint) {
      const { canvas, context: c, ratio } = this;
      const whole = [key, canvas.width, canvas.height, ...Object.values(this.range)].join();
      if (this.behindKey !== whole) {
        this.behind ??= document.createElement("canvas");
        this.behind.width = canvas.width;
        this.behind.height = canvas.height;
        const below = this.behind.getContext("2d");
        below.setTransform(ratio, 0, 0, ratio, 0, 0);
        paint(below);
        this.behindKey = whole;
      }
      c.globalAlpha = alpha;
      c.drawImage(this.behind, 0, 0, canvas.clientWidth, canvas.clientHeight);
      c.globalAlpha = 1;
    }
    note(text, color) {
      const c = this.context, { left, top, width } = this.box;
      c.font = `${this.size}px ${FONT}`;
      c.fillStyle = color;
      c.textAlign = "right";
      c.textBaseline = "top";
      c.fillText(text, left + width - 4, top + 4);
    }
  }

  // What the charts of a playground show.

  function plot(p) {
    const { motion: m, colors } = p, { history } = m, i = p.chosen, one = p.play.coordinates[i];
    const length = history.length, now = m.t, from = Math.max(0, now - WINDOW_S), to = Math.max(WINDOW_S, now);
    if (!length) return;
    const bodies = history.bodies.map((own, k) => ({ own, color: m.truth && k === 0 ? colors.ghost : colors.accent }));
    const last = history.place(length - 1);
    for (const { own } of bodies) {
      p.bounds.q.see(own.q[last * own.size + i]);
      p.bounds.v.see(own.v[last * own.size + i]);
      if (p.play.energy) {
        const [T, V] = own.energy.subarray(2 * last, 2 * last + 2);
        for (const value of m.truth ? [T + V] : [T, V, T + V]) p.bounds.e.see(value);
        p.bounds.T.see(T);
      }
    }
    overTime(p, bodies, i, one, length, from, to);
    portrait(p, bodies, i, one, length);
    if (p.energy) energy(p, bodies, length, from, to);
    if (p.apart) apart(p, i, one, length, from, to);
  }

  function overTime(p, bodies, i, one, length, from, to) {
    const { overTime: chart, motion: m } = p, { history } = m;
    chart.yTitle = labeled(one.name, one.unit);
    if (!chart.begin(p.colors, [from, to], p.bounds.q.around())) return;
    if (m.band) {
      const main = bodies[bodies.length - 1].own;
      chart.band(length, (k) => {
        const place = history.place(k), q = main.q[place * main.size + i], s = 1.645 * history.spread[place * main.size + i];
        return [history.t[place], q - s, q + s];
      }, p.colors.accent, 0.22);
    }
    for (const { own, color } of bodies) {
      chart.line(length, (k) => [history.t[history.place(k)], own.q[history.place(k) * own.size + i]], color, m.truth && own === bodies[0].own ? 2.6 : 1.6);
    }
    chart.end();
  }

  const around = (x, middle) => x - 2 * Math.PI * Math.round((x - middle) / (2 * Math.PI));

  // The training data in the plane of a coordinate and its velocity, angles about their own middle.
  function projected(domain, index, isAngle) {
    const found = domain.projected(index);
    if (!found) return false;
    const sum = (f) => found.points.reduce((total, [q]) => total + f(q), 0) / found.points.length;
    const [s, c] = isAngle ? [sum(Math.sin), sum(Math.cos)] : [0, 0];
    found.middle = Math.hypot(s, c) > 0.3 ? Math.atan2(s, c) : 0;
    if (isAngle) for (const point of found.points) point[0] = around(point[0], found.middle);
    return found;
  }

  function portrait(p, bodies, i, one, length) {
    const { portrait: chart, motion: m, play } = p, { history } = m;
    const turn = one.angle && (m.domain || p.bounds.q.high > Math.PI || p.bounds.q.low < -Math.PI);
    p.region ??= m.domain ? projected(m.domain, i, one.angle) : false;
    const middle = p.region ? p.region.middle : 0, wrapped = (x) => around(x, middle);
    const across = new Bounds(), up = new Bounds();
    if (p.region) {
      const [wide, high] = p.region.reach;
      for (const [q, v] of p.region.points) {
        for (const side of [-1, 1]) { across.see(q + side * wide); up.see(v + side * high); }
      }
    }
    if (turn && !p.region) { across.see(-Math.PI); across.see(Math.PI); }
    if (!turn) { across.see(p.bounds.q.low); across.see(p.bounds.q.high); }
    else if (p.region) {
      // As far as it has been, or the whole turn if it has made one.
      const { low, high } = p.bounds.q, shift = wrapped((low + high) / 2) - (low + high) / 2;
      for (const x of [low, high]) across.see(Math.min(Math.max(x + shift, middle - Math.PI), middle + Math.PI));
    }
    up.see(p.bounds.v.low);
    up.see(p.bounds.v.high);
    chart.xTitle = labeled(one.name, one.unit);
    chart.yTitle = labeled(one.rate, one.unit && `${one.unit}/s`);
    if (!chart.begin(p.colors, across.around(), up.around())) return;
    if (p.region) shade(p, chart, i);
    for (const { own, color } of bodies) {
      const main = own === bodies[bodies.length - 1].own;
      const draw = (wanted, ink) => {
        let before = null;
        chart.line(length, (k) => {
          const place = history.place(k), v = own.v[place * own.size + i], q = own.q[place * own.size + i];
          if (wanted !== null && history.outside[place] !== wanted) { before = null; return null; }
          const x = turn ? wrapped(q) : q, jump = turn && before !== null && Math.abs(x - before) > Math.PI;
          before = x;
          return jump || !Number.isFinite(q) ? null : [x, v];
        }, ink, main ? 1.4 : 2.4);
      };
      if (main && m.domain) { draw(0, color); draw(1, p.colors.warn); } else draw(null, color);
      const place = history.place(length - 1), q = own.q[place * own.size + i];
      chart.dot(turn ? wrapped(q) : q, own.v[place * own.size + i], main && m.domain && history.outside[place] ? p.colors.warn : color);
    }
    chart.end();
  }

  // The training data: every point as large as the distance up to which a state counts as near it.
  function shade(p, chart, i) {
    chart.underlay(`${i}${parts.dark.matches}`, 0.22, (c) => {
      const { points, reach } = p.region, each = Math.max(1, Math.floor(points.length / 1500));
      const scale = [chart.x(1) - chart.x(0), chart.y(0) - chart.y(1)];
      c.fillStyle = p.colors.accent;
      for (let k = 0; k < points.length; k += each) {
        c.beginPath();
        c.ellipse(chart.x(points[k][0]), chart.y(points[k][1]), Math.max(reach[0] * scale[0], 3), Math.max(reach[1] * scale[1], 3), 0, 0, 2 * Math.PI);
        c.fill();
      }
    });
  }

  function energy(p, bodies, length, from, to) {
    const { energy: chart, motion: m, colors } = p, { history } = m;
    if (!chart.begin(colors, [from, to], p.bounds.e.around(0.2 * p.bounds.T.high))) return;
    const draw = (own, value, color, width, dash) => chart.line(length, (k) => {
      const place = history.place(k);
      return [history.t[place], value(own.energy[2 * place], own.energy[2 * place + 1])];
    }, color, width, dash);
    const shade = (name) => colors[name] ?? name;
    if (m.truth) for (const { own, color } of bodies) draw(own, (T, V) => T + V, color, own === bodies[0].own ? 2.6 : 1.6);
    else {
      draw(bodies[0].own, (T) => T, shade("#d9772b"), 1.6);
      draw(bodies[0].own, (_, V) => V, shade("#3b9a78"), 1.6);
      draw(bodies[0].own, (T, V) => T + V, colors.ink, 2);
    }
    chart.end();
  }

  function apart(p, i, one, length, from, to) {
    const { apart: chart, motion: m } = p, { history } = m, bounds = new Bounds();
    for (let k = 0; k < length; k++) {
      const value = m.difference(i, history.place(k));
      if (value > 0) bounds.see(Math.log10(value));
    }
    const high = Math.ceil(Math.max(Number.isFinite(bounds.high) ? bounds.high : -12, -12) + 0.3);
    const low = Math.min(Math.max(Number.isFinite(bounds.low) ? Math.floor(bounds.low) : -16, high - 14), high - 4);
    chart.yTitle = `|\u0394${one.name}|${one.unit ? ` [${one.unit}]` : ""}`;
    if (!chart.begin(p.colors, [from, to], [low, high])) return;
    chart.line(length, (k) => [history.t[history.place(k)], m.difference(i, history.place(k)) || NaN], p.colors.warn, 1.6);
    chart.end();
  }

  return { Chart, Bounds, number, labeled, plot };
})();
