"""Which provider to ask: by DRANET's `--cloud-provider-hint`, by a file, or by what the firmware says."""

from collections.abc import Sequence

from fishplate.errors import UnknownNameError, UsageError
from fishplate.node.metadata.facts import NoProvider, Provider

_KNOWN = ("AZURE", "webhook", "NONE")
# Clouds of upstream's whose metadata services we do not read.
_ELSEWHERE = ("ALIBABA", "AWS", "CKS", "GCE", "OKE")
_INSTEAD = "use the file or webhook provider: --metadata-file PATH, or --cloud-provider-hint webhook --webhook-url URL"


def choose_provider(
    hint: str = "", *, cloud: str = "", file: str = "", webhook_url: str = "", azure_endpoint: str = ""
) -> Provider:
    """The provider for these flags. `cloud` is what discovery read from the firmware (Host.cloud): without a hint
    nobody is probed over the network, where upstream asks six addresses in turn. Raises UsageError."""
    if file:
        if hint not in ("", "NONE", "none"):
            raise UsageError(f"--metadata-file and --cloud-provider-hint {hint} exclude each other", remedy="keep one")
        from fishplate.node.metadata.file import FileProvider

        return FileProvider(file)
    match hint.upper() or _detect(cloud, webhook_url):
        case "AZURE":
            from fishplate.node.metadata.azure import ENDPOINT, AzureProvider

            return AzureProvider(azure_endpoint or ENDPOINT)
        case "WEBHOOK":
            if not webhook_url:
                raise UsageError("the webhook provider needs an address", remedy="add --webhook-url URL")
            from fishplate.node.metadata.webhook import WebhookProvider

            return WebhookProvider(webhook_url)
        case "NONE":
            return NoProvider()
        case other if other in _ELSEWHERE:
            raise UsageError(f"--cloud-provider-hint {hint}: not supported", remedy=_INSTEAD)
    raise UnknownNameError(f"--cloud-provider-hint {hint}: nobody knows this provider", nearest=_KNOWN, remedy=_known())


def _detect(cloud: str, webhook_url: str) -> str:
    """Upstream tries the clouds first and the webhook last."""
    if cloud == "azure":
        return "AZURE"
    return "WEBHOOK" if webhook_url else "NONE"


def _known(names: Sequence[str] = _KNOWN) -> str:
    return f"use one of {', '.join(names)}, or --metadata-file"
