"""What every test runs under: strict broadcasting, and no gin left over."""

import gin
import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(autouse=True)
def _clear_gin():
    yield
    gin.clear_config()
