"""The report of a reproduction: the paper's tables and figures, and the page that shows them."""
