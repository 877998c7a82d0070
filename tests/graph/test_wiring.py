from __future__ import annotations

from collections import deque
from dataclasses import fields

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END

from plangate.graph.state import State
from plangate.graph.wiring import NEXT, Nodes, drawing, wire

EDGES = [(node, target) for node, targets in NEXT.items() for target in targets]


class Walk:
    """Stand-ins that lead along a given path, and note where they were."""

    def __init__(self, *path: str) -> None:
        self.seen: list[str] = []
        self.ahead = deque(path)

    def nodes(self) -> Nodes:
        return Nodes(**{field.name: self.stand_in(field.name) for field in fields(Nodes)})

    def stand_in(self, name: str):
        async def node(_state, _config):
            self.seen.append(name)
            return {"go": self.ahead.popleft()} if self.ahead else {}

        return node


def way(start: str, goal: str) -> list[str]:
    """The shortest way, both ends included."""
    ways = deque([[start]])
    while ways[0][-1] != goal:
        here = ways.popleft()
        ways.extend([*here, after] for after in NEXT[here[-1]] if after not in here)
    return list(ways[0])


@pytest.mark.parametrize(("node", "target"), EDGES)
async def test_every_edge_can_be_taken(node, target):
    path = way("planner", node) + (way(target, "settle") if target != END else [])
    walk = Walk(*path[1:])

    await wire(walk.nodes()).ainvoke({"goal": "g"})

    assert walk.seen == path


@pytest.mark.parametrize("wish", ["executor", "validator", END, "nowhere"])
def test_a_node_that_wants_to_go_elsewhere_is_a_bug_and_leaves_the_thread_where_it_was(wish):
    graph = wire(Walk("validator", wish).nodes(), saver=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}

    with pytest.raises(AssertionError, match=f"validator cannot go to '{wish}'"):
        graph.invoke({"goal": "g"}, config)

    assert graph.get_state(config).next == ("validator",)


async def test_a_node_that_says_nothing_does_not_go_where_the_one_before_went():
    graph = wire(Walk("human_gate").nodes())

    with pytest.raises(AssertionError, match="human_gate cannot go to '__end__'"):
        await graph.ainvoke({"goal": "g"})


def test_both_doors_give_the_same_keys_and_neither_shows_the_inner_ones():
    walk = Walk("settle")

    out = wire(walk.nodes()).invoke({"goal": "g", "inputs": {"a": 1}, "goal_id": "k"})

    assert out == {"phase": "settle"}


def test_a_goal_is_seen_by_the_first_node_only():
    seen: list[State] = []
    walk = Walk("validator", "planner", "settle")

    async def planner(state, config):
        seen.append(state)
        return await walk.stand_in("planner")(state, config)

    nodes = Nodes(
        **{name: walk.stand_in(name) for name in NEXT if name != "planner"}, planner=planner
    )
    wire(nodes).invoke({"goal": "g", "goal_id": "k"})

    assert [state.get("goal_id") for state in seen] == ["k", None]


def test_the_drawing_has_exactly_the_edges_of_the_table():
    lines = drawing().splitlines()
    drawn = {tuple(line.strip(" \t;").split(" -.-> ")) for line in lines if " -.-> " in line}

    assert drawn == set(EDGES)
    assert "\t__start__ --> planner;" in lines


def test_every_node_can_end_the_run():
    assert all("settle" in targets or targets == (END,) for targets in NEXT.values())


def test_servers_can_read_what_goes_in_and_out():
    graph = wire(Walk().nodes())

    assert set(graph.get_input_jsonschema()["properties"]) >= {"goal", "inputs", "goal_id"}
    assert set(graph.get_output_jsonschema()["properties"]) >= {"run_id", "verdict", "report"}
    assert "go" not in graph.get_output_jsonschema()["properties"]
