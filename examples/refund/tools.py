"""The tools of the refund agent. Importing them opens no world and loads no database driver."""

from __future__ import annotations

from plangate.examples.refund.lookups import (
    classify_no_logistics_record,
    query_fulfillment_details,
    query_logistics,
    query_order,
    search_policy,
)
from plangate.examples.refund.refunds import (
    create_refund,
    query_refund,
    verify_eligibility,
    verify_final_state,
)

TOOLS = (
    query_order,
    query_logistics,
    query_fulfillment_details,
    classify_no_logistics_record,
    search_policy,
    verify_eligibility,
    create_refund,
    query_refund,
    verify_final_state,
)
