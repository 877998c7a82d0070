from __future__ import annotations

from typing import Annotated, Literal

import pytest
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel, Field

from plangate.models.critique import Criticism
from plangate.models.strict import strict_schema, unsafe
from plangate.models.wire import PlanDraft
from plangate.plan.errors import ConfigError
from plangate.plan.value.frozen import Frozen

WIRE = [PlanDraft, Criticism]


def nodes(schema):
    if isinstance(schema, dict):
        yield schema
        for child in schema.values():
            yield from nodes(child)
    elif isinstance(schema, list):
        for child in schema:
            yield from nodes(child)


@pytest.mark.parametrize("kind", WIRE)
def test_what_models_write_obeys_strict_mode(kind):
    schema = strict_schema(kind)

    assert list(unsafe(schema)) == []
    for node in nodes(schema):
        assert not {"default", "oneOf", "discriminator", "minLength", "maxLength"} & node.keys()
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert set(node["required"]) == set(node["properties"])


@pytest.mark.parametrize("kind", WIRE)
def test_the_classes_bound_every_text_and_list(kind):
    for node in nodes(kind.model_json_schema()):
        if node.get("type") == "string":
            assert "maxLength" in node or "enum" in node or "const" in node, node
        if node.get("type") == "array":
            assert "maxItems" in node, node


@pytest.mark.parametrize("kind", WIRE)
def test_the_sdk_itself_finds_nothing_to_add(kind):
    def bare(node):
        if isinstance(node, dict):
            return {
                key: bare(value)
                for key, value in node.items()
                if key not in {"minLength", "maxLength"}
                and not (key == "title" and isinstance(value, str))
            }
        return [bare(each) for each in node] if isinstance(node, list) else node

    assert bare(to_strict_json_schema(kind)) == strict_schema(kind)


class Inner(Frozen):
    title: str


class WithDefault(Frozen):
    n: int = 3


class WithMap(Frozen):
    free: dict[str, int]


class WithAny(Frozen):
    anything: object


class Cat(Frozen):
    kind: Literal["cat"]


class Dog(Frozen):
    kind: Literal["dog"]


class WithTag(Frozen):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Open(BaseModel):
    n: int


@pytest.mark.parametrize("kind", [WithDefault, WithMap, WithAny, WithTag, Open])
def test_a_class_that_strict_mode_refuses_is_refused_here(kind):
    with pytest.raises(ConfigError, match=f"{kind.__name__} has no strict schema"):
        strict_schema(kind)


def test_a_field_named_like_a_schema_word_is_kept():
    assert strict_schema(Inner)["properties"] == {"title": {"type": "string"}}
