"""Measurements. Each compares two things in one run and prints a ratio: seconds alone say little on another machine."""
