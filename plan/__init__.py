"""What a plan is: values, contracts and rules. Pure: no input or output, no clock, no LangGraph."""
