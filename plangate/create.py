"""`create_plan_agent`: from a model, tools and a policy to a compiled LangGraph graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plangate.agent import Agent, Connect, Lend, need_chat, several
from plangate.plan.facts import Rights
from plangate.plan.value.plan import Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.store.base import BaseStore

    from plangate.budget.prices import PriceBook
    from plangate.engine.authorizer import Authorizer
    from plangate.tools.tool import Tool


def create_plan_agent(
    model: Any = None,
    tools: Sequence[Tool] = (),
    *,
    policy: str,
    templates: Sequence[str] = (),
    repairs: str = "",
    connect: Connect | None = None,
    world_url: str = "",
    credentials: Lend | None = None,
    budget: Budget | None = None,
    rights: Rights | None = None,
    journal: str = "sqlite:///.plangate/journal.db",
    checkpointer: BaseCheckpointSaver[str] | None = None,
    store: BaseStore | None = None,
    critic: Any = None,
    judge: Any = None,
    step_model: Any = None,
    prices: PriceBook | None = None,
    authorizer: Authorizer | None = None,
    name: str = "agent",
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build an agent that plans, checks, asks, runs, verifies and repairs.

    The result is an ordinary compiled graph: `invoke`, `ainvoke`, `stream` and `astream` take
    `{"goal": ..., "inputs": {...}}` and a config with a `thread_id`; an interrupt carries the plan
    to approve, and `Command(resume={"decision": "approve", "by": "ann"})` answers it.

    Args:
        model: A LangChain chat model for the planner; None: plans come from `templates`.
        tools: From `@plangate.tool`.
        policy: TOML text; there is no default, and what no rule allows is denied.
        templates: YAML texts of plans with typed parameters.
        repairs: YAML text of known failures and their repairs.
        connect: Opens what tools see as `ToolContext.world`, at the first call.
        world_url: Argument of `connect`.
        credentials: Gives credentials for one call at a time, and what `secret://name` stands for.
        budget: Limits of a run, where a plan's own budget says nothing.
        rights: Who acts where `context=` names nobody; None: principal `local`, no scopes.
        journal: Database of what happened; sqlite:///path or postgresql://user@host/name.
        checkpointer: A LangGraph saver; None: one beside the journal.
        store: LangGraph's long-term store.
        critic: A chat model for the critic; None: left out, and the log says so.
        judge: A chat model that decides checks of level L3; None: a person does.
        step_model: A chat model that carries out the model steps of plans; None: `model`. Where
            there is neither, a plan with such steps is refused.
        prices: What models cost, as `PriceBook({"my-model": {"input": "0.25", "output": "2"}})` in
            USD per million tokens; None: the packaged table alone.
        authorizer: Knows what a principal may do now; asked at validation and before each call.
            None: what `rights` or `context=` said when the run was started.
        name: Of the graph, in traces and in the log.

    Raises:
        ConfigError: A policy, template, tool or URL is wrong; it says which and what to do.
    """
    need_chat("model", model)

    from plangate.runtime import Options, Runtime

    agent = Agent(
        name=name,
        tools=several("tools", tools),
        policy=policy,
        templates=several("templates", templates),
        repairs=repairs,
        connect=connect,
        world_url=world_url,
        credentials=credentials,
        step_model=step_model,
        critic=critic,
        judge=judge,
        budget=budget or Budget(),
        prices=prices,
        rights=rights or Rights(principal="local"),
    )
    options = Options(
        model=model,
        checkpointer=checkpointer,
        store=store,
        authorizer=authorizer,
    )
    return Runtime(agent, journal, options).graph
