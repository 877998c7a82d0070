.PHONY: setup demo test slow check crash
setup:
	@scripts/setup
demo: setup
	@if [ -t 0 ]; then yes=; else yes=--yes; fi; .venv/bin/plangate demo refund --scenario no-logistics-record $$yes
test:
	@scripts/test
slow:
	@MARKS="crash or slow" scripts/test
check:
	@scripts/check
crash:
	@scripts/crash $(if $(QUICK),--quick)
