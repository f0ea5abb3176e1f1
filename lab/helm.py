"""The real Helm, built like the rest, and the chart that it installs."""

import os
import subprocess
from pathlib import Path

from lab import TREE
from lab.binaries import build_wrapper

CHART = TREE / "deploy" / "chart" / "fishplate"


def build_helm() -> Path:
    return build_wrapper("helm") / "helm"


def helm_argv(kubeconfig: Path) -> list[str]:
    return [str(build_helm()), "--kubeconfig", str(kubeconfig)]


def run_helm(*args: str, home: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Helm without a cluster: lint, template. What it wants to remember goes to `home`."""
    environment = {**os.environ, "HOME": str(home), "KUBECONFIG": "/nonexistent"}
    argv = [str(build_helm()), *args]
    return subprocess.run(
        argv, input=stdin or "", env=environment, capture_output=True, text=True, timeout=60, check=False
    )
