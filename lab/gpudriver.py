"""The stand-in GPU driver on a node: start it with a profile, change the profile, stop it."""

from fishplate.errors import UnknownNameError
from lab import HERE
from lab.guest import Node

_PID = "/run/lab/gpudriver.pid"
_STOP = f'if [ -f {_PID} ]; then kill "$(cat {_PID})" || true; rm -f {_PID}; fi'


def profile_names() -> list[str]:
    return sorted(path.stem for path in (HERE / "profiles").glob("*.json"))


def stop_gpu_driver(node: Node) -> None:
    node.run(_STOP)


def start_gpu_driver(node: Node, profile: str) -> None:
    """Publish the node's stand-ins as `profile` says; a driver that runs already is replaced."""
    if profile not in profile_names():
        raise UnknownNameError(f"no profile is called {profile}", nearest=tuple(profile_names()), where="lab/profiles")
    argv = (
        f"gpudriver --node-name={node.name} --profile=/opt/lab/payload/profiles/{profile}.json "
        f"--kubeconfig=/opt/lab/payload/nodes/{node.name}/gpu-driver.kubeconfig"
    )
    start = f"setsid sh -c 'echo $$ >{_PID}; exec {argv}' </dev/null >>/var/log/gpudriver.log 2>&1 &"
    node.run(f"{_STOP}\n{start}")
