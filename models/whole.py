"""A metered call answers in one piece, whoever watches: a stream's usage cannot be trusted.

LangChain adds up what the chunks of a stream report, and some providers report a running total in
each: the tokens of a call would count many times over.
"""

from __future__ import annotations

import sys
from typing import Any


def unwatched() -> dict[str, Any]:
    """Return how a chat model is to be invoked so that nobody's handler makes it stream.

    LangGraph's stream modes `messages` and `events` attach such handlers. All others, tracers above
    all, stay.
    """
    streaming = sys.modules.get("langchain_core.tracers._streaming")
    config = sys.modules.get("langchain_core.runnables.config")
    if streaming is None or config is None:
        return {}
    callbacks = config.ensure_config().get("callbacks") or []
    kinds = tuple(
        kind
        for name in ("_StreamingCallbackHandler", "_V2StreamingCallbackHandler")
        if (kind := getattr(streaming, name, None)) is not None
    )
    handlers = callbacks if isinstance(callbacks, list) else callbacks.handlers
    watching = [each for each in handlers if isinstance(each, kinds)]
    if not watching:
        return {}
    if isinstance(callbacks, list):
        return {"config": {"callbacks": [each for each in callbacks if each not in watching]}}
    rest = callbacks.copy()
    for each in watching:
        rest.remove_handler(each)
    return {"config": {"callbacks": rest}}
