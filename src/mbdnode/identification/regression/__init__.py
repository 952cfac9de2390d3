"""What is linear in its unknowns, by linear algebra: clean accelerations, equations in noise."""
