"""What the pattern of the constraints saves: entries that are constant, zero, or never written."""
