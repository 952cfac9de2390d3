"use strict";
// The motion of a playground: the exported code of one or two systems, stepped side by side, with
// what is measured on the way: energy, residuals, difference, bands, distance from the training data.
const motion = (() => {
  const SAMPLES_A_SECOND = 120, MOST_SAMPLES = 3000, MOST_ROWS = 200000;

  // Programs come with the page, and are made when they are first needed.
  const made = {};
  const program = (name) => (made[name] ??= window.mbdnodePrograms[name]());

  function floats(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  }

  // Where the training data lies: the distance of a state to the nearest of its points.
  class Domain {
    constructor(data) {
      Object.assign(this, data);
      this.points = floats(data.points);
      this.size = data.center.length;
      this.row = new Float64Array(this.size);
    }
    features(q, v, u) {
      const { row } = this;
      let at = 0;
      this.positions.forEach((index, i) => {
        if (this.angles[i]) { row[at++] = Math.sin(q[index]); row[at++] = Math.cos(q[index]); }
        else row[at++] = q[index];
      });
      for (const index of this.velocities) row[at++] = v[index];
      for (let i = 0; at < this.size; i++) row[at++] = u[i];
      for (let i = 0; i < this.size; i++) row[i] = (row[i] - this.center[i]) / this.std[i];
      return row;
    }
    // In units of the threshold: above one is outside.
    distance(q, v, u) {
      const row = this.features(q, v, u), { points, size } = this;
      let nearest = Infinity;
      for (let start = 0; start < points.length; start += size) {
        let sum = 0;
        for (let i = 0; i < size && sum < nearest; i++) sum += (points[start + i] - row[i]) ** 2;
        if (sum < nearest) nearest = sum;
      }
      return Math.sqrt(nearest) / this.threshold;
    }
    // Position and velocity of every point for one of the coordinates, and how far it reaches.
    projected(index) {
      const place = this.positions.indexOf(index), speed = this.velocities.indexOf(index);
      if (place < 0 || speed < 0) return null;
      const at = this.angles.slice(0, place).reduce((sum, angle) => sum + (angle ? 2 : 1), 0);
      const wide = this.angles.reduce((sum, angle) => sum + (angle ? 2 : 1), 0) + speed;
      const raw = (start, i) => this.points[start + i] * this.std[i] + this.center[i];
      const found = [];
      for (let start = 0; start < this.points.length; start += this.size) {
        const q = this.angles[place] ? Math.atan2(raw(start, at), raw(start, at + 1)) : raw(start, at);
        found.push([q, raw(start, wide)]);
      }
      const reach = this.angles[place] ? Math.hypot(this.std[at], this.std[at + 1]) / Math.SQRT2 : this.std[at];
      return { points: found, reach: [this.threshold * reach, this.threshold * this.std[wide]] };
    }
  }

  // One system in motion, with its last two states.
  class Body {
    constructor(data) {
      Object.assign(this, data);
      this.code = program(data.program);
      this.state = this.code.newState();
      this.parked = this.code.newState();
      this.before = { q: new Float64Array(this.code.NQ), v: new Float64Array(this.code.NQ) };
      this.y = new Float64Array(Math.max(this.code.NY, 1));
      this.ended = "";
    }
    still() {
      this.before.q.set(this.state.q);
      this.before.v.set(this.state.v);
    }
    step(t, dt, u, p) {
      if (this.ended) return;
      this.still();
      const status = this.code.step(this.state, t, dt, u, p);
      if (status !== 0 || !Number.isFinite(this.state.q[0])) this.ended = this.code.statusText(status);
    }
    // The largest residual of the constraints; not a number without any.
    residual(t, u, p) {
      this.code.outputs(this.state, t, u, p, this.y);
      let largest = NaN;
      this.outputs.forEach((name, i) => {
        if (name.endsWith("_residual")) largest = Math.max(Number.isNaN(largest) ? 0 : largest, Math.abs(this.y[i]));
      });
      return largest;
    }
    // The pose between the last two states: positions and velocities of both make one cubic.
    pose(part, dt, out) {
      const { q: q0, v: v0 } = this.before, { q: q1, v: v1 } = this.state, s = part;
      const a = (1 + 2 * s) * (1 - s) ** 2, b = s * (1 - s) ** 2 * dt;
      const c = s * s * (3 - 2 * s), d = s * s * (s - 1) * dt;
      for (let i = 0; i < out.length; i++) out[i] = a * q0[i] + b * v0[i] + c * q1[i] + d * v1[i];
      return out;
    }
  }

  // Other systems around one, which say how sure it is: the values of its parameters a standard
  // deviation to either side, or the other members of an ensemble.
  class Band {
    constructor(data, owner) {
      this.data = data;
      const code = owner.code;
      this.bodies = data.directions
        ? data.directions.flatMap((along) => [1, -1].map((side) => ({ program: owner.program, along, side })))
        : data.members.map((name) => ({ program: name }));
      this.bodies = this.bodies.map((one) => new Body(one));
      this.q = new Float64Array(code.NQ).fill(NaN);
      this.v = new Float64Array(code.NQ).fill(NaN);
    }
    parameters(body, p) {
      if (!body.along) return p;
      const own = Float64Array.from(p);
      own.forEach((value, i) => {
        const [low, high] = this.data.bounds[i];
        own[i] = Math.min(Math.max(value + body.side * body.along[i], low ?? -Infinity), high ?? Infinity);
      });
      return own;
    }
    start(t, q, v, known, p) {
      for (const body of this.bodies) {
        body.p = this.parameters(body, p);
        const status = body.code.init(body.state, t, q, v, known, body.p);
        body.ended = status === 0 ? "" : body.code.statusText(status);
      }
    }
    step(t, dt, u) { for (const body of this.bodies) body.step(t, dt, u, body.p); }
    measure() {
      for (const key of ["q", "v"]) {
        for (let i = 0; i < this.q.length; i++) this[key][i] = this.deviation(key, i);
      }
    }
    deviation(key, i) {
      const { bodies } = this;
      if (bodies.some((body) => body.ended)) return NaN;
      const values = bodies.map((body) => body.state[key][i]);
      if (this.data.directions) {
        let sum = 0;
        for (let k = 0; k < values.length; k += 2) sum += ((values[k] - values[k + 1]) / 2) ** 2;
        return Math.sqrt(sum);
      }
      const mean = values.reduce((a, b) => a + b, 0) / values.length;
      return Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (values.length - 1));
    }
  }

  // The last seconds of a motion, sampled for charts and paths: rows in a ring.
  class History {
    constructor(bodies, traces) {
      const column = (width = 1) => new Float64Array(MOST_SAMPLES * width);
      this.t = column();
      this.outside = new Uint8Array(MOST_SAMPLES);
      this.bodies = bodies.map(({ code }) => ({
        q: column(code.NQ), v: column(code.NQ), energy: column(2), trace: column(2 * traces), size: code.NQ,
      }));
      this.spread = column(bodies[bodies.length - 1].code.NQ);
      this.clear();
    }
    clear() { this.count = 0; }
    get length() { return Math.min(this.count, MOST_SAMPLES); }
    // The place of a sample, the oldest that is kept being number zero.
    place(i) { return (this.count - this.length + i) % MOST_SAMPLES; }
    next() { return this.count++ % MOST_SAMPLES; }
  }

  class Motion {
    constructor(play) {
      Object.assign(this, { play, dt: play.dt, p: Float64Array.from(play.parameters, (one) => one.value) });
      this.u = Float64Array.from(play.inputs.length ? play.inputs : [0], (one) => one.value ?? 0);
      this.bodies = play.systems.map((system) => new Body(system));
      this.main = this.bodies[this.bodies.length - 1]; // The model, if there is one.
      this.truth = this.bodies.length > 1 ? this.bodies[0] : null;
      this.functions = play.functions && program(play.functions); // Energy and drawing.
      this.band = play.band && new Band(play.band, this.main);
      this.domain = play.domain && new Domain(play.domain);
      this.known = Uint8Array.from(this.main.code.tables.independent);
      this.history = new History(this.bodies, play.scene ? play.scene.colors.length : 0);
      this.every = Math.max(1, Math.round(1 / (SAMPLES_A_SECOND * this.dt)));
      this.traced = play.scene && new Float64Array(2 * play.scene.colors.length);
      this.joules = new Float64Array(2);
      this.rows = null;
      this.reset();
    }
    get t() { return this.steps * this.dt; }
    reset() {
      const { q, v } = this.play.start;
      return this.start(Float64Array.from(q), Float64Array.from(v));
    }
    // All systems from one state; returns "" or why not, in which case nothing has changed.
    start(q, v, known = this.known) {
      const t = 0;
      for (const body of this.bodies) {
        const status = body.code.init(body.parked, t, q, v, known, this.p);
        if (status !== 0) return body.code.statusText(status);
      }
      for (const body of this.bodies) {
        body.code.copyState(body.parked, body.state);
        body.still();
        body.ended = "";
      }
      if (this.band) this.band.start(t, this.main.state.q, this.main.state.v, known, this.p);
      Object.assign(this, { steps: 0, part: 1, left: 0 });
      if (this.rows) this.rows.run += 1;
      this.history.clear();
      this.observe();
      return "";
    }
    // Forward by so many seconds; gives up after `most` milliseconds, for the page to stay alive.
    advance(seconds, most = 12) {
      const begun = performance.now();
      this.left += seconds;
      while (this.left >= this.dt) {
        this.step();
        this.left -= this.dt;
        if (performance.now() - begun > most) { this.left %= this.dt; break; }
      }
      this.part = this.left / this.dt;
    }
    step() {
      if (this.main.ended && (!this.truth || this.truth.ended)) return;
      if (this.rows) this.note(); // Before the step, over which the inputs are held.
      if (this.band) this.band.step(this.t, this.dt, this.u);
      for (const body of this.bodies) {
        if (body === this.main && this.play.band?.members) this.average();
        else body.step(this.t, this.dt, this.u, this.p);
      }
      this.steps += 1;
      if (this.steps % this.every === 0) this.observe();
    }
    // An ensemble is where its members are on average, with the constraints kept.
    average() {
      const { main, band, known } = this, failed = band.bodies.find((body) => body.ended);
      if (main.ended || failed) { main.ended ||= failed.ended; return; }
      main.still();
      const mean = (key) => main.state[key].map((_, i) => band.bodies.reduce((sum, { state }) => sum + state[key][i], 0) / band.bodies.length);
      const status = main.code.init(main.parked, this.t + this.dt, mean("q"), mean("v"), known, this.p);
      if (status === 0) main.code.copyState(main.parked, main.state);
      else main.ended = main.code.statusText(status);
    }
    observe() {
      const { history, functions, main } = this, at = history.next();
      history.t[at] = this.t;
      this.bodies.forEach((body, number) => {
        const own = history.bodies[number], { q, v } = body.state, gone = Boolean(body.ended);
        own.q.set(q, at * own.size);
        own.v.set(v, at * own.size);
        if (gone) own.q.fill(NaN, at * own.size, (at + 1) * own.size);
        if (this.play.energy) {
          functions.energy(q, v, this.p, this.joules);
          own.energy.set(gone ? [NaN, NaN] : this.joules, 2 * at);
        }
        if (this.traced) {
          functions.traces(q, this.p, this.traced);
          own.trace.set(gone ? this.traced.fill(NaN) : this.traced, at * this.traced.length);
        }
      });
      if (this.band) {
        this.band.measure();
        history.spread.set(this.band.q, at * this.band.q.length);
      }
      if (this.domain) {
        this.distance = this.domain.distance(main.state.q, main.state.v, this.u);
        history.outside[at] = this.distance > 1 ? 1 : 0;
      }
    }
    // A change of one independent velocity, for all systems alike.
    kick(index, change) {
      const push = (body, p) => {
        if (body.ended) return;
        const moved = Float64Array.from(body.state.v);
        moved[index] += change;
        if (body.code.init(body.parked, this.t, body.state.q, moved, this.known, p) !== 0) return;
        body.code.copyState(body.parked, body.state);
        body.still();
      };
      for (const body of this.bodies) push(body, this.p);
      if (this.band) for (const body of this.band.bodies) push(body, body.p);
      this.left = 0;
      this.part = 1;
    }
    // Another value of a parameter: the states move onto the new constraints, or it is refused.
    set(index, value) {
      const old = this.p[index];
      this.p[index] = value;
      for (const { code, state, parked } of this.bodies) {
        code.copyState(state, parked);
        if (code.project(parked, this.t, this.p) === 0) continue;
        this.p[index] = old;
        return false;
      }
      for (const body of this.bodies) {
        body.code.copyState(body.parked, body.state);
        body.still();
      }
      if (this.band) this.band.start(this.t, this.main.state.q, this.main.state.v, this.known, this.p);
      return true;
    }
    // How far the model is from the truth in a coordinate, at a place of the history.
    difference(index, place) {
      const [truth, model] = this.history.bodies;
      return Math.abs(model.q[place * model.size + index] - truth.q[place * truth.size + index]);
    }
    record(on) { this.rows = on ? { run: 1, texts: [] } : null; }
    note() {
      const { texts, run } = this.rows;
      if (texts.length >= MOST_ROWS) return;
      const values = [run, this.t];
      for (const { state } of this.bodies) values.push(...state.q, ...state.v);
      values.push(...this.u.slice(0, this.play.inputs.length));
      texts.push(values.join());
    }
    // Columns as `mbdnode simulate` writes them, so that `mbdnode fit` reads them; the model's beside.
    csv() {
      const { coordinates, inputs } = this.play;
      const columns = [...coordinates.map((one) => one.name), ...coordinates.map((one) => one.rate)];
      const beside = this.truth ? columns.map((name) => `${name}_model`) : [];
      const head = ["run", "t", ...columns, ...beside, ...inputs.map((one) => one.name)];
      return [head.map(quoted).join(), ...this.rows.texts, ""].join("\n");
    }
  }

  // A name as a cell of a CSV file.
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  return { Motion, program };
})();
