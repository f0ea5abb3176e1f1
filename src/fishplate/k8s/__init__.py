"""Kubernetes objects as plain values, and how they are written and read."""
