from tests.door.conftest import shop

__all__ = ["shop"]
