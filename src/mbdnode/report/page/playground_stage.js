"use strict";
// The stage of a playground: the mechanism as it is now, a camera that keeps it in view, and a hand
// that drags it. All positions come from the drawing's own code, which the page carries.
const stage = (() => {
  const TAIL_S = 3, REACH_PX = 44, SLOW_S = 0.09, WIDEST = 2.2;
  // The drawing of a play: parts, ground and paths from coordinates and parameters.
  class Scene {
    constructor(motion) {
      const { scene } = motion.play;
      Object.assign(this, { motion, data: scene, code: motion.functions });
      this.numbers = new Float64Array(scene.looks.reduce((sum, look) => sum + look.count, 0));
      this.still = new Float64Array(scene.ground.reduce((sum, look) => sum + look.count, 0));
      this.places = [];
      let at = 0;
      for (const look of scene.looks) { this.places.push(at); at += look.count; }
      this.pose = new Float64Array(motion.main.code.NQ);
      this.reset();
    }
    reset() {
      this.poses = Float64Array.from(this.data.poses.flat());
      this.stale = true;
    }
    parts(q) {
      this.code.parts(q, this.motion.p, this.numbers);
      return this.numbers;
    }
    // The ground reaches as far as the motion has: poses with the extremes of every coordinate.
    ground(q) {
      const size = q.length, { poses } = this;
      for (let i = 0; i < size; i++) {
        for (const [row, farther] of [[2 * i, q[i] < poses[2 * i * size + i]], [2 * i + 1, q[i] > poses[(2 * i + 1) * size + i]]]) {
          if (!farther) continue;
          poses.set(q, row * size);
          this.stale = true;
        }
      }
      if (this.stale) {
        this.code.ground(poses, this.motion.p, this.still);
        this.stale = false;
      }
      return this.still;
    }
    // The box around all parts, in meters.
    box(numbers) {
      const box = [Infinity, Infinity, -Infinity, -Infinity];
      this.data.looks.forEach((look, number) => {
        if (!look.held) return;
        const at = this.places[number], room = look.kind === "disc" ? numbers[at + 2] : 0;
        for (let i = at; i + 1 < at + look.count; i += 2) {
          const x = numbers[i], y = numbers[i + 1];
          box[0] = Math.min(box[0], x - room);
          box[1] = Math.min(box[1], y - room);
          box[2] = Math.max(box[2], x + room);
          box[3] = Math.max(box[3], y + room);
        }
      });
      return box;
    }
    // The part of the drawing nearest to a point, as weights of its numbers; null if all are far.
    grab(numbers, x, y, reach) {
      let best = null;
      const offer = (at, weights, px, py, size) => {
        const apart = Math.max(Math.hypot(px - x, py - y) - size, 0);
        // Of two that are equally near, the later one lies on top.
        if (apart <= reach && (best === null || apart <= best.apart)) best = { at, weights, apart, dx: px - x, dy: py - y };
      };
      this.data.looks.forEach((look, number) => {
        if (!look.held) return;
        const at = this.places[number], n = numbers;
        if (look.kind === "link") {
          const [x0, y0, x1, y1] = n.subarray(at, at + 4), dx = x1 - x0, dy = y1 - y0;
          const along = Math.min(Math.max(((x - x0) * dx + (y - y0) * dy) / Math.max(dx * dx + dy * dy, 1e-12), 0), 1);
          offer(at, [1 - along, along], x0 + along * dx, y0 + along * dy, 0);
        } else if (look.kind === "area") {
          const count = look.count / 2;
          let px = 0, py = 0;
          for (let i = 0; i < count; i++) { px += n[at + 2 * i] / count; py += n[at + 2 * i + 1] / count; }
          const size = Math.hypot(n[at] - px, n[at + 1] - py);
          offer(at, new Array(count).fill(1 / count), px, py, 0.8 * size);
        } else offer(at, [1], n[at], n[at + 1], n[at + 2]);
      });
      return best;
    }
    // Where what is held is.
    held(hold, q) {
      const numbers = this.parts(q);
      let x = 0, y = 0;
      hold.weights.forEach((weight, i) => {
        x += weight * numbers[hold.at + 2 * i];
        y += weight * numbers[hold.at + 2 * i + 1];
      });
      return [x, y];
    }
  }

  // Least squares with damping: the smallest change that brings two rows nearest to a target.
  function solve(rows, target, damping) {
    // (J J^T + d) w = target, change = J^T w: two by two, however many coordinates there are.
    const [a, b] = rows, dot = (u, v) => u.reduce((sum, x, i) => sum + x * v[i], 0);
    const aa = dot(a, a) + damping, bb = dot(b, b) + damping, ab = dot(a, b);
    const det = aa * bb - ab * ab;
    if (!(det > 0)) return a.map(() => 0);
    const w0 = (bb * target[0] - ab * target[1]) / det, w1 = (aa * target[1] - ab * target[0]) / det;
    return a.map((x, i) => x * w0 + b[i] * w1);
  }

  // A hand that holds a point of the mechanism and moves it, with the constraints kept.
  class Hand {
    constructor(scene) {
      this.scene = scene;
      this.motion = scene.motion;
      this.free = [];
      this.motion.known.forEach((yes, i) => { if (yes && i < this.motion.main.code.NQ) this.free.push(i); });
      this.moving = [];
      this.motion.known.forEach((yes, i) => { if (yes && i >= this.motion.main.code.NQ) this.moving.push(i - this.motion.main.code.NQ); });
      this.scratch = this.motion.main.code.newState();
    }
    complete(q, v) {
      const { motion, scratch } = this;
      return motion.main.code.init(scratch, 0, q, v, motion.known, motion.p) === 0 ? scratch : null;
    }
    take(hold) {
      this.hold = hold;
      this.q = Float64Array.from(this.motion.main.state.q);
      this.none = new Float64Array(this.q.length);
    }
    // How the held point moves with each independent coordinate: columns of a Jacobian.
    slopes() {
      const h = 1e-6, [x0, y0] = this.scene.held(this.hold, this.q), rows = [[], []];
      for (const index of this.free) {
        const tried = Float64Array.from(this.q);
        tried[index] += h;
        const state = this.complete(tried, this.none);
        const [x, y] = state ? this.scene.held(this.hold, state.q) : [x0, y0];
        rows[0].push((x - x0) / h);
        rows[1].push((y - y0) / h);
      }
      return rows;
    }
    // Toward a place in meters: a few damped steps, none of which leaps.
    pull(x, y, leap) {
      for (let round = 0; round < 3; round++) {
        const [px, py] = this.scene.held(this.hold, this.q);
        let dx = x - px, dy = y - py;
        const far = Math.hypot(dx, dy);
        if (far < 1e-4 * leap) return;
        if (far > leap) { dx *= leap / far; dy *= leap / far; }
        const rows = this.slopes(), size = Math.max(...rows.flat().map(Math.abs), 1e-9);
        const change = solve(rows, [dx, dy], 1e-3 * size * size);
        const tried = Float64Array.from(this.q);
        this.free.forEach((index, i) => { tried[index] += change[i]; });
        const state = this.complete(tried, this.none);
        if (!state) return;
        this.q.set(state.q);
      }
    }
    // Let go with a velocity of the held point.
    thrown(vx, vy) {
      const rows = this.slopes(), size = Math.max(...rows.flat().map(Math.abs), 1e-9);
      const speeds = solve(rows, [vx, vy], 1e-4 * size * size), v = new Float64Array(this.q.length);
      // Positions and velocities may have other independent ones where a constraint is nonholonomic.
      this.free.forEach((index, i) => { if (this.moving.includes(index)) v[index] = speeds[i]; });
      return v;
    }
  }

  // Follows what moves: it widens as soon as something leaves the view, up to a limit, then shifts.
  class Camera {
    constructor(view) { this.home = view; this.reset(); }
    reset() { this.view = [...this.home]; this.goal = [...this.home]; }
    follow(box) {
      if (!box.every(Number.isFinite)) return;
      const { goal, home } = this, room = 0.04 * (home[2] - home[0]);
      for (const [low, high] of [[0, 2], [1, 3]]) {
        const most = WIDEST * (home[high] - home[low]);
        // What has run away to many times its size is not followed.
        if (box[high] - box[low] > 4 * most) continue;
        const left = box[low] - room, right = box[high] + room;
        if (left < goal[low]) {
          goal[low] = left;
          goal[high] = Math.max(Math.min(goal[high], left + most), right);
        }
        if (right > goal[high]) {
          goal[high] = right;
          goal[low] = Math.min(Math.max(goal[low], right - most), left);
        }
      }
      this.view = this.view.map((x, i) => x + 0.2 * (goal[i] - x));
    }
  }

  // One canvas with one or two systems on it.
  class Pane {
    constructor(canvas, scene, camera, layers) {
      Object.assign(this, { canvas, scene, camera, layers, hover: null });
    }
    draw(colors) {
      const { scene } = this, sheet = parts.sheet(this.canvas);
      if (!sheet) return;
      const c = sheet.context, thick = Math.min(Math.max(Math.min(sheet.width, sheet.height) / 380, 0.85), 2.6);
      const pen = (this.pen = new parts.Pen(sheet, this.camera.view, colors, thick));
      this.ground(pen);
      for (const { body, number, ghost } of this.layers) {
        pen.ghost = ghost;
        this.trail(pen, number, ghost ? 2.4 : 1.6);
        c.globalAlpha = body.ended ? 0.35 : ghost ? 0.6 : 1;
        this.parts(pen, scene.parts(this.pose(body)));
        c.globalAlpha = 1;
      }
      pen.ghost = false;
      if (this.hover) this.ring(pen, this.hover);
    }
    pose(body) {
      const { motion, pose } = this.scene;
      return body.pose(motion.part, motion.dt, pose);
    }
    ground(pen) {
      const { scene } = this, { motion } = scene, still = scene.ground(motion.main.state.q);
      let at = 0;
      for (const look of scene.data.ground) {
        parts.draw(pen, still.subarray(at, at + look.count), look);
        at += look.count;
      }
    }
    parts(pen, numbers) {
      const { places, data } = this.scene;
      data.looks.forEach((look, i) => {
        parts.draw(pen, numbers.subarray(places[i], places[i] + look.count), look);
      });
    }
    // The path of a point fades; on the paper of a chart recorder it stays until the paper ends.
    trail(pen, number, width) {
      const { motion, data } = this.scene, { history } = motion, own = history.bodies[number];
      const { paper } = data, seconds = paper ? paper.seconds : TAIL_S;
      const count = data.colors.length, now = motion.t - (1 - motion.part) * motion.dt;
      data.colors.forEach((color, k) => {
        // Pieces of a few samples, each of one strength.
        let piece = [];
        const ink = (age) => {
          if (piece.length > 1) {
            pen.context.globalAlpha = paper ? 0.9 : 0.8 * Math.max(1 - age / seconds, 0);
            pen.path(piece, color, width);
          }
        };
        for (let i = history.length - 1; i >= 0; i--) {
          const place = history.place(i), age = now - history.t[place];
          if (age > seconds) break;
          const x = own.trace[(place * count + k) * 2];
          const y = paper ? paper.top - (paper.length * age) / seconds : own.trace[(place * count + k) * 2 + 1];
          if (!Number.isFinite(x)) { ink(age); piece = []; continue; }
          if (age < 0) continue;
          piece.push([x, y]);
          if (!paper && piece.length > 8) { ink(age); piece = [[x, y]]; }
        }
        ink(0.9 * seconds);
      });
      pen.context.globalAlpha = 1;
    }
    ring(pen, [x, y]) {
      const c = pen.context, [px, py] = pen.place([x, y]);
      c.beginPath();
      c.arc(px, py, 13 * pen.thick, 0, 2 * Math.PI);
      c.strokeStyle = pen.colors.accent;
      c.globalAlpha = 0.9;
      c.lineWidth = 2 * pen.thick;
      c.stroke();
      c.globalAlpha = 0.12;
      c.fillStyle = pen.colors.accent;
      c.fill();
      c.globalAlpha = 1;
    }
    // From the pointer to meters.
    place(event) {
      const box = this.canvas.getBoundingClientRect(), { pen } = this;
      return [(event.clientX - box.left - pen.x) / pen.scale, (pen.y - (event.clientY - box.top)) / pen.scale];
    }
  }

  // The pointer on a pane: hover, drag, throw. `act` has `grab`, `drag` and `drop`.
  function listen(pane, hand, act) {
    const { canvas, scene } = pane;
    let path = [];
    const find = (event) => {
      if (!pane.pen) return null;
      const [x, y] = pane.place(event), body = pane.layers[pane.layers.length - 1].body;
      return scene.grab(scene.parts(pane.pose(body)), x, y, REACH_PX / pane.pen.scale);
    };
    canvas.addEventListener("pointerdown", (event) => {
      const hold = event.button === 0 ? find(event) : null;
      if (!hold) return;
      event.preventDefault();
      canvas.setPointerCapture(event.pointerId);
      canvas.focus({ preventScroll: true });
      hand.take(hold);
      hand.offset = [hold.dx, hold.dy];
      path = [];
      act.grab();
      follow(event);
    });
    const follow = (event) => {
      const [x, y] = pane.place(event);
      hand.target = [x + hand.offset[0], y + hand.offset[1]];
      path.push([event.timeStamp / 1000, ...hand.target]);
      while (path.length > 2 && path[path.length - 1][0] - path[0][0] > SLOW_S) path.shift();
    };
    canvas.addEventListener("pointermove", (event) => {
      if (hand.hold) return follow(event);
      const found = event.pointerType === "mouse" ? find(event) : null;
      canvas.style.cursor = found ? "grab" : "";
      pane.hover = found ? scene.held(found, pane.pose(pane.layers[pane.layers.length - 1].body)) : null;
      act.drag();
    });
    canvas.addEventListener("pointerleave", () => { pane.hover = null; act.drag(); });
    const drop = (event) => {
      if (!hand.hold) return;
      const first = path[0], last = path[path.length - 1], seconds = last[0] - first[0];
      // Who stopped before letting go does not throw.
      const idle = event.timeStamp / 1000 - last[0] > SLOW_S || seconds <= 0;
      const speed = idle ? [0, 0] : [(last[1] - first[1]) / seconds, (last[2] - first[2]) / seconds];
      const v = hand.thrown(...speed), { q } = hand;
      hand.hold = null;
      pane.hover = null;
      act.drop(q, v);
    };
    canvas.addEventListener("pointerup", drop);
    canvas.addEventListener("pointercancel", drop);
    // A finger on the mechanism drags it; beside it, the page scrolls.
    canvas.addEventListener("touchstart", (event) => { if (hand.hold || find(event.touches[0])) event.preventDefault(); }, { passive: false });
  }

  return { Scene, Hand, Camera, Pane, listen };
})();
