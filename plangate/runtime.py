"""One agent over one journal, opened: the graph, and the few things people do with runs.

The CLI, the console and `create_plan_agent` stand on this; no decision is made here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from plangate.agent import Agent, open_world
from plangate.budget.prices import PriceBook
from plangate.graph.bridge import run_blocking
from plangate.graph.owned import Desk, owned
from plangate.graph.payload import Answer
from plangate.graph.saver import check_saver, open_saver
from plangate.graph.wiring import Nodes, wire
from plangate.journal.decisions import Decision
from plangate.journal.events import QuestionAsked
from plangate.journal.journal import Journal
from plangate.journal.runs import Run
from plangate.journal.view import RunView, fold
from plangate.nodes.critic import critic
from plangate.nodes.decide import Refused, decide
from plangate.nodes.executor import executor
from plangate.nodes.human_gate import human_gate
from plangate.nodes.kit import Kit, LazyWorld
from plangate.nodes.planner import planner
from plangate.nodes.reflector import reflector
from plangate.nodes.replanner import replanner
from plangate.nodes.settle import settle
from plangate.nodes.validator import validator
from plangate.nodes.verifier import verifier
from plangate.plan.errors import ConfigError
from plangate.plan.facts import Rights
from plangate.plan.policy import Policy
from plangate.plan.repair import load_repairs
from plangate.plan.templates import Template
from plangate.tools.registry import Registry

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.store.base import BaseStore

BODIES = {
    "planner": planner,
    "validator": validator,
    "critic": critic,
    "human_gate": human_gate,
    "executor": executor,
    "verifier": verifier,
    "reflector": reflector,
    "replanner": replanner,
    "settle": settle,
}
"""The body of each node of `plangate.graph.wiring`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a caller may choose beside the agent itself.

    Args:
        model: A LangChain chat model for the planner; None: templates only.
        critic: A chat model for the critic; None: the critic is left out, and says so.
        prices: USD per million tokens by model, over the packaged table.
        world_url: Instead of the agent's own.
        checkpointer: A LangGraph saver; None: one beside the journal.
        store: LangGraph's long-term store.
        ttl_s: How long a silent owner keeps a run, in seconds.
        parallel: Steps that run at a time.
    """

    model: Any = None
    critic: Any = None
    prices: Mapping[str, Mapping[str, str]] | None = None
    world_url: str | None = None
    checkpointer: BaseCheckpointSaver[str] | None = None
    store: BaseStore | None = None
    ttl_s: float = 15.0
    parallel: int = 64


class Runtime:
    """An agent with its journal and its compiled graph."""

    def __init__(self, agent: Agent, journal_url: str, options: Options | None = None) -> None:
        chosen = options or Options()
        self.agent = agent
        self.journal = Journal.open(journal_url)
        self.kit = _kit(agent, self.journal, chosen)
        desk = Desk(self.journal, start=self._start, ttl_s=chosen.ttl_s)
        saver = chosen.checkpointer or open_saver(journal_url)
        check_saver(saver, journal_url)
        nodes = {
            name: owned(name, partial(body, kit=self.kit), desk) for name, body in BODIES.items()
        }
        self.graph: CompiledStateGraph[Any, Any, Any, Any] = wire(
            Nodes(**nodes), saver=saver, store=chosen.store, context_schema=Rights, name=agent.name
        )

    def close(self) -> None:
        """Close the world and the journal."""
        self.kit.world.close()
        self.journal.close()

    def start(self, given: Mapping[str, Any], *, rights: Rights | None = None) -> Iterator[Any]:
        """Start a run and yield its progress until the next question or the end.

        Args:
            given: `goal`, `inputs`, and where wanted `goal_id`, `task`, `run_id`.
            rights: Who acts; None: the agent's own.
        """
        run_id = str(given.get("run_id") or new_run_id())
        return self._stream({**given, "run_id": run_id}, run_id, rights)

    def advance(self, run_id: str) -> Iterator[Any]:
        """Go on with a run from what is recorded, until the next question or the end.

        Raises:
            ConfigError: No such run, or it has ended.
            RunBusy: Another owner is at work on it.
        """
        run = self.journal.runs.get(run_id)
        if run.status == "ended":
            raise ConfigError(f"run {run_id} has ended ({run.ending})", hint="Start a new run.")
        state = self.graph.get_state(_config(run.thread_id))
        again = None if state.next else {"run_id": run_id}
        return self._stream(again, run.thread_id, run.principal)

    def view(self, run_id: str) -> RunView:
        """Fold the log of a run."""
        self.journal.runs.get(run_id)
        return fold(self.journal.log.read(run_id))

    def question(self, name: str) -> tuple[Run, QuestionAsked]:
        """Find a pending question by its id, or the only one of a run.

        Raises:
            ConfigError: No such question, or the run has none or several.
        """
        run = self.journal.runs.get(name.rpartition("-q")[0] if "-q" in name else name)
        view = self.view(run.run_id)
        if name in view.questions:
            return run, view.questions[name]
        pending = view.pending_questions
        if len(pending) != 1:
            ids = ", ".join(each.question_id for each in pending) or "none"
            raise ConfigError(
                f"{name!r} names no single question", hint=f"Questions that wait: {ids}."
            )
        return run, pending[0]

    def answer(self, name: str, answer: Answer) -> Decision | Refused:
        """Record an answer; the run goes on when somebody advances it."""
        run, question = self.question(name)
        return decide(
            self.journal,
            run.run_id,
            question,
            answer,
            now=self.kit.now(),
            ttl_s=self.kit.policy.approval_ttl_s,
        )

    def _stream(self, given: Any, thread: str, rights: Rights | None) -> Iterator[Any]:
        from plangate.graph.bridge import iterate

        return iterate(
            self.graph.astream(
                given,
                _config(thread),
                context=rights or self.agent.rights,
                stream_mode=["custom", "updates"],
                durability="sync",
            )
        )

    def _start(self, state: Mapping[str, Any], thread_id: str, rights: Rights | None) -> str:
        """Create the row of a new run; called by the first node that needs one."""
        goal = str(state.get("goal") or "").strip()
        if not goal:
            raise ConfigError("there is no goal", hint='Invoke with {"goal": ..., "inputs": ...}.')
        run_id = str(state.get("run_id") or new_run_id())
        self.journal.runs.create(
            Run(
                run_id=run_id,
                goal_id=str(state.get("goal_id") or run_id),
                goal=goal,
                thread_id=thread_id,
                agent=self.agent.name,
                principal=rights or self.agent.rights,
            )
        )
        return run_id


def new_run_id() -> str:
    """Return a fresh run id, sortable by nothing and guessable by nobody."""
    return f"run_{uuid.uuid4().hex[:16]}"


def _config(thread_id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id}}


def _kit(agent: Agent, journal: Journal, chosen: Options) -> Kit:
    url = chosen.world_url or agent.world_url
    return Kit(
        registry=Registry(agent.tools),
        policy=Policy.from_toml(agent.policy),
        templates=tuple(Template.from_yaml(text) for text in agent.templates),
        repairs=load_repairs(agent.repairs) if agent.repairs else (),
        world=LazyWorld(partial(open_world, agent.connect, url)),
        book=PriceBook(chosen.prices or {}),
        budget=agent.budget,
        now=journal.clock,
        model=chosen.model,
        critic=chosen.critic,
        parallel=chosen.parallel,
    )


__all__ = ["BODIES", "Options", "Runtime", "new_run_id", "run_blocking"]
