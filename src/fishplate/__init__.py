"""Fishplate lines up GPUs and RDMA NICs on Kubernetes, and proves it."""

__version__ = "0.1.0"
