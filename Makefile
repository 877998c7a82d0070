.PHONY: setup demo test check crash
setup:
	@scripts/setup
demo: setup
	@if [ -t 0 ]; then yes=; else yes=--yes; fi; .venv/bin/plangate demo refund --scenario no-logistics-record $$yes
test:
	@scripts/test
check:
	@scripts/check
crash:
	@scripts/crash $(if $(QUICK),--quick)
