"""The stand-in GPU driver on a node: start it with a profile, change the profile, stop it."""

from fishplate.sim.gpu_drivers import load_profile
from lab.guest import Node

_PID = "/run/lab/gpudriver.pid"
_PROFILES = "/opt/lab/payload/src/fishplate/sim/data/gpu_drivers"
_STOP = f'if [ -f {_PID} ]; then kill "$(cat {_PID})" || true; rm -f {_PID}; fi'


def stop_gpu_driver(node: Node) -> None:
    node.run(_STOP)


def start_gpu_driver(node: Node, profile: str) -> None:
    """Publish the node's stand-ins as `profile` says; a driver that runs already is replaced."""
    load_profile(profile)  # a name nobody knows is refused here, not in the node's log
    argv = (
        f"gpudriver --node-name={node.name} --profile={_PROFILES}/{profile}.json "
        f"--kubeconfig=/opt/lab/payload/nodes/{node.name}/gpu-driver.kubeconfig"
    )
    start = f"setsid sh -c 'echo $$ >{_PID}; exec {argv}' </dev/null >>/var/log/gpudriver.log 2>&1 &"
    node.run(f"{_STOP}\n{start}")
