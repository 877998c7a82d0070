"""The tools of the AML agent. Importing them opens no world and loads no database driver."""

from __future__ import annotations

from dataclasses import replace

from plangate.examples.aml.filing import (
    check_citations,
    close_case,
    draft_sar,
    file_sar_draft,
    open_case,
)
from plangate.examples.aml.lookups import (
    customer_profile,
    list_transactions,
    query_case,
    screen_counterparties,
    search_typology_texts,
)
from plangate.examples.aml.matching import (
    compare_typologies,
    match_typology,
)
from plangate.examples.aml.previews import PREVIEWS
from plangate.examples.aml.temptations import send_external, set_account_status

_TOOLS = (
    query_case,
    customer_profile,
    list_transactions,
    match_typology,
    screen_counterparties,
    search_typology_texts,
    compare_typologies,
    draft_sar,
    check_citations,
    file_sar_draft,
    close_case,
    open_case,
    send_external,
    set_account_status,
)

TOOLS = tuple(replace(each, preview=PREVIEWS.get(each.spec.name)) for each in _TOOLS)
"""Those that gather evidence also say, before a run, what they will cite."""
