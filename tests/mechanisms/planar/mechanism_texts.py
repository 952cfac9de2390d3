"""A mechanism file with every kind of part, for several tests."""

# A driven crank draws a cart by a rigid rod; a wheel rolls on the cart; a flap is welded to an arm
# that swings on it against springs and dampers.
EVERYTHING = """
gravity = [0.5, -9.81]

[bodies]
crank = { mass = 1.0, inertia = 0.1, center = [0.2, 0.0] }
cart = { mass = 3.0, inertia = 0.4, center = [2.0, 0.3] }
wheel = { mass = 0.5, inertia = 0.01, center = [2.1, 0.7], angle = 0.4 }
arm = { mass = 0.7, inertia = 0.05, center = [1.5, 0.8], angle = 1.2 }
flap = { mass = 0.2, inertia = 0.01, center = [1.6, 1.2], angle = 1.5 }

[joints]
bearing = { type = "revolute", bodies = ["ground", "crank"], points = [[0, 0], [-0.2, 0]] }
hinge = { type = "revolute", bodies = ["cart", "arm"], points = [[-0.4, 0.2], [-0.3, 0]] }
weld = { type = "fixed", bodies = ["arm", "flap"], points = [[0.3, 0], [-0.1, 0]], angle = 0.3 }

[springs]
twist = { type = "torsional", bodies = ["cart", "arm"], stiffness = 3.0, free_angle = "60 deg" }

[dampers]
oil = { type = "linear", bodies = ["ground", "flap"], points = [[1, 2], [0.1, 0]], damping = 2.0 }
grease = { type = "torsional", bodies = ["cart", "arm"], damping = 0.2 }

[forces]
push = { body = "cart", point = [0.1, 0.0] }
jet = { body = "flap", frame = "body", value = 1.5 }

[torques]
motor = { bodies = ["cart", "arm"] }
steady = { bodies = ["ground", "wheel"], value = 0.1 }

[drives]
turn = { joint = "bearing", motion = "rate", rate = 2.0, start = 0.3 }

[joints.rail]
type = "prismatic"
bodies = ["ground", "cart"]
points = [[0, 0.3], [0, 0]]
direction = 0.1
angle = 0.1

[joints.rod]
type = "distance"
bodies = ["crank", "cart"]
points = [[0.2, 0], [-0.3, 0]]
length = 1.4

[joints.floor]
type = "rolling"
bodies = ["cart", "wheel"]
points = [[0, 0.1], [0, 0.05]]
radius = 0.2

[springs.coil]
type = "linear"
bodies = ["ground", "wheel"]
points = [[3, 1], [0, 0]]
stiffness = 20
free_length = 0.5
"""
