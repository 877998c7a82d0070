"""One agent over one journal, opened: the graph, and the few things people do with runs.

The CLI, the console and `create_plan_agent` stand on this; no decision is made here.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from langgraph.errors import GraphDrained
from langgraph.runtime import get_runtime

from plangate.agent import Agent, lender, open_world
from plangate.budget.prices import PriceBook
from plangate.engine.authorizer import RecordedRights
from plangate.given import check_given, rights_of
from plangate.graph.bridge import iterate
from plangate.graph.desk import Desk
from plangate.graph.fenced import fenced
from plangate.graph.owned import Body, owned
from plangate.graph.saver import check_saver, open_saver
from plangate.graph.wiring import Nodes, wire
from plangate.journal.clock import not_before
from plangate.journal.journal import Journal
from plangate.journal.owner import owner_name
from plangate.journal.runs import Run
from plangate.journal.session import Session
from plangate.journal.stop import cancellation
from plangate.journal.view import RunView, fold
from plangate.named import run_asking, run_named
from plangate.nodes.case import Case
from plangate.nodes.critic import critic
from plangate.nodes.decide import Counted, Refused, decide
from plangate.nodes.executor import executor
from plangate.nodes.human_gate import human_gate
from plangate.nodes.kit import Kit, LazyWorld
from plangate.nodes.limited import within_limits
from plangate.nodes.madeof import away, look_back
from plangate.nodes.planner import planner
from plangate.nodes.reflector import reflector
from plangate.nodes.replanner import replanner
from plangate.nodes.settle import settle
from plangate.nodes.validator import validator
from plangate.nodes.verifier import verifier
from plangate.plan.errors import ConfigError, Denied
from plangate.plan.policy import Policy
from plangate.plan.policy_names import need_known
from plangate.plan.repair import load_repairs
from plangate.plan.templates import Template, choose
from plangate.tools.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.store.base import BaseStore

    from plangate.engine.authorizer import Authorizer
    from plangate.graph.payload import Answer
    from plangate.graph.state import State
    from plangate.journal.clock import Clock
    from plangate.journal.decisions import Decision
    from plangate.journal.questions import (
        QuestionAsked,
    )
    from plangate.plan.facts import Rights

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
        step_model: A chat model for model steps where the agent names none; None: `model`.
        critic: A chat model for the critic where the agent names none; None: it is left out, and
            says so.
        judge: A chat model for checks of level L3 where the agent names none; None: a person
            decides them.
        prices: What models cost; None: what the agent says.
        world_url: Instead of the agent's own.
        checkpointer: A LangGraph saver; None: one beside the journal.
        store: LangGraph's long-term store.
        ttl_s: How long a silent owner keeps a run, in seconds.
        parallel: Steps that run at a time.
        authorizer: Asked at every turn what the principal may do now; None: what it could when the
            run was started.
    """

    model: Any = None
    step_model: Any = None
    critic: Any = None
    judge: Any = None
    prices: PriceBook | None = None
    world_url: str | None = None
    checkpointer: BaseCheckpointSaver[str] | None = None
    store: BaseStore | None = None
    ttl_s: float = 15.0
    parallel: int = 64
    authorizer: Authorizer | None = None


class Runtime:
    """An agent with its journal and its compiled graph.

    Args:
        agent: Its contracts, rules and knowledge.
        journal_url: Where its runs are recorded.
        options: What the caller chooses beside.
        clock: Where times come from.
        kit: Changes what the nodes are given; a replay puts its record in the place of the outside.
    """

    def __init__(
        self,
        agent: Agent,
        journal_url: str,
        options: Options | None = None,
        *,
        clock: Clock | None = None,
        kit: Callable[[Kit], Kit] = lambda made: made,
    ) -> None:
        chosen = options or Options()
        self.agent = agent
        self.journal = Journal.open(journal_url, clock=clock)
        self.kit = kit(_kit(agent, self.journal, chosen))
        self.desk = Desk(self.journal, start=self._start, ttl_s=chosen.ttl_s)
        self._ttl_s = chosen.ttl_s
        self._own_saver = None if chosen.checkpointer else open_saver(self.journal.store)
        saver = chosen.checkpointer or self._own_saver
        check_saver(saver, self.journal.url)
        nodes = {
            name: owned(name, self._for_principal(name, body), self.desk)
            for name, body in BODIES.items()
        }
        self.graph: CompiledStateGraph[Any, Any, Any, Any] = wire(
            Nodes(**nodes),
            saver=fenced(saver, self.desk.lease_of, self.journal.runs),
            store=chosen.store,
            name=agent.name,
        )

    def hold(self, run_id: str) -> Session:
        """Take a run for a moment, so that nobody is at work on it; close it soon.

        Raises:
            ConfigError: No such run.
            RunBusy: Another owner is at work on it.
        """
        return Session.open(self.journal, run_id, owner_name(), self._ttl_s)

    def close(self) -> None:
        """Let go of all runs, then close the world and the journal."""
        self.desk.close()
        self.kit.world.close()
        if self._own_saver is not None:
            self._own_saver.close()
        self.journal.close()

    def start(
        self, given: Mapping[str, Any], *, run_id: str = "", rights: Rights | None = None
    ) -> Iterator[Any]:
        """Start a run and yield its progress until the next question or the end.

        Args:
            given: `goal`, `inputs`, and where wanted `goal_id`, `task`.
            run_id: From `new_run_id()`, where the caller wants to know it beforehand.
            rights: Who acts; None: the agent's own.

        Returns:
            Pairs of stream mode (`custom`, `updates`) and value, as LangGraph gives them.
        """
        run_id = run_id or new_run_id()
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
        if self.waits(run_id):
            return iter(())
        return self._stream(self.where(run), run.thread_id, run.principal)

    def where(self, run: Run) -> dict[str, str] | None:
        """Return what the graph is invoked with to go on with a run."""
        state = self.graph.get_state(_config(run.thread_id))
        # Without a checkpoint (lost, or past the end of a stopped run) it begins anew, and every
        # node finds in the journal what was done. Not `state.next`: a task whose writes are saved
        # and whose checkpoint is not is no longer in it, and yet to be gone on from.
        return None if state.tasks else {"run_id": run.run_id}

    def waits(self, run_id: str) -> bool:
        """True if the run asks a person who has neither answered nor run out of time."""
        if cancellation(self.journal.decisions, run_id) is not None:
            return False
        pending = self.view(run_id).pending_questions
        return bool(pending) and all(
            self.journal.decisions.get(each.question_id) is None
            and (each.expires_at is None or self.kit.now() < each.expires_at)
            for each in pending
        )

    def view(self, run_id: str) -> RunView:
        """Fold the log of a run."""
        self.journal.runs.get(run_id)
        return fold(self.journal.log.read(run_id))

    def question(self, name: str) -> tuple[Run, QuestionAsked]:
        """Find a pending question by its id, or the only one of a run.

        Raises:
            ConfigError: No such question, the run has none or several, or the name means two runs.
        """
        run = run_named(self.journal, name)
        view = self.view(run.run_id)
        if name in view.questions:
            return run, view.questions[name]
        pending = view.pending_questions
        if len(pending) != 1 or name != run.run_id:  # a question that was never asked is no other
            ids = ", ".join(each.question_id for each in pending) or "none"
            raise ConfigError(
                f"{name!r} names no single question", hint=f"Questions that wait: {ids}."
            )
        return run, pending[0]

    def answer(self, asked: str | QuestionAsked, answer: Answer) -> Decision | Refused | Counted:
        """Record an answer to a question, or to what `question` finds by a name.

        The run goes on when somebody advances it.
        """
        question = self.question(asked)[1] if isinstance(asked, str) else asked
        run = self.journal.runs.get(run_asking(question.question_id))
        case = Case(
            kit=replace(self.kit, now=not_before(self.kit.now, run.updated_at)),
            run=run,
            look=lambda: self.view(run.run_id),
            load=self.journal.artifacts.get,
            question=question,
        )
        return decide(self.journal, case, answer)

    def check(self, given: State) -> None:
        """Refuse a goal and inputs that no plan could be made of: nothing is left to clear away.

        Raises:
            ConfigError: It says which, and what it should be.
        """
        check_given(given)
        if self.kit.model is None:
            template = choose(self.kit.templates, given.get("task", ""))
            template.fill(given["goal"], given.get("inputs") or {}, "unset")

    def drain(self, by: str = "host", reason: str = "shutdown") -> None:
        """Have the runs of this runtime stop where they can and stay resumable, for good.

        Returns at once, in any thread: nothing new is begun, reads are cancelled, and a stream ends
        once the effects that were under way have ended. Runs of other processes go on.
        """
        self.desk.drain(by, reason)

    def _stream(self, given: Any, thread: str, rights: Rights | None) -> Iterator[Any]:
        return iterate(self.astream(given, thread, rights))

    async def astream(self, given: Any, thread: str, rights: Rights | None) -> AsyncIterator[Any]:
        """Invoke the graph on a thread and yield its progress; a drain ends it like a question."""
        stream = self.graph.astream(
            given,
            _config(thread),
            context=rights or self.agent.rights,
            stream_mode=["custom", "updates"],
            durability="sync",
        )
        with suppress(GraphDrained):
            async for each in stream:
                yield each

    def _for_principal(self, name: str, body: Any) -> Body:
        """`context=` is not in a checkpoint, so each invocation says anew for whom it acts."""

        async def node(state: State, session: Session) -> Mapping[str, Any]:
            who = rights_of(get_runtime().context) or self.agent.rights
            owner = session.run.principal.principal
            if who.principal != owner:
                raise Denied(
                    f"run {session.run.run_id} acts for {owner!r}, not for {who.principal!r}",
                    hint=f"Pass context= with principal {owner!r}.",
                )
            kit = await self.kit.acting_for(session)
            look_back(session, kit)
            if go := away(name, session):
                return {"go": go}
            return await within_limits(body, state, session, kit)

        return node

    def _start(self, state: State, thread_id: str, context: object) -> str:
        """Create the row of a new run; called by the first node that needs one."""
        self.check(state)
        run_id = state.get("run_id") or new_run_id()
        self.journal.runs.create(
            Run(
                run_id=run_id,
                goal_id=str(state.get("goal_id") or run_id),
                goal=state["goal"].strip(),
                thread_id=thread_id,
                agent=self.agent.name,
                principal=rights_of(context) or self.agent.rights,
            )
        )
        return run_id


def new_run_id() -> str:
    """Return a fresh run id, sortable by nothing and guessable by nobody."""
    return f"run_{uuid.uuid4().hex[:16]}"


def _config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def _templates(agent: Agent) -> tuple[Template, ...]:
    """Read the templates; two of one name could not be told apart by `task`."""
    read = tuple(Template.from_yaml(text) for text in agent.templates)
    names = [each.template for each in read]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"two templates are named {min(twice)!r}", hint="Rename one.")
    return read


def _first(*chats: Any) -> Any:
    return next((chat for chat in chats if chat is not None), None)


def _kit(agent: Agent, journal: Journal, chosen: Options) -> Kit:
    url = chosen.world_url or agent.world_url
    registry = Registry(agent.tools)
    policy = Policy.from_toml(agent.policy)
    need_known(policy, registry.catalog().tools)
    return Kit(
        registry=registry,
        policy=policy,
        templates=_templates(agent),
        repairs=load_repairs(agent.repairs) if agent.repairs else (),
        world=LazyWorld(partial(open_world, agent.connect, url)),
        credentials=lender(agent.credentials),
        book=chosen.prices or agent.prices or PriceBook(),
        budget=agent.budget,
        now=journal.clock,
        verified=journal.verified.counts,
        recall=journal.usage.of,
        model=chosen.model,
        step_model=_first(agent.step_model, chosen.step_model, chosen.model),
        critic=_first(agent.critic, chosen.critic),
        judge=_first(agent.judge, chosen.judge),
        parallel=chosen.parallel,
        authorizer=chosen.authorizer or RecordedRights(),
    )
