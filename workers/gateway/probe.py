"""One tiny call that shows whether key, network and model work. It is of no job, so no budget covers it."""

import json
from typing import Any

from farm.models import ModelTable
from workers.gateway.outcome import Next, classify
from workers.gateway.upstream import Upstream

#: Header with the secret of the gateway's own user; boxes have none.
PROBE = "x-farm-probe"
#: Version of the API that it asks.
_VERSION = "2023-06-01"


async def probe(upstream: Upstream, models: ModelTable) -> dict[str, Any]:
    """What the cheapest model says to a word: works, or why not."""
    model = min(models.models.values(), key=lambda each: (each.prices.output, each.prices.input))
    asked = {
        "model": model.id,
        "max_tokens": 1,
        "stream": True,
        "messages": [{"role": "user", "content": "Say: yes"}],
    }
    heard = await upstream.call(json.dumps(asked).encode(), _VERSION, bearer=False)
    outcome = classify(heard)
    cost = 0 if heard.reading is None else model.cost(heard.reading.tokens)
    works = outcome.next is Next.KEEP
    return {
        "works": works,
        "why": outcome.why,
        "model": model.id,
        "seconds": round(heard.seconds, 2),
        "micro_usd": cost,
    }
