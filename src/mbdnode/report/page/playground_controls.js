"use strict";
// Playgrounds: the page's controls around a motion, its stage and its charts.
(() => {
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const TOLD_MS = 250;
  const { number, labeled } = charts;

  // An element with properties, attributes and children; text is never read as HTML.
  function el(tag, settings = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(settings)) {
      if (name in node) node[name] = value; else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  class Playground {
    constructor(root, play) {
      Object.assign(this, { root, play, playing: false, wanted: !calm.matches, slow: 1, chosen: 0, frames: [], left: false });
      this.motion = new motion.Motion(play);
      this.chosen = play.independent[0] ?? 0;
      this.bounds = { q: new charts.Bounds(), v: new charts.Bounds(), e: new charts.Bounds(), T: new charts.Bounds() };
      this.build();
      this.watch();
      if (this.overButton && root.clientWidth < 620) this.overlay(true);
      this.restarted();
      this.draw(true);
    }

    // The page

    build() {
      const { play, root } = this;
      root.textContent = "";
      this.status = el("p", { className: "unseen", role: "status" });
      this.left_ = el("div", { className: "play-main" });
      if (play.scene) this.left_.append(this.stages());
      this.left_.append(this.bar(), this.readouts());
      root.append(el("div", { className: "play-top" }, this.left_, this.knobs()), this.charts(), this.status);
    }
    stages() {
      const { play, motion: m } = this, box = el("div", { className: "stages" });
      this.scene = new stage.Scene(m);
      this.camera = new stage.Camera(play.scene.view);
      this.hand = new stage.Hand(this.scene);
      const last = m.bodies.length - 1;
      const layer = (number, ghost) => ({ body: m.bodies[number], number, ghost });
      this.panes = m.bodies.map((body, number) => {
        const canvas = el("canvas", {
          tabIndex: 0, role: "application", "aria-roledescription": "mechanism",
          "aria-label": `${play.title}, ${body.label}. Drag it with the pointer. Space pauses, the arrow keys and K kick it, R restarts it.`,
        });
        const pane = new stage.Pane(canvas, this.scene, this.camera, [layer(number, false)]);
        pane.own = pane.layers;
        pane.over = number === last && last > 0 ? [layer(0, true), layer(last, false)] : pane.layers;
        pane.frame = el("figure", { className: "stage" }, canvas, el("figcaption", {}, this.key(number)));
        box.append(pane.frame);
        stage.listen(pane, this.hand, {
          grab: () => this.grabbed(), drag: () => this.wake(), drop: (q, v) => this.dropped(q, v),
        });
        canvas.addEventListener("keydown", (event) => this.typed(event));
        return pane;
      });
      this.hint = el("p", { className: "hint" }, "Drag it. Let go while moving to throw it.");
      this.panes[last].frame.append(this.hint);
      this.stageBox = box;
      return box;
    }
    key(numberOfBody) {
      const body = this.motion.bodies[numberOfBody], ghost = this.motion.truth === body;
      return el("span", { className: ghost ? "ghost" : "color" }, body.label);
    }
    bar() {
      const button = (text, title, act, more = {}) => {
        const node = el("button", { type: "button", title, ...more }, text);
        node.addEventListener("click", act);
        return node;
      };
      this.playButton = button("", "Space", () => this.toggle(), { className: "play" });
      this.recordButton = button("Record", "Rows of every step, as CSV", () => this.record(), { className: "record", "aria-pressed": "false" });
      this.speed = el("select", { "aria-label": "Speed" });
      for (const [value, text] of [[0.05, "1/20"], [0.1, "1/10"], [0.25, "1/4"], [0.5, "1/2"], [1, "1"], [2, "2"], [4, "4"]]) {
        this.speed.add(new Option(`${text}\u00d7`, value, value === 1, value === 1));
      }
      this.clock = el("output", { className: "clock", "aria-live": "off" });
      const bar = el("div", { className: "controls" }, this.playButton,
        button("Restart", "R", () => this.restart()),
        button("Kick", "K, or the arrow keys on the drawing", () => this.kick(1)),
        el("label", {}, "Speed ", this.speed));
      if (this.motion.truth && this.play.scene) {
        this.overButton = button("Overlay", "Both on one drawing, the mechanism in gray", () => this.overlay(!this.over), { "aria-pressed": "false" });
        bar.append(this.overButton);
      }
      bar.append(this.recordButton, this.clock);
      return bar;
    }
    readouts() {
      const { play, motion: m } = this, list = el("dl", { className: "readouts" });
      this.told = {};
      const add = (name, title) => {
        this.told[name] = el("dd", {});
        list.append(el("div", { className: `of-${name}` }, el("dt", {}, title), this.told[name]));
      };
      if (m.main.outputs.some((name) => name.endsWith("_residual")) && play.constraints) add("residual", "constraint residual");
      if (play.energy) add("energy", "energy");
      if (m.truth) add("difference", "difference");
      if (m.domain) add("domain", "training data");
      add("frames", "frames/s");
      return list;
    }
    charts() {
      const { play, motion: m } = this, box = el("div", { className: "live" });
      const make = (name, title, settings) => {
        const canvas = el("canvas", { role: "img", "aria-label": `${title}, live` });
        box.append(el("figure", {}, el("figcaption", {}, title), canvas));
        return (this[name] = new charts.Chart(canvas, settings));
      };
      this.select = el("select", { "aria-label": "Coordinate of the charts" });
      play.coordinates.forEach((one, i) => this.select.add(new Option(one.name, i, false, i === this.chosen)));
      this.select.addEventListener("change", () => {
        this.chosen = Number(this.select.value);
        this.forget();
        this.draw(true);
      });
      make("overTime", "Motion", { x: "t [s]", y: "" });
      box.firstChild.querySelector("figcaption").append(" of ", this.select);
      make("portrait", m.domain ? "Phase portrait, training data shaded" : "Phase portrait", { x: "", y: "" });
      if (play.energy) {
        make("energy", "Energy", { x: "t [s]", y: "energy [J]" });
        if (!m.truth) {
          const names = ["total", "kinetic", "potential"].map((name) => el("span", { className: `key-${name}` }, name));
          box.lastChild.querySelector("figcaption").append(...names);
        }
      }
      if (m.truth) make("apart", "Difference between the two", { x: "t [s]", y: "", log: true });
      return box;
    }
    knobs() {
      const { play, motion: m } = this, box = el("div", { className: "knobs" });
      if (play.inputs.length) {
        box.append(this.group("Inputs", play.inputs.map((one, i) => this.slider(labeled(one.name, one.unit), one, (value) => {
          m.u[i] = value;
        })), true));
      }
      this.starts = [];
      const first = play.independent.flatMap((index) => {
        const one = play.coordinates[index];
        const part = (key, name, unit, range) => {
          const made = this.slider(labeled(name, unit), { ...range, value: m.main.state[key][index] }, (value) => this.startWith(key, index, value));
          this.starts.push({ key, index, made });
          return made;
        };
        return [part("q", one.name, one.unit, one.range), part("v", one.rate, one.unit && `${one.unit}/s`, one.rateRange)];
      });
      if (first.length) box.append(this.group("Start", first, true));
      const changed = play.parameters.map((one, i) => this.slider(labeled(one.name, one.unit), one, (value, made) => {
        if (!m.set(i, value)) {
          made.show(m.p[i]);
          this.say(`The mechanism cannot be assembled with ${one.name} = ${number(value)}.`);
        }
        if (this.scene) this.scene.stale = true;
        this.forget();
        this.wake();
      }, one.note || one.meaning));
      if (changed.length) box.append(this.group("Parameters", changed, changed.length <= 6));
      return box;
    }
    group(title, members, open) {
      const box = el("details", { className: "group", open }, el("summary", {}, title));
      members.forEach((one) => box.append(one.node));
      return box;
    }
    slider(text, { low, high, value }, act, note = "") {
      const input = el("input", { type: "range", min: low, max: high, step: "any", value });
      const shown = el("output", {}, number(value));
      const made = {
        node: el("label", { className: "knob", title: note }, el("span", {}, text), shown, input),
        show: (x) => { input.value = x; shown.textContent = number(x); },
      };
      input.addEventListener("input", () => {
        shown.textContent = number(Number(input.value));
        act(Number(input.value), made);
        this.wake();
      });
      // Twice to where it was.
      input.addEventListener("dblclick", () => { made.show(value); act(value, made); this.wake(); });
      if (note) made.node.append(el("small", {}, note));
      return made;
    }

    // What can be done

    say(text) { this.status.textContent = text; }
    toggle() {
      this.wanted = !this.wanted;
      this.run(this.wanted && this.seen);
      this.say(this.wanted ? "Running." : `Paused at ${this.motion.t.toFixed(2)} s.`);
    }
    run(on) {
      this.playing = on;
      this.playButton.textContent = this.wanted ? "\u275a\u275a" : "\u25b6";
      this.playButton.setAttribute("aria-label", this.wanted ? "Pause" : "Play");
      this.before = null;
      this.frames = [];
      this.wake();
    }
    restart() {
      this.motion.reset();
      if (this.scene) { this.scene.reset(); this.camera.reset(); }
      this.restarted();
      this.say("Restarted.");
    }
    restarted() {
      this.forget();
      this.left = false;
      for (const { key, index, made } of this.starts) made.show(this.motion.main.state[key][index]);
      this.wake();
    }
    // The axes begin anew.
    forget() { Object.values(this.bounds).forEach((one) => one.clear()); this.region = undefined; }
    startWith(key, index, value) {
      const { q, v } = this.motion.main.state, first = { q: Float64Array.from(q), v: Float64Array.from(v) };
      for (const one of this.starts) if (one.made.node.querySelector("input")) first[one.key][one.index] = Number(one.made.node.querySelector("input").value);
      first[key][index] = value;
      const refused = this.motion.start(first.q, first.v);
      if (refused) this.say(`There is no such state: ${refused}.`);
      this.forget();
      this.left = false;
    }
    grabbed() {
      this.held = true;
      if (this.hint) this.hint.hidden = true;
      this.panes.forEach((pane) => { pane.canvas.style.cursor = "grabbing"; });
      this.wake();
    }
    dropped(q, v) {
      this.held = false;
      this.panes.forEach((pane) => { pane.canvas.style.cursor = ""; });
      const refused = this.motion.start(q, v);
      if (refused) this.say(`It cannot start there: ${refused}.`);
      this.restarted();
    }
    kick(side) {
      const index = this.play.independent.includes(this.chosen) ? this.chosen : this.play.independent[0];
      if (index === undefined) return;
      this.motion.kick(index, side * this.play.coordinates[index].kick);
      this.say(`Kicked ${this.play.coordinates[index].name}.`);
      this.wake();
    }
    overlay(on) {
      this.over = on;
      this.overButton.setAttribute("aria-pressed", String(on));
      this.panes.forEach((pane, number) => {
        const last = number === this.panes.length - 1;
        pane.layers = on ? pane.over : pane.own;
        pane.frame.hidden = on && !last;
        if (last) pane.frame.querySelector("figcaption").replaceChildren(...(on ? [this.key(0), this.key(number)] : [this.key(number)]));
      });
      this.stageBox.classList.toggle("single", on);
      this.wake();
    }
    record() {
      const { motion: m, recordButton } = this, on = !m.rows;
      recordButton.setAttribute("aria-pressed", String(on));
      recordButton.textContent = on ? "Save CSV" : "Record";
      if (on) {
        m.record(true);
        this.say("Recording.");
        return;
      }
      const address = URL.createObjectURL(new Blob([m.csv()], { type: "text/csv" }));
      const link = el("a", { href: address, download: `${this.play.name}.csv` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
      this.say(`Saved ${m.rows.texts.length} rows.`);
      m.record(false);
    }
    typed(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const keys = {
        " ": () => this.toggle(), k: () => this.kick(1), r: () => this.restart(), o: () => this.overButton && this.overlay(!this.over),
        ArrowRight: () => this.kick(1), ArrowLeft: () => this.kick(-1),
        s: () => { this.speed.value = this.speed.value === "1" ? "0.25" : "1"; },
      };
      const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!act) return;
      event.preventDefault();
      act();
    }
    watch() {
      this.root.addEventListener("keydown", (event) => {
        if (!event.defaultPrevented && !event.target.closest("input, select, button, summary, a")) this.typed(event);
      });
      if (this.play.whole) {
        document.addEventListener("keydown", (event) => {
          if (event.target === document.body) this.typed(event);
        });
      }
      new ResizeObserver(() => this.wake()).observe(this.root);
      parts.dark.addEventListener("change", () => { this.colors = null; this.wake(); });
      new IntersectionObserver(([entry]) => {
        this.seen = entry.isIntersecting;
        this.run(this.wanted && this.seen);
      }, { threshold: 0.05 }).observe(this.left_);
    }

    // Every frame

    wake() {
      if (this.asked) return;
      this.asked = true;
      requestAnimationFrame((clock) => this.tick(clock));
    }
    tick(clock) {
      this.asked = false;
      const passed = this.before == null ? 0 : Math.min((clock - this.before) / 1000, 0.1);
      if (this.before != null) this.frames.push(clock - this.before);
      if (this.frames.length > 60) this.frames.shift();
      this.before = clock;
      if (this.held) this.drag();
      else if (this.playing) this.motion.advance(passed * Number(this.speed.value));
      this.even = !this.even;
      this.draw(!this.playing || this.even);
      if (this.playing || this.held) this.wake(); else this.before = null;
    }
    drag() {
      const { hand, motion: m } = this, view = this.camera.view;
      hand.pull(...hand.target, 0.12 * Math.max(view[2] - view[0], view[3] - view[1]));
      // Shown as a state at rest, before it is let go.
      for (const body of m.bodies) {
        body.state.q.set(hand.q);
        body.state.v.fill(0);
        body.ended = "";
        body.still();
      }
      m.part = 1;
      m.history.clear();
      const pane = this.panes[this.panes.length - 1];
      pane.hover = this.scene.held(hand.hold, hand.q);
    }
    draw(all) {
      const { motion: m } = this;
      this.colors ??= parts.palette();
      if (this.panes) {
        if (!this.held) for (const body of m.bodies) if (!body.ended) this.camera.follow(this.scene.box(this.scene.parts(body.state.q)));
        for (const pane of this.panes) if (!pane.frame.hidden) pane.draw(this.colors);
      }
      if (all && !this.held) charts.plot(this);
      this.tell();
      this.root.dataset.time = m.t.toFixed(4);
    }
    tell() {
      const now = performance.now(), { motion: m, told } = this;
      if (this.spoken && now - this.spoken < TOLD_MS && this.playing) return;
      this.spoken = now;
      this.clock.textContent = `${m.t.toFixed(2)} s`;
      if (told.residual) told.residual.textContent = number(m.main.residual(m.t, m.u, m.p), 2);
      const { history } = m, place = history.length ? history.place(history.length - 1) : -1;
      if (told.energy && place >= 0) {
        const own = history.bodies[m.bodies.length - 1].energy;
        told.energy.textContent = `${number(own[2 * place] + own[2 * place + 1], 4)} J`;
      }
      if (told.difference && place >= 0) {
        const { unit, name } = this.play.coordinates[this.chosen];
        told.difference.textContent = `${number(m.difference(this.chosen, place), 2)} ${unit}`;
        told.difference.parentNode.firstChild.textContent = `difference in ${name}`;
      }
      if (told.domain) this.tellDomain(told.domain);
      if (this.frames.length > 10) {
        const rate = 1000 / (this.frames.reduce((a, b) => a + b, 0) / this.frames.length);
        told.frames.textContent = this.playing ? rate.toFixed(0) : "\u2013";
        this.root.dataset.frames = rate.toFixed(1);
      }
      for (const body of m.bodies) if (body.ended && body.said !== body.ended) this.say(`The ${body.label} has ended at ${m.t.toFixed(2)} s: ${body.ended}.`);
      for (const body of m.bodies) body.said = body.ended;
      this.panes?.forEach((pane, i) => pane.frame.toggleAttribute("data-ended", Boolean(m.bodies[i].ended)));
    }
    tellDomain(place) {
      const { motion: m } = this, outside = m.distance > 1;
      place.textContent = m.main.ended ? "ended" : outside ? `outside, ${number(m.distance, 2)}\u00d7 the limit` : "inside";
      place.parentNode.classList.toggle("warning", outside);
      if (this.panes) this.panes[this.panes.length - 1].frame.classList.toggle("outside", outside && !this.held);
      if (outside && !this.left) this.say(`The ${m.main.label} has left the training data at ${m.t.toFixed(2)} s.`);
      this.left ||= outside;
    }
  }

  const plays = JSON.parse(document.getElementById("plays-data").textContent);
  document.querySelectorAll(".playground").forEach((root) => {
    const play = plays[root.dataset.play];
    // Programs are compiled only for who comes near.
    new IntersectionObserver((seen, watcher) => {
      if (!seen.some((entry) => entry.isIntersecting)) return;
      watcher.disconnect();
      root.playground = new Playground(root, play);
    }, { rootMargin: "200px" }).observe(root);
  });
})();
