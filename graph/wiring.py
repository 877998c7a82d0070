"""The shape of the loop: which node follows which. What a node does is passed in.

Keeping the bodies out lets this folder stay below `nodes/`, and lets a test drive every edge with
three-line stand-ins. A node says where it wants to go by the state key `go`; `NEXT` says where it
may. There are no other edges, so the drawing is the whole truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from plangate.graph.bridge import bridged
from plangate.graph.state import Input, Node, Output, State

NEXT: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "planner": ("validator", "human_gate", "settle"),
        "validator": ("critic", "planner", "human_gate", "replanner", "settle"),
        "critic": ("human_gate", "planner", "settle"),
        "human_gate": (
            "executor",
            "planner",
            "validator",
            "human_gate",
            "reflector",
            "verifier",
            "settle",
        ),
        "executor": ("verifier", "validator", "human_gate", "reflector", "settle"),
        "verifier": ("settle", "reflector", "executor", "human_gate"),
        "reflector": ("replanner", "human_gate", "settle", "executor"),
        "replanner": ("validator", "human_gate", "settle"),
        "settle": (END,),
    }
)
"""For each node, the nodes that may follow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The body of each node; a field's name is the node's name."""

    planner: Node
    """Writes a plan, or the next one after issues or a person's comment."""

    validator: Node
    """Checks the plan layer by layer and sets its tier."""

    critic: Node
    """Lets a second model doubt the plan."""

    human_gate: Node
    """Asks a person, and takes recorded answers in."""

    executor: Node
    """Runs the approved plan until something needs another node."""

    verifier: Node
    """Decides from evidence whether the goal was reached."""

    reflector: Node
    """Judges what went wrong and whether a repair is worth it."""

    replanner: Node
    """Patches the plan."""

    settle: Node
    """Ends the run and reports."""


def wire(
    nodes: Nodes,
    *,
    saver: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
    context_schema: type[Any] | None = None,
    name: str = "plangate",
) -> CompiledStateGraph[State, Any, Input, Output]:
    """Compile the loop.

    Args:
        nodes: The bodies, async; the graph has a sync and an async door all the same.
        saver: Where checkpoints go; None: no pause and no resume, unless a parent graph has one.
        store: LangGraph's long-term store, handed on to the nodes.
        context_schema: Type of `context=`, which LangGraph does not checkpoint.
        name: The graph's name in traces and as a subgraph.
    """
    graph = StateGraph(
        State, context_schema=context_schema, input_schema=Input, output_schema=Output
    )
    for field in fields(nodes):
        node = field.name
        graph.add_node(node, bridged(node, steered(node, getattr(nodes, node))))
        graph.add_conditional_edges(node, _go, {target: target for target in NEXT[node]})
    graph.add_edge(START, "planner")
    return graph.compile(checkpointer=saver, store=store, name=name)


def steered(name: str, body: Node) -> Node:
    """Return the body with its wish checked: each update says `go`, and only where `NEXT` allows.

    The last node need not say it. Checked before the update is saved, so that a body's bug cannot
    leave a thread at a place that does not exist.
    """

    async def node(state: State, config: RunnableConfig) -> Mapping[str, Any]:
        update = {"go": END, **await body(state, config)}
        assert update["go"] in NEXT[name], f"{name} cannot go to {update['go']!r}"  # noqa: S101 (ours)
        return {**update, "phase": name}

    return node


def drawing() -> str:
    """Return the loop as a Mermaid diagram."""

    async def stand_in(_state: State, _config: RunnableConfig) -> Mapping[str, Any]:
        return {}

    nodes = Nodes(**{field.name: stand_in for field in fields(Nodes)})
    return wire(nodes).get_graph().draw_mermaid()


def _go(state: State) -> str:
    return state["go"]
