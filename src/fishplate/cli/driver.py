"""`fishplate driver`: the node driver. Flags keep DRANET's names where DRANET has them."""

import os
import re

import click

from fishplate.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Duration(click.ParamType[float]):
    """As Go writes it: 2s, 500ms, 1m30s."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value)
        parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            self.fail(f"{text!r} is no duration; write 2s, 500ms or 1m30s", param, ctx)
        return sum(float(number) * _UNITS[unit] for number, unit in parts)


class Verbosity(click.ParamType[int]):
    """klog's `-v=2` as well as `-v 2`."""

    name = "integer"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).removeprefix("=")
        if not text.isdecimal():
            self.fail(f"{text!r} is no number", param, ctx)
        return int(text)


@click.command(name="driver")
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig; without it the pod's service account.")
@click.option("--bind-address", default=":9177", show_default=True, help="Where /healthz, /readyz and /metrics are.")
@click.option(
    "--hostname-override", default="", metavar="NAME", help="This node's name. Else $NODE_NAME or the host's."
)
@click.option("--filter", "filter_", metavar="CEL", help="Which devices to publish: upstream's CEL dialect.")
@click.option(
    "--db-path",
    default="/run/fishplate/driver.db",
    show_default=True,
    help="The driver's memory. Empty keeps it in the process; another program's file is refused.",
)
@click.option(
    "--inventory-min-poll-interval", type=Duration(), default="2s", show_default=True, help="Between two scans."
)
@click.option(
    "--inventory-max-poll-interval",
    type=Duration(),
    default="1m",
    show_default=True,
    help="A scan at least this often.",
)
@click.option(
    "--inventory-poll-burst", type=click.IntRange(1), default=5, show_default=True, help="Scans without waiting."
)
@click.option(
    "--move-ib-interfaces",
    type=bool,
    default=False,
    show_default=True,
    help="Upstream moves IPoIB interfaces into pods. Not done here: only false is taken.",
)
@click.option("--cloud-provider-hint", default="", metavar="NAME", help="AZURE, webhook or NONE. Else by the firmware.")
@click.option(
    "--profile-provider",
    type=click.Choice(["cloud", "webhook", "none"]),
    default="cloud",
    show_default=True,
    help="Upstream's profiles configure interfaces, which stay where they are here: webhook is refused.",
)
@click.option(
    "--webhook-url", default="", metavar="URL", help="The webhook of attributes: http(s)://… or unix:///path."
)
@click.option("--kubelet-root-dir", default="/var/lib/kubelet", show_default=True, help="The kubelet's directory.")
@click.option("--feature-gates", default="", metavar="NAME=BOOL,…", help="Upstream's gates; see docs/driver.md.")
@click.option(
    "-v", "--v", "verbosity", type=Verbosity(), default=2, show_default=True, help="0 warnings, 2 the usual, 4 all."
)
@click.option("--driver-name", default="dra.net", show_default=True, help="Name of the DRA driver.")
@click.option("--root", default="/", show_default=True, help="Root of the host's /sys, /proc and /dev.")
@click.option("--size", default="", metavar="SIZE", help="The VM size, where it cannot be told from the hardware.")
@click.option("--cdi-dir", default="/var/run/cdi", show_default=True, help="Where the runtime looks for CDI specs.")
@click.option(
    "--nri-socket",
    default="/var/run/nri/nri.sock",
    show_default=True,
    help="The runtime's NRI socket. Empty does without: CDI alone.",
)
@click.option("--nri-index", default="10", show_default=True, help="Place among NRI plugins, two digits.")
@click.option(
    "--injection",
    type=click.Choice(["auto", "cdi", "nri"]),
    default="auto",
    show_default=True,
    help="auto: CDI, and NRI adds what is missing. cdi: NRI only checks. nri: no CDI.",
)
@click.option("--allow-management-nodes", is_flag=True, help="Claims may ask for umad and issm: power over the fabric.")
@click.option("--nccl-environment", is_flag=True, help="Set NCCL_IB_HCA to a container's own devices.")
@click.option("--metadata-file", default="", metavar="FILE", help="Facts about this node from a file.")
@click.option("--metadata-endpoint", default="", metavar="URL", help="Another address for Azure's metadata service.")
@click.option("--node-features-file", default="", metavar="FILE", help="Fabric and NVLink domain for NFD, as a file.")
@click.option("--publish-gpu-uuid", is_flag=True, help="The paired GPU's UUID on NICs: NVIDIA drivers before 0.5.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Log lines.")
def command(**flags: object) -> None:
    """Run the node driver: publish RDMA NICs, prepare claims, hand over exactly the devices allocated.

    It runs as a DaemonSet on every node with RDMA NICs; deploy/chart installs it. `/readyz` says what is missing while
    it is not ready. It ends cleanly on SIGTERM; prepared claims outlive it.
    """
    import asyncio

    from fishplate.driver.memory import use_one_arena

    use_one_arena()
    from fishplate.driver.logs import set_up_logging
    from fishplate.driver.options import Options
    from fishplate.driver.run import run_driver

    _refuse_unsupported(flags)
    for name in ("move_ib_interfaces", "profile_provider", "feature_gates"):
        del flags[name]
    flags["filter"] = flags.pop("filter_")
    options = Options(**flags)  # type: ignore[arg-type]
    _check(options.bind_address, options.nri_index, options.driver_name)
    if options.injection == "nri" and not options.nri_socket:
        raise UsageError("--injection nri needs an --nri-socket: nothing else would hand devices over")
    if options.inventory_min_poll_interval < 0.1 or options.inventory_max_poll_interval < 1.0:
        raise UsageError("scans without a pause", remedy="--inventory-min-poll-interval from 100ms, -max- from 1s")
    set_up_logging(options.log_format, options.verbosity)
    os.umask(0o022)
    asyncio.run(run_driver(options))


def _refuse_unsupported(flags: dict[str, object]) -> None:
    """What upstream does and this release does not is refused, never ignored."""
    if flags["move_ib_interfaces"]:
        raise UsageError(
            "--move-ib-interfaces=true: IPoIB interfaces stay on the host in this release",
            remedy="leave the flag out; pods need no IPoIB interface for RDMA",
        )
    if flags["profile_provider"] == "webhook":
        raise UsageError(
            "--profile-provider webhook: profiles configure network interfaces, which this release does not move",
            remedy="use --profile-provider none",
        )
    for gate in filter(None, str(flags["feature_gates"]).split(",")):
        name, _, value = gate.partition("=")
        if name == "PersistentResourceSliceAttributes":
            continue  # what it asks for is what happens anyway
        if value.lower() != "false":
            raise UsageError(
                f"--feature-gates: {name or gate} is not known here",
                remedy="known: PersistentResourceSliceAttributes, which is always on",
            )


def _check(bind_address: str, nri_index: str, driver_name: str) -> None:
    from fishplate.topology.names import is_dns_subdomain

    _, _, port = bind_address.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--bind-address {bind_address!r} has no port", remedy="write :9177 or 127.0.0.1:9177")
    if not re.fullmatch(r"\d\d", nri_index):
        raise UsageError(f"--nri-index {nri_index!r} is not two digits")
    if not is_dns_subdomain(driver_name, limit=63):
        raise UsageError(f"--driver-name {driver_name[:80]!r} is no name for a driver", remedy="write it as a domain")
