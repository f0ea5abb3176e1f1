"""The two read-only disks of a node: the tools, cached, and the payload, made anew at every `up`.

The payload carries the project as it is in the working tree, so a code change costs a second, not a root file system.
"""

import compileall
import json
import os
import shutil
import sys
from pathlib import Path

from lab import HERE, TREE
from lab.binaries import build_wrapper, node_binaries
from lab.cache import cached, digest_files
from lab.credentials import Credentials, node_user, write_kubeconfig
from lab.host import run_checked
from lab.image import ImageSettings, write_image
from lab.network import API_PORT, KUBELET_PORT, Link, NodeNetwork
from lab.rootfs import make_disk, read_packages


def node_tools(system: Path) -> Path:
    """The disk with kubelet, containerd and the images every node starts with."""
    binaries, pause = node_binaries(), build_wrapper("pause") / "pause"
    names = [f"{b.parent.name}/{b.name}" for b in (*binaries, pause)]

    def build(out: Path) -> None:
        content = out / "content"
        (content / "bin").mkdir(parents=True)
        (content / "images").mkdir()
        for binary in binaries:
            shutil.copy2(binary, content / "bin" / binary.name)
        write_pause(pause, content / "images" / "pause.tar", out)
        write_busybox(system / "busybox", content / "images" / "busybox.tar", out)
        make_disk(content, out / "tools.img")
        shutil.rmtree(content)

    own = [HERE / name for name in ("payload.py", "image.py")]
    return cached("node-tools", digest_files(own, system.name, *names), build) / "tools.img"


def write_pause(binary: Path, archive: Path, scratch: Path) -> None:
    root = scratch / "pause"
    root.mkdir()
    shutil.copy2(binary, root / "pause")
    write_image(root, archive, ImageSettings(name="lab.test/pause:1", entrypoint=("/pause",)))
    shutil.rmtree(root)


def write_busybox(binary: Path, archive: Path, scratch: Path) -> None:
    """The plain container of the tests: a shell and everyday commands, 2 MB."""
    root = scratch / "busybox"
    for name in ("bin", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    shutil.copy2(binary, root / "bin" / "busybox")
    listed = run_checked([str(binary), "--list"], what="busybox --list").decode().split()
    for name in listed:
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")
    write_image(root, archive, ImageSettings(name="lab.test/busybox:1", entrypoint=("/bin/sh",)))
    shutil.rmtree(root)


def run_wheels() -> Path:
    """The wheels that the program runs with, for the node's Python 3.11."""
    requirements = TREE / "requirements" / "run.txt"

    def build(out: Path) -> None:
        argv = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes"]
        argv += ["--only-binary=:all:", "--python-version", "3.11", "--target", str(out / "wheels")]
        run_checked([*argv, "-r", str(requirements)], what="pip install", environment=dict(os.environ))

    return cached("wheels", digest_files([requirements]), build) / "wheels"


def node_settings(network: NodeNetwork) -> str:
    """The environment of everything that runs on the node, as shell assignments."""
    values = {
        "LAB_NODE": network.name,
        "LAB_ADDRESS": network.address,
        "LAB_GATEWAY": network.gateway,
        "LAB_API_HOST": network.api,
        "LAB_MODULES": " ".join(read_packages().boot),
        "LAB_RDMA": " ".join(link.name for link in network.rdma),
    }
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def cni_config(network: NodeNetwork) -> dict[str, object]:
    ranges = [[{"subnet": network.pods}]]
    ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/cni"}
    return {"cniVersion": "1.0.0", "name": "lab", "plugins": [{"type": "ptp", "mtu": 1500, "ipam": ipam}]}


def kubelet_config(feature_gates: str) -> dict[str, object]:
    gates = dict(pair.split("=") for pair in feature_gates.split(",") if pair)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": "/opt/lab/payload/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "failSwapOn": False,
        "port": KUBELET_PORT,
        "resolvConf": "",
        # The disk is small and thrown away; losing images to the collector would only confuse.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "20Mi"},
        # Emulation is slow: do not wait for what is already there.
        "nodeStatusUpdateFrequency": "5s",
        "featureGates": {name: value == "true" for name, value in gates.items()},
    }


def _write_node(out: Path, network: NodeNetwork, credentials: Credentials) -> None:
    out.mkdir(parents=True)
    (out / "settings").write_text(node_settings(network))
    links: tuple[Link, ...] = (network.mgmt, network.pod, *network.rdma)
    (out / "links").write_text("".join(f"{link.mac} {link.name} {link.address}\n" for link in links))
    (out / "routes").write_text("".join(f"{to} {via}\n" for to, via in network.routes))
    (out / "cni.conflist").write_text(json.dumps(cni_config(network)))
    key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", network.name, "-f", str(out / "ssh_host_key")]
    run_checked(key, what="ssh-keygen")
    server = f"https://{network.api}:{API_PORT}"
    write_kubeconfig(out / "kubelet.kubeconfig", server, credentials, node_user(network.name))
    write_kubeconfig(out / "gpu-driver.kubeconfig", server, credentials, "lab:gpu-driver")
    write_kubeconfig(out / "admin.kubeconfig", server, credentials, "admin")


def write_payload(state: Path, networks: list[NodeNetwork], credentials: Credentials, feature_gates: str) -> Path:
    """The payload disk, and the key that opens the nodes, in the state directory."""
    content = state / "payload"
    shutil.copytree(HERE / "node", content / "node")
    shutil.copytree(TREE / "src", content / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(run_wheels(), content / "wheels")
    compileall.compile_dir(content / "src", quiet=2)
    (content / "kubelet.yaml").write_text(json.dumps(kubelet_config(feature_gates)))
    shutil.copy2(credentials.authority, content / "ca.crt")
    key = state / "ssh_key"
    run_checked(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(key)], what="ssh-keygen")
    shutil.copy2(state / "ssh_key.pub", content / "authorized_keys")
    for network in networks:
        _write_node(content / "nodes" / network.name, network, credentials)
        shutil.copy2(content / "nodes" / network.name / "ssh_host_key.pub", state / f"{network.name}.pub")
    make_disk(content, state / "payload.img")
    shutil.rmtree(content)
    return state / "payload.img"
