"""Two thousand starts of the cart-pole under bounded control: inside and outside what can be held.

Near upright the pole's unstable motion is `p = omega + a theta`, with `a^2 = g (m + M) / (M l)` and
`p' = a p - u / (M l)`. With `|u| <= U` no controller brings it back from `|p| >= U / (a M l)`, and
from less some can: that is the stabilizable region of the linear plant. The plant here is the
nonlinear one, so initial states are sampled from 0.7 of the region, and from 1.3 to 2.5 times it.

Inside, every loop must settle; outside, every loop must end in a status. None may raise.
"""

import collections
import math
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

COUNT = 1_000
BOUND, DT, SECONDS = 20.0, 0.05, 24.0
RATE = math.sqrt(9.81 * 2.0 / 0.5)
EDGE = BOUND * 2.0 / RATE


def starts(inside: bool, count: int) -> np.ndarray:
    """Rows of (theta, x, omega, v)."""
    random = np.random.default_rng(0 if inside else 1)
    low, high = (0.0, 0.7) if inside else (1.3, 2.5)
    p = random.choice([-1.0, 1.0], count) * EDGE * random.uniform(low, high, count)
    widest = 0.6 if inside else 1.2
    theta = random.uniform(-widest, widest, count)
    x, v = random.uniform(-1.0, 1.0, count), random.uniform(-1.0, 1.0, count)
    return np.column_stack([theta, x, p - RATE * theta, v])


def run(job) -> list[tuple[float | None, str, int]]:
    """The loops of some starts: when each settled, its verdict, its fallbacks."""
    mode, rows = job
    import mbdnode as mbd
    from mbdnode.mechanisms.cart_pole import CartPole

    cart = CartPole()
    limits = mbd.Limits(u_bounds=(-BOUND, BOUND))
    controller = mbd.MPC(cart, horizon=50, dt=DT, relinearize=mode, limits=limits)
    found = []
    for theta, x, omega, v in rows:
        loop = mbd.closed_loop(
            plant=cart,
            controller=controller,
            initial={"theta": theta, "x": x, "theta_dot": omega, "x_dot": v},
            steps=round(SECONDS / DT),
        )
        decisions = loop.decisions
        found.append((decisions.settled_at(), decisions.verdict(), decisions.fallbacks))
    return found


def study(mode: str, inside: bool, count: int) -> bool:
    """One set of starts; whether it did as it should."""
    began = time.perf_counter()
    jobs = [(mode, part) for part in np.array_split(starts(inside, count), 8)]
    with ProcessPoolExecutor(2) as pool:
        found = [one for part in pool.map(run, jobs) for one in part]
    settled = [when for when, _, _ in found if when is not None]
    kinds = collections.Counter(text.split(":")[0].split(" after ")[0] for _, text, _ in found)
    print(
        f"  {'inside ' if inside else 'outside'} {mode}: {len(settled)} of {count} settled", end=""
    )
    if settled:
        print(f", after {np.median(settled):.1f} s (median), {max(settled):.1f} s (most)", end="")
    fallbacks = sum(number for _, _, number in found)
    print(f"; {fallbacks} fallbacks; {time.perf_counter() - began:.0f} s")
    for text, number in kinds.most_common():
        print(f"      {number:5d}  {text}")
    sys.stdout.flush()
    return len(settled) == count or not inside


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    print(f"Cart-pole, |u| <= {BOUND:g} N, {count} starts each, {SECONDS:g} s of {DT} s steps")
    good = [study(mode, inside, count) for inside in (True, False) for mode in ("once", "each")]
    if not all(good):
        raise SystemExit("  missed: a start inside the region did not settle")
