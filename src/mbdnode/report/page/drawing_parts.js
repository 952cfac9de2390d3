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
    rod(pen, [x0, y0, x1, y1], look) { pen.path([[x0, y0], [x1, y1]], look.color, look.width); },
    bob(pen, [x, y, r], look) { pen.disc(x, y, r, look.color, pen.colors.back); },
    joint(pen, [x, y, r], look) {
      pen.disc(x, y, r, look.fixed ? look.color : pen.colors.back, pen.shade(look.color), 1.4);
    },
    block(pen, [x, y, w, h], look) { pen.box(x, y, w, h, look.color); },
    line(pen, at, look) { pen.path(pairs(at), look.color, look.width); },
    plate(pen, at, look) { pen.plate(pairs(at), look); },
    spring(pen, [x0, y0, x1, y1, width], look) {
      const points = [[x0, y0]], count = 2 * look.teeth;
      const dx = x1 - x0, dy = y1 - y0, size = Math.max(Math.hypot(dx, dy), 1e-9);
      for (let i = 0; i < count; i++) {
        const along = 0.12 + (0.76 * i) / (count - 1);
        const across = i === 0 || i === count - 1 ? 0 : (width / 2) * (i % 2 ? 1 : -1);
        points.push([x0 + along * dx - (across * dy) / size, y0 + along * dy + (across * dx) / size]);
      }
      points.push([x1, y1]);
      pen.path(points, look.color, 1.3);
    },
    damper(pen, [x0, y, x1, , width], look) {
      const long = x1 - x0, cup = x0 + 0.38 * long, half = width / 2;
      const deep = cup + 0.3 * long, piston = cup + 0.14 * long;
      pen.path([[x0, y], [cup, y]], look.color, 1.3);
      pen.path([[deep, y + half], [cup, y + half], [cup, y - half], [deep, y - half]], look.color, 1.3);
      pen.path([[piston, y + 0.7 * half], [piston, y - 0.7 * half]], look.color, 1.3);
      pen.path([[piston, y], [x1, y]], look.color, 1.3);
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
    time(pen, [x, y, length], look) {
      pen.path([[x, y], [x, y - length]], look.color, 0.9);
      pen.label(x, y - length, "time", look.color);
    },
  };

  class Pen {
    // `thick` multiplies line widths, for a canvas that is larger than usual.
    constructor(context, view, width, height, colors, thick = 1) {
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
    // A ghost has one color for everything.
    shade(name) { return this.ghost ? this.colors.ghost : this.colors[name] ?? name; }
    plate(points, look) {
      const c = this.context;
      c.beginPath();
      points.forEach((p, i) => (i ? c.lineTo(...this.place(p)) : c.moveTo(...this.place(p))));
      c.closePath();
      c.fillStyle = this.colors.back;
      c.fill();
      c.globalAlpha = look.opacity;
      c.fillStyle = this.shade(look.color);
      c.fill();
      c.globalAlpha = 1;
      c.strokeStyle = this.shade(look.color);
      c.lineWidth = look.width * this.thick;
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
    disc(x, y, r, fill, edge, width = 1) {
      const c = this.context;
      c.beginPath();
      c.arc(...this.place([x, y]), Math.max(r * this.scale, 2), 0, 2 * Math.PI);
      c.fillStyle = fill === this.colors.back ? fill : this.shade(fill);
      c.fill();
      c.strokeStyle = edge;
      c.lineWidth = width * this.thick;
      c.stroke();
    }
    box(x, y, w, h, name) {
      const c = this.context, [px, py] = this.place([x - w / 2, y + h / 2]);
      c.beginPath();
      c.roundRect(px, py, w * this.scale, h * this.scale, 0.12 * Math.min(w, h) * this.scale);
      c.fillStyle = this.shade(name);
      c.fill();
      c.strokeStyle = this.colors.back;
      c.lineWidth = 1;
      c.stroke();
    }
    label(x, y, text, name) {
      const c = this.context, [px, py] = this.place([x, y]);
      c.fillStyle = this.shade(name);
      c.font = "12px system-ui, sans-serif";
      c.textAlign = "center";
      c.fillText(text, px, py + 13);
    }
  }

  // Draw one part from its numbers.
  const draw = (pen, at, look) => PARTS[look.kind](pen, at, look);

  return { palette, draw, Pen };
})();
