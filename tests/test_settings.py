"""Conversion of option values, nested and flat groups, and error messages with the nearest name."""

import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from steingate.errors import InputError
from steingate.settings import (
    convert,
    field_types,
    group,
    import_object,
    load_file,
    object_name,
    option,
    option_names,
    to_json,
    with_options,
)


@dataclass(frozen=True)
class Wheel:
    spokes: int = 20
    radius: float = 0.5


@dataclass(frozen=True)
class Axle:
    wheel: Wheel = field(default_factory=Wheel)
    stiff: bool = False


@dataclass(frozen=True)
class Cart:
    name: str = option("cart", "name of the cart")
    load: float = math.inf
    sizes: tuple[int, ...] = (64, 64)
    color: Literal["red", "green"] = "red"
    horses: int | None = None
    extras: dict[str, Any] = option({}, "")
    axle: Axle = group(Axle)


class TestConvert:
    @pytest.mark.parametrize(
        ("hint", "value", "expected"),
        [
            (float, 2, 2.0),
            (float, " 2.5 ", 2.5),
            (int, "10.0", 10),
            (int, "1e6", 1_000_000),
            (int, "10_000", 10_000),
            (int, str(2**62 + 1), 2**62 + 1),
            (int | None, "None", None),
            (int | None, None, None),
            (str | None, "nobody", "nobody"),
            (bool, "yes", True),
            (bool, "0", False),
            (tuple[int, ...], "64,64", (64, 64)),
            (tuple[int, ...], "", ()),
            (Literal["red", "green"], "green", "green"),
            (dict[str, Any], "a=true", {"a": True}),
            (dict[str, Any], {"a": 1}, {"a": 1}),
        ],
    )
    def test_equivalent_values_are_accepted(self, hint, value, expected):
        found = convert(hint, value, "it")
        assert found == expected
        assert type(found) is type(expected)

    @pytest.mark.parametrize(
        ("hint", "value", "expected"),
        [
            (int, True, "an integer"),
            (int, 2.5, "an integer"),
            (int, "2.5", "an integer"),
            (float, "fast", "a number"),
            (str, 3, "text"),
            (bool, 1, "true or false"),
            (int | None, "nun", "none or an integer"),
            (tuple[int, ...], 64, "a list of integers such as 64,64"),
            (dict[str, Any], 3, "a table of names and values"),
            (Literal["red", "green"], "blue", "one of red, green"),
        ],
    )
    def test_other_values_are_rejected(self, hint, value, expected):
        with pytest.raises(InputError) as error:
            convert(hint, value, "it")
        assert str(error.value) == f"it must be {expected}, got {value!r}."

    def test_numbers_are_never_rounded(self):
        with pytest.raises(InputError):
            convert(float, 2**53 + 1, "it")
        with pytest.raises(InputError):
            convert(tuple[int, ...], "64,1.5", "it")

    def test_table_entries_need_a_key_and_a_value(self):
        for word in ("budget", "=3"):
            with pytest.raises(InputError, match="certificate must be KEY=VALUE"):
                convert(dict[str, Any], [word], "certificate")


class TestConfigurations:
    def test_options_of_groups_have_dotted_names(self):
        assert option_names(Cart()) == [
            "name", "load", "sizes", "color", "horses", "extras",
            "axle.wheel.spokes", "axle.wheel.radius", "axle.stiff",
        ]  # fmt: skip
        assert list(field_types(Axle)) == ["wheel", "stiff"]

    def test_dotted_names_and_nested_tables_are_equivalent(self):
        expected = Cart(name="van", axle=Axle(Wheel(12), True))
        by_dots = {"name": "van", "axle.wheel.spokes": "12", "axle.stiff": "yes"}
        by_tables = {"name": "van", "axle": {"wheel": {"spokes": 12.0}, "stiff": True}}
        mixed = {"name": "van", "axle": {"wheel.spokes": 12}, "axle.stiff": True}
        for given in (by_dots, by_tables, mixed, {"name": "van", "axle": Axle(Wheel(12), True)}):
            assert with_options(Cart(), given, "cart") == expected

    @pytest.mark.parametrize(
        ("given", "complaint"),
        [
            ({"nmae": 1}, r"this cart has no option 'nmae' \(did you mean name\?\)\."),
            ({"spokes": 1}, r"this cart has no option 'spokes' \(did you mean axle.wheel.spokes\?\)\."),
            ({"axle.spoke": 1}, r"no option 'axle.spoke' \(did you mean axle.wheel.spokes\?\)"),
            ({"axle": 3}, r"axle is a group of options, not 3; set axle.wheel.spokes, for example\."),
            ({"axle.wheel.spokes": "many"}, "axle.wheel.spokes must be an integer, got 'many'"),
        ],
    )
    def test_unknown_options_get_a_suggestion(self, given, complaint):
        with pytest.raises(InputError, match=complaint):
            with_options(Cart(), given, "this cart")

    def test_dependent_values_are_validated_together(self):
        @dataclass(frozen=True)
        class Pair:
            low: int = 0
            high: int = 1

            def __post_init__(self):
                if self.low >= self.high:
                    raise InputError("low must be below high.")

        assert with_options(Pair(), {"low": 5, "high": 6}, "pair") == Pair(5, 6)
        with pytest.raises(InputError, match="below"):
            with_options(Pair(), {"low": 5}, "pair")

    def test_json_round_trip(self):
        cart = Cart(load=math.inf, sizes=(1, 2), extras={"deep": {"x": (1, 2)}}, axle=Axle(Wheel(3, 0.25)))
        plain = to_json(cart)
        assert plain["load"] == "inf"
        back = with_options(Cart(load=0.0), json.loads(json.dumps(plain, allow_nan=False)), "cart")
        assert back.load == math.inf
        assert (back.sizes, back.axle, back.horses) == (cart.sizes, cart.axle, None)
        assert back.extras == {"deep": {"x": [1, 2]}}


@dataclass(frozen=True)
class Gae:
    gamma: float = option(0.99, "discount")
    gae_lambda: float = option(0.95, "lambda")


@dataclass(frozen=True)
class Ppo:
    epochs: int = option(10, "passes")
    gae: Gae = group(Gae, flat=True)


@dataclass(frozen=True)
class Method:
    gae: Gae = group(Gae, flat=True)
    ppo: Ppo = group(lambda: Ppo(epochs=5))


class TestFlatGroups:
    def test_names_leave_the_group_out(self):
        assert option_names(Method()) == ["gamma", "gae_lambda", "ppo.epochs", "ppo.gamma", "ppo.gae_lambda"]

    @pytest.mark.parametrize(
        "given",
        [
            {"gae_lambda": "0.5", "ppo.gamma": 0.25},
            {"gae.gae_lambda": 0.5, "ppo": {"gae": {"gamma": 0.25}}},
            {"gae": {"gae-lambda": 0.5}, "ppo.gae.gamma": "0.25"},
            {"gae": Gae(gae_lambda=0.5), "ppo": {"gamma": 0.25}},
        ],
    )
    def test_short_and_full_names_are_equivalent(self, given):
        expected = Method(Gae(gae_lambda=0.5), Ppo(5, Gae(gamma=0.25)))
        assert with_options(Method(), given, "method") == expected

    def test_json_has_the_short_names_and_is_read_back(self):
        method = Method(Gae(gae_lambda=0.5), Ppo(gae=Gae(gamma=0.25)))
        table = to_json(method)
        assert table == {"gamma": 0.99, "gae_lambda": 0.5, "ppo": {"epochs": 10, "gamma": 0.25, "gae_lambda": 0.95}}
        assert with_options(Method(), table, "method") == method


class TestFilesAndNames:
    def test_errors_contain_the_file(self, tmp_path):
        with pytest.raises(InputError, match=r"Cannot read .*missing\.toml: No such file"):
            load_file(tmp_path / "missing.toml")
        (tmp_path / "bad.toml").write_text("seed = = 3")
        with pytest.raises(InputError, match=r"bad\.toml is not valid TOML"):
            load_file(tmp_path / "bad.toml")
        (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
        with pytest.raises(InputError, match=r"bytes\.toml is not valid TOML"):
            load_file(tmp_path / "bytes.toml")

    def test_object_names_round_trip(self):
        assert import_object(object_name(Cart), "The cart") is import_object(f"{__name__}:Cart", "The cart")
        assert object_name(Cart()) == object_name(Cart) == f"{__name__}:Cart"
        assert import_object("math:sqrt", "The root") is math.sqrt
        assert import_object("os:path.join", "The path")("a", "b") == "a/b"

    def test_missing_objects_get_a_suggestion(self):
        with pytest.raises(InputError, match=r"The root 'maths:sqrt' cannot be imported: .*import path\."):
            import_object("maths:sqrt", "The root")
        with pytest.raises(InputError, match=r"'math:sqqrt' does not exist: math has no 'sqqrt' \(did you mean"):
            import_object("math:sqqrt", "The root")
