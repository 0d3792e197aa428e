"""The public names of `dovetail.leak`, once, with their home."""

from .exact import exact_vulnerability as exact_vulnerability
from .linkage import Linkage as Linkage
from .linkage import linkage as linkage
from .several_messages import MessageVulnerability as MessageVulnerability
from .several_messages import message_vulnerability as message_vulnerability
from .vulnerability import Vulnerability as Vulnerability

__all__: list[str]
