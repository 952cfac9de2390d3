"""Speed and quality, outside the test run."""
