"""The report of a fit: its page and its figures."""
