"use strict";
// The parts of a drawing on a canvas, in the same lines as in the figures: lengths in meters, line
// widths in pixels. What films and playgrounds share.
const parts = (() => {
  const color = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // The colors of the figures, which are made for white paper, and their like on a dark page.
  const AT_NIGHT = {
    "#24618e": "#6fb0e0", "#d9772b": "#f09a55", "#3b9a78": "#5cc19a", "#a54a7d": "#d887b4",
    "#c2a033": "#d9bd58", "#6c6fb5": "#a3a6ea", "#8a4b2d": "#d09a7c", "#4f9bb5": "#8fd0e6",
    "#c0426b": "#f08aa8", "#5d6b2f": "#b3c27a",
  };

  // Colors that change with the page's scheme, by the names that the data has for them.
  function palette() {
    return {
      ...(dark.matches ? AT_NIGHT : {}),
      ink: color("ink"), muted: color("muted"), ghost: color("ghost"), back: color("wash"),
      shade: color("shade"), accent: color("accent"), line: color("line"), warn: color("bad"),
    };
  }

  const pairs = (at) => Array.from({ length: at.length / 2 }, (_, i) => [at[2 * i], at[2 * i + 1]]);

  const PARTS = {
    // Lines of a pattern, in parts of the way between two points and of a width across it.
    link(pen, [x0, y0, x1, y1, width], look) {
      const dx = x1 - x0, dy = y1 - y0, w = width / Math.max(Math.hypot(dx, dy), 1e-9);
      for (const piece of look.pattern) {
        pen.path(piece.map(([a, b]) => [x0 + a * dx - b * w * dy, y0 + a * dy + b * w * dx]), look.color, look.thickness);
      }
    },
    line(pen, at, look) { pen.path(pairs(at), look.color, look.thickness); },
    area(pen, at, look) {
      const points = pairs(at).map((point) => pen.place(point));
      const sides = points.map(([x, y], i) => {
        const [a, b] = points[(i + 1) % points.length];
        return Math.hypot(a - x, b - y);
      });
      const c = pen.context, radius = look.rounding * Math.min(...sides), last = points[points.length - 1];
      c.beginPath();
      // From the middle of a side, around every corner.
      c.moveTo((last[0] + points[0][0]) / 2, (last[1] + points[0][1]) / 2);
      points.forEach(([x, y], i) => c.arcTo(x, y, ...points[(i + 1) % points.length], radius));
      c.closePath();
      pen.ink(look);
    },
    disc(pen, [x, y, r], look) {
      pen.context.beginPath();
      pen.context.arc(...pen.place([x, y]), Math.max(r * pen.scale, 2), 0, 2 * Math.PI);
      pen.ink(look);
    },
    ground(pen, [x0, y0, x1, y1, depth], look) {
      const size = Math.hypot(x1 - x0, y1 - y0), ax = (x1 - x0) / size, ay = (y1 - y0) / size;
      const each = 0.9 * depth, [from, to] = pen.visible(x0, y0, ax, ay, size);
      for (let d = depth + each * Math.ceil(Math.max(from - depth, 0) / each); d <= to + 1e-9; d += each) {
        const x = x0 + d * ax, y = y0 + d * ay;
        pen.path([[x, y], [x + depth * (ay - ax), y - depth * (ax + ay)]], "muted", 0.8);
      }
      pen.path([[x0, y0], [x1, y1]], look.color, 1.4);
    },
    word(pen, [x, y], look) {
      const c = pen.context, [px, py] = pen.place([x, y]);
      c.fillStyle = pen.shade(look.color);
      c.font = "12px system-ui, sans-serif";
      c.textAlign = "center";
      c.textBaseline = "top";
      c.fillText(look.text, px, py);
    },
  };

  class Pen {
    // `thick` multiplies line widths, for a canvas that is larger than usual.
    constructor({ context, width, height }, view, colors, thick = 1) {
      Object.assign(this, { context, colors, thick, width, height });
      const [left, bottom, right, top] = view;
      this.scale = Math.min(width / (right - left), height / (top - bottom));
      this.x = width / 2 - (this.scale * (left + right)) / 2;
      this.y = height / 2 + (this.scale * (bottom + top)) / 2;
      this.ghost = false;
    }
    // Which part of a line of that length can be seen, as distances from its start.
    visible(x, y, ax, ay, size) {
      let from = 0, to = size;
      const cut = (low, high, start, along) => {
        if (Math.abs(along) < 1e-9) return;
        const [first, last] = [(low - start) / along, (high - start) / along].sort((a, b) => a - b);
        from = Math.max(from, first);
        to = Math.min(to, last);
      };
      const room = 40; // Pixels: hatching is slanted.
      cut((-room - this.x) / this.scale, (this.width + room - this.x) / this.scale, x, ax);
      cut((this.y - this.height - room) / this.scale, (this.y + room) / this.scale, y, ay);
      return [from, to];
    }
    // A ghost has one color for everything but the paper.
    shade(name) { return this.ghost && name !== "back" ? this.colors.ghost : this.colors[name] ?? name; }
    // Fill and edge of the path there is, on paper, so that what lies below does not show through.
    ink(look) {
      const c = this.context, strength = c.globalAlpha;
      c.fillStyle = this.colors.back;
      c.fill();
      c.globalAlpha = strength * (look.opacity ?? 1);
      c.fillStyle = this.shade(look.color);
      c.fill();
      c.globalAlpha = strength;
      c.strokeStyle = this.shade(look.edge);
      c.lineWidth = look.thickness * this.thick;
      c.lineJoin = "round";
      c.stroke();
    }
    place([x, y]) { return [this.x + this.scale * x, this.y - this.scale * y]; }
    path(points, name, width) {
      const c = this.context;
      c.beginPath();
      points.forEach((p, i) => (i ? c.lineTo(...this.place(p)) : c.moveTo(...this.place(p))));
      c.strokeStyle = this.shade(name);
      c.lineWidth = width * this.thick;
      c.lineCap = c.lineJoin = "round";
      c.stroke();
    }
  }

  // A canvas as sharp as the screen, cleared; null while it has no size.
  function sheet(canvas) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return null;
    const w = Math.round(width * ratio), h = Math.round(height * ratio), context = canvas.getContext("2d");
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height, ratio };
  }

  // Draw one part from its numbers.
  const draw = (pen, at, look) => PARTS[look.kind](pen, at, look);

  return { dark, color, palette, sheet, draw, Pen };
})();
