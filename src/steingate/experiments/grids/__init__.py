"""The published comparisons, one short file each, and a quick one. ``tasks`` has the names they share."""
