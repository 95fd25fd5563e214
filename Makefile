# Everything runs in .venv, which the first target that needs it creates. Running needs
# what .venv/installed stands for; tests also need what .venv/installed_dev stands for.
PYTHON ?= python3
BIN := .venv/bin
STORAGE ?= runs
# An inherited setting would have every child of the tests compile all modules anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-slow test-faults bench lint requirements clean

demo: .venv/installed
	$(BIN)/python -m bmg_sweeps launch figure_2 --scale smoke --storage $(STORAGE)
	$(BIN)/python -m bmg_sweeps report figure_2 --scale smoke --storage $(STORAGE)
	$(BIN)/python -m bmg_sweeps rerun figure_2 --scale smoke --storage $(STORAGE) --seeds 10
	@echo
	@echo "Next:"
	@echo "  source .venv/bin/activate"
	@echo "  python -m bmg_sweeps status figure_2"
	@echo "  python -m bmg_sweeps best figure_2"
	@echo "  python -m bmg_sweeps launch figure_2 --scale lite    # hours on a laptop"

# Three processes for two cores, as launches wait, each with whole files of tests,
# whose tests share what is costly.
test: .venv/installed_dev lint
	$(BIN)/python -m pytest -m "not slow and not faults" -n 3 --dist loadfile \
		--no-loadscope-reorder

test-slow: .venv/installed_dev
	$(BIN)/python -m pytest -m slow

test-faults: .venv/installed_dev
	$(BIN)/python -m pytest -m faults -s

# Speed against its goals, on one core and not under load: some ten minutes.
bench: .venv/installed
	NPROC=1 taskset -c 0 $(BIN)/python -m benchmarks

# Style, types of the driver's packages, unused code, unused and missing dependencies.
lint: .venv/installed_dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/vulture
	$(BIN)/deptry .

# Pins pyproject.toml's dependencies, and theirs, for Python 3.11 and newer.
COMPILE := uv pip compile --quiet --universal --python-version 3.11 \
	--custom-compile-command "make requirements"
requirements: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(BIN)/$(COMPILE) pyproject.toml -o requirements.txt
	$(BIN)/$(COMPILE) --group dev -c requirements.txt -o requirements-dev.txt

.venv/installed: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch .venv/installed

.venv/installed_dev: requirements-dev.txt .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch .venv/installed_dev

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache
