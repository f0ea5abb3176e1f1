"""A real Kubernetes control plane and real RDMA nodes on one small machine: see docs/lab.md."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent
