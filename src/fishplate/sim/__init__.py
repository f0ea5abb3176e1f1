"""Simulated machines: trees of files that look like a host of the catalogue to every reader."""
