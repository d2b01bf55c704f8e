"""What the aggregator says of its own work; ``listening.server_log`` decides where it goes."""

from __future__ import annotations

import logging

LOG = logging.getLogger("slotscope.serve")
