"""A model as an FMU: FMI 2.0 and 3.0, Model Exchange and Co-Simulation in one file."""
