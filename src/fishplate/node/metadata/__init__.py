"""What others know of this node and cannot be read from it: placement group, VM size, fabric, leaf switch.

A provider (Azure's instance metadata, a file, a webhook, none) answers once when asked; the refresher asks it again and
again, keeps the last good answer and never lets anybody wait. Whatever a provider says is taken for hostile: bounded in
size and time, checked by type, and never allowed to speak over what the driver measured itself.
"""

from fishplate.node.metadata.choice import choose_provider
from fishplate.node.metadata.facts import DeviceId, FactsState, NodeFacts, Provider, ProviderName
from fishplate.node.metadata.refresher import Refresher

__all__ = ["DeviceId", "FactsState", "NodeFacts", "Provider", "ProviderName", "Refresher", "choose_provider"]
