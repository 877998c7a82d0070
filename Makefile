.PHONY: setup demo test check
setup:
	@scripts/setup
demo: setup
	@.venv/bin/plangate demo refund --scenario no-logistics-record
test:
	@scripts/test
check:
	@scripts/check
