"""From logs to a model that can be trusted as far as it says: the work behind `mbdnode fit`."""
