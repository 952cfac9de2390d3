"""The one error for what a user asked for and cannot have.

A wrong name, a file that does not exist, a negative mass: the message says the rule, the value and
the way out. Any other exception is a mistake of this program.
"""


class UserError(ValueError):
    """A request that cannot be met as it stands.

    It is a `ValueError`, as for any function that is given a value it cannot use; the opposite
    does not hold, since NumPy and JAX raise `ValueError` for shapes that do not fit, which is
    never the user's doing.
    """
