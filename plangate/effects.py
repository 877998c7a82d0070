"""What a person, or the outside when asked, says of an effect whose outcome nobody knows.

There is one way in. Where the run asks about the effect, this is the answer to its question, first
wins and all; where it does not ask (its owner died, or it has ended), the ledger's row is moved
under the run's own lease. Either way it is recorded who said so and what it rests on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plangate.engine.call import Returned, context_for, judge_output
from plangate.engine.effect import Act
from plangate.engine.release import Ready
from plangate.engine.underway import may_still_act
from plangate.graph.answer import Answer
from plangate.graph.bridge import run_blocking
from plangate.journal.decisions import Decision
from plangate.journal.ledger import UNSETTLED
from plangate.nodes.case import Case
from plangate.nodes.decide import Refused, decide
from plangate.nodes.follow import Word, settle_asked, settle_row, taken
from plangate.nodes.question import next_question
from plangate.plan.errors import ConfigError, Damaged, Denied, EffectUnknown, Unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from plangate.engine.classify import Failure
    from plangate.journal.journal import Journal
    from plangate.journal.ledger import EffectRow
    from plangate.journal.questions import QuestionAsked
    from plangate.journal.session import Session
    from plangate.nodes.kit import Kit
    from plangate.runtime import Runtime
    from plangate.tools.tool import Tool


def effect_named(journal: Journal, name: str) -> EffectRow:
    """Return the one effect that a key, the beginning of one, or a business key names.

    Raises:
        ConfigError: There is none, or there are several.
    """
    return only_one(name, journal.ledger.named(name))


def only_one(name: str, rows: Sequence[EffectRow]) -> EffectRow:
    """Return the only effect of that name.

    Raises:
        ConfigError: There is none, or there are several.
    """
    if not rows:
        raise ConfigError(f"no effect is named {name!r}", hint="See plangate effects list.")
    if len(rows) > 1:
        keys = ", ".join(f"{row.effect_key} (run {row.run_id or 'deleted'})" for row in rows[:5])
        raise ConfigError(f"{len(rows)} effects are named {name!r}", hint=f"Name one of: {keys}.")
    return rows[0]


def run_of_effect(row: EffectRow) -> str:
    """Return the run that an effect is of.

    Raises:
        ConfigError: It was deleted; what it did is known by its key and stays as it is.
    """
    if row.is_buried:
        raise ConfigError(
            f"the run of effect {row.effect_key[:12]} was deleted, which is {row.state}",
            hint="Nothing can be changed about it, and it is not done again.",
        )
    return row.run_id


def settle_effect(runtime: Runtime, name: str, word: Word, *, role: str = "") -> EffectRow:
    """Decide an effect whose outcome nobody knows, on a person's word.

    Args:
        runtime: The agent of its run.
        name: See `effect_named`.
        word: `done` or `failed`, who says so, what it rests on, and the result where it is known.
        role: In which role, where the run's question is for one.

    Returns:
        The row as it stands now.

    Raises:
        ConfigError: No such effect, no evidence, or a result that the tool could not have returned.
        Denied: It is settled already, the run's question was answered by somebody else, or what is
            said to have failed may still be carried out.
        RunBusy: The run's owner, or another run, is at work on it.
    """
    row = effect_named(runtime.journal, name)
    if not word.evidence.strip() or not word.by.strip():
        hint = "Say where you looked, in words or as a reference."
        raise ConfigError("an effect is settled by somebody, on evidence", hint=hint)
    _check_output(runtime.kit, row, word)
    with runtime.hold(run_of_effect(row)) as session:
        row = _unsettled(session, row)
        _refuse_too_early(runtime.journal, row, word)
        question = _asked(session, runtime.kit, row)
        if question is None:
            run_blocking(settle_row(session, row, word))
        else:
            answer: dict[str, JsonValue] = {
                "state": word.state,
                "evidence": word.evidence,
                "effect_key": row.effect_key,
            }
            if word.output is not None:
                answer["output"] = word.output
            said = Answer(
                decision="settle", by=word.by, role=role, answer=answer, comment=word.evidence
            )
            _answer(session, runtime.kit, question, said)
        return _now(runtime.journal, row)


def reconcile(runtime: Runtime, name: str, *, by: str) -> EffectRow:
    """Ask the outside what became of an effect; nothing is done there.

    Args:
        runtime: The agent of its run, over the world that the run acts on.
        name: See `effect_named`.
        by: Who asks.

    Returns:
        The row as it stands now: `done`, or `failed` where the outside is sure that it never
        happened.

    Raises:
        ConfigError: No such effect, or its tool is not the agent's.
        Unreadable, Damaged: The plan that it is of cannot be read: settle it on a person's word.
        EffectUnknown: The outside cannot say, or works on it still.
        Denied: It is settled already.
        RunBusy: The run's owner is at work on it.
    """
    row = effect_named(runtime.journal, name)
    with runtime.hold(run_of_effect(row)) as session:
        row = _unsettled(session, row)
        tool = runtime.kit.registry.get(row.tool)
        if tool is None:
            hint = "Name the agent that the run was started with."
            raise ConfigError(f"this agent has no tool {row.tool!r}", hint=hint)
        got = run_blocking(_find_out(session, runtime.kit, row, tool))
        now = _now(runtime.journal, row)
        question = session.view.pending.get(("effect", row.step))
        if now.state == "done" and question is not None and not question.roles:
            says = f"the outside says that {row.business_key} is done"
            said = Answer(decision="retry", by=by, comment=says)
            _answer(session, runtime.kit, question, said)
    if now.state in UNSETTLED:
        says = "" if isinstance(got, Returned) else f": {got.says}"
        raise EffectUnknown(
            f"{row.business_key} is {now.state}{says}",
            hint=f"Look outside, then: plangate effects settle {row.effect_key[:12]} --as ...",
        )
    return now


async def _find_out(session: Session, kit: Kit, row: EffectRow, tool: Tool) -> Returned | Failure:
    kit = await kit.acting_for(session)
    plan = kit.plan(session, row.plan_version)
    bench = kit.bench(session, plan, report=lambda _: None)
    args = session.load(session.view.attempts[row.attempt_id].started.args)
    assert isinstance(args, dict), "arguments are an object"  # noqa: S101 (we wrote it)
    context = await context_for(bench, row.step, row.attempt_id, tool.spec)
    act = Act(
        bench=bench,
        step=plan.by_id[row.step],
        tool=tool,
        ready=Ready(args, row.args_sha256, row.approval),
        context=replace(context, effect_key=row.effect_key),
        key=row.effect_key,
    )
    return await act.ask(row)


def _check_output(kit: Kit, row: EffectRow, word: Word) -> None:
    tool = kit.registry.get(row.tool)
    if word.output is None or tool is None:
        return
    if word.state != "done":
        raise ConfigError("what did not happen has no result", hint="Leave --output out.")
    got = judge_output(tool.spec, word.output)
    if not isinstance(got, Returned):
        hint = f"Give what {row.tool} would have returned."
        raise ConfigError(f"the result does not fit: {got.says}", hint=hint)


def _unsettled(session: Session, row: EffectRow) -> EffectRow:
    """Read the row again, now that nobody else can move it."""
    row = _now(session.journal, row)
    if row.state not in UNSETTLED:
        when = f" at {row.settled_at:%Y-%m-%d %H:%M:%S} UTC" if row.settled_at else ""
        who = f" by {row.by}" if row.by else ""
        raise Denied(
            f"{row.business_key} is settled already: {row.state}{who}{when}",
            hint=f"Nothing was changed; see plangate effects show {row.effect_key[:12]}.",
        )
    return row


def _refuse_too_early(journal: Journal, row: EffectRow, word: Word) -> None:
    """Stop whoever looked and saw nothing, while the call may still come."""
    why = may_still_act(journal.url, row) if word.state == "failed" else ""
    if why:
        raise Denied(
            f"{row.business_key} cannot be known to have failed: {why}",
            hint="Stop that process first, then look again.",
        )


def _asked(session: Session, kit: Kit, row: EffectRow) -> QuestionAsked | None:
    """Return the run's question about the effect; one that it was about to ask is asked now."""
    view = session.view
    asked = view.pending.get(("effect", row.step))
    fired = view.open_trigger
    if asked is not None or view.ended is not None or fired is None or view.pending:
        return asked
    if (fired.kind, fired.step) != ("effect_unknown", row.step):
        return None
    try:
        plan = kit.plan(session)
    except (Damaged, Unreadable):  # the run cannot ask any more, and what happened did
        return None
    question = next_question(session, kit, plan)
    if question is None or question.kind != "effect":
        return None
    session.emit(question)
    return question


def _answer(session: Session, kit: Kit, question: QuestionAsked, answer: Answer) -> None:
    """Record the answer as any other, and take it in."""
    session.flush()
    got = decide(session.journal, Case.of(session, kit, question), answer)
    if not isinstance(got, Decision):
        why = got.why if isinstance(got, Refused) else got.says
        raise Denied(f"{question.question_id}: {why}", hint="Nothing was changed.")
    session.emit(taken(session, kit, question, got))
    if got.decision == "settle":
        run_blocking(settle_asked(session, question, got))


def _now(journal: Journal, row: EffectRow) -> EffectRow:
    """Read a row again; its run is held."""
    found = journal.ledger.get(row.effect_key)
    assert found is not None, "nothing of a run that is held is deleted"  # noqa: S101 (ours)
    return found
