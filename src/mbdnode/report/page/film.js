"use strict";
// Films of the mechanisms: the truth as a gray ghost, the prediction in color on top of it.
(() => {
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const TAIL_S = 5, FINENESS = 3; // How long a path stays, and points of it for each frame.

  // The value of a column at a moment between frames: a smooth curve through four of them.
  function between(column, frame, part) {
    if (!Array.isArray(column)) return column;
    const last = column.length - 1;
    const at = (i) => column[Math.min(Math.max(i, 0), last)];
    const p1 = at(frame), p2 = at(frame + 1);
    if (p1 === null || p2 === null) return part < 0.5 ? p1 : p2;
    const p0 = at(frame - 1) ?? p1, p3 = at(frame + 2) ?? p2;
    return p1 + 0.5 * part * (p2 - p0 + part * (2 * p0 - 5 * p1 + 4 * p2 - p3
      + part * (3 * (p1 - p2) + p3 - p0)));
  }

  class Film {
    constructor(root, film) {
      Object.assign(this, { root, film, now: 0, playing: false, chosen: 0, seen: false });
      this.canvas = root.querySelector("canvas");
      this.length = film.t[film.t.length - 1] - film.t[0];
      this.tail = (Math.min(TAIL_S, 0.2 * this.length) / this.length) * film.t.length;
      this.button = root.querySelector(".play");
      this.slider = root.querySelector(".time");
      this.speed = root.querySelector(".speed");
      this.state = root.querySelector(".state");
      this.speed.value = this.length > 50 ? "5" : this.length > 15 ? "2" : "1";
      this.stopped = calm.matches; // Nobody who asks for calm is shown motion unasked.
      this.choose();
      this.listen();
      this.draw();
    }
    choose() {
      const select = this.root.querySelector(".prediction");
      select.parentElement.hidden = this.film.predictions.length < 2;
      this.film.predictions.forEach((p, i) => select.add(new Option(p.title, i)));
      select.addEventListener("change", () => { this.chosen = Number(select.value); this.draw(); });
    }
    listen() {
      this.button.addEventListener("click", () => {
        this.stopped = this.playing;
        this.play(!this.playing);
      });
      this.slider.addEventListener("input", () => {
        this.stopped = true;
        this.play(false);
        this.now = (this.slider.value / 1000) * this.length;
        this.draw();
      });
      new ResizeObserver(() => this.draw()).observe(this.canvas);
      parts.dark.addEventListener("change", () => this.draw());
      new IntersectionObserver(([entry]) => this.play(entry.isIntersecting && !this.stopped), {
        threshold: 0.35,
      }).observe(this.canvas);
    }
    play(on) {
      if (on === this.playing) return;
      this.playing = on;
      this.button.textContent = on ? "\u275a\u275a" : "\u25b6";
      this.button.setAttribute("aria-label", on ? "Pause" : "Play");
      this.before = null;
      if (on) requestAnimationFrame((clock) => this.tick(clock));
    }
    tick(clock) {
      if (!this.playing) return;
      if (this.before !== null) {
        // A tab that slept does not make the film jump.
        const passed = Math.min((clock - this.before) / 1000, 0.1);
        this.now = (this.now + passed * Number(this.speed.value)) % this.length;
        this.draw();
      }
      this.before = clock;
      requestAnimationFrame((next) => this.tick(next));
    }
    where() {
      const { t } = this.film, time = t[0] + this.now;
      let low = 0, high = t.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (t[middle] <= time) low = middle; else high = middle;
      }
      return [low, (time - t[low]) / (t[low + 1] - t[low])];
    }
    draw() {
      const sheet = parts.sheet(this.canvas);
      if (!sheet) return;
      const { context } = sheet, pen = new parts.Pen(sheet, this.film.view, parts.palette());
      const [frame, part] = this.where();
      const prediction = this.film.predictions[this.chosen];
      for (const shape of this.film.ground) parts.draw(pen, shape.at, shape);
      pen.ghost = true;
      this.paths(pen, this.film.truth, frame, part, 2.6, 0.5);
      context.globalAlpha = 0.6;
      this.parts(pen, this.film.truth, frame, part);
      context.globalAlpha = 1;
      pen.ghost = false;
      this.paths(pen, prediction, frame, part, 1.4, 0.95);
      const there = this.parts(pen, prediction, frame, part);
      this.tell(there);
    }
    parts(pen, motion, frame, part) {
      let place = 0, all = true;
      for (const look of this.film.looks) {
        const numbers = motion.columns.slice(place, place + look.count)
          .map((column) => between(column, frame, part));
        place += look.count;
        if (numbers.includes(null)) all = false; else parts.draw(pen, numbers, look);
      }
      return all;
    }
    // A record stays; the path of a point fades after a while.
    paths(pen, motion, frame, part, width, strength) {
      const { recorded, colors } = this.film, now = frame + part;
      const first = recorded ? 0 : Math.max(0, now - this.tail);
      const pieces = Math.max(1, Math.ceil((now - first) * (recorded ? 1 : FINENESS)));
      motion.paths.forEach(([xs, ys], number) => {
        let last = null;
        for (let i = 0; i <= pieces; i++) {
          const when = first + ((now - first) * i) / pieces, whole = Math.floor(when);
          const point = [between(xs, whole, when - whole), between(ys, whole, when - whole)];
          if (last && !last.includes(null) && !point.includes(null)) {
            pen.context.globalAlpha = recorded ? strength : (strength * i) / pieces;
            pen.path([last, point], colors[number], width);
          }
          last = point;
        }
      });
      pen.context.globalAlpha = 1;
    }
    tell(there) {
      const time = this.film.t[0] + this.now;
      this.root.querySelector(".clock").textContent = `${time.toFixed(2)} s`;
      this.slider.value = (this.now / this.length) * 1000;
      this.canvas.dataset.time = this.now.toFixed(4);
      const training = this.film.trainEnd > 0
        ? (time <= this.film.trainEnd ? "inside the training range" : "after the training range") : "";
      this.state.textContent = there ? training : "the prediction has ended";
    }
  }

  document.querySelectorAll(".film").forEach((root) => {
    new Film(root, JSON.parse(root.querySelector("script").textContent));
  });
})();
