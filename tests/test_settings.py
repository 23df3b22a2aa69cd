"""The one converter: types decide, nothing is rounded, what is not there is refused with the nearest."""

import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from steingate.errors import InputError
from steingate.settings import (
    convert,
    field_types,
    import_named,
    named,
    part,
    read_toml,
    setting,
    setting_names,
    to_plain,
    with_settings,
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
    name: str = setting("cart", "how it is called")
    load: float = math.inf
    sizes: tuple[int, ...] = (64, 64)
    color: Literal["red", "green"] = "red"
    horses: int | None = None
    extras: dict[str, Any] = part(dict)
    axle: Axle = part(Axle)


class TestConvert:
    @pytest.mark.parametrize(
        ("hint", "value", "expected"),
        [
            (float, 2, 2.0),
            (float, "2", 2.0),
            (float, " 2.5 ", 2.5),
            (float, "inf", math.inf),
            (float, "-inf", -math.inf),
            (int, 10.0, 10),
            (int, "10.0", 10),
            (int, "1e6", 1_000_000),
            (int, "10_000", 10_000),
            (int, "-3", -3),
            (int, str(2**62 + 1), 2**62 + 1),
            (int | None, "none", None),
            (int | None, "None", None),
            (int | None, None, None),
            (int | None, "3", 3),
            (str | None, "none", None),
            (str | None, "nobody", "nobody"),
            (bool, "yes", True),
            (bool, "FALSE", False),
            (bool, "0", False),
            (bool, True, True),
            (tuple[int, ...], "64,64", (64, 64)),
            (tuple[int, ...], [64, 32.0], (64, 32)),
            (tuple[int, ...], "", ()),
            (Literal["red", "green"], "green", "green"),
            (dict[str, Any], ["a=1", "b=x", "c=[1, 2]"], {"a": 1, "b": "x", "c": [1, 2]}),
            (dict[str, Any], "a=true", {"a": True}),
            (dict[str, Any], {"a": 1}, {"a": 1}),
            (Any, {1}, {1}),
        ],
    )
    def test_it_takes_what_means_the_same(self, hint, value, expected):
        found = convert(hint, value, "it")
        assert found == expected
        assert type(found) is type(expected)

    @pytest.mark.parametrize(
        ("hint", "value", "expected"),
        [
            (int, True, "a whole number"),
            (float, False, "a number"),
            (int, 2.5, "a whole number"),
            (int, "2.5", "a whole number"),
            (int, "", "a whole number"),
            (int, "inf", "a whole number"),
            (int, math.nan, "a whole number"),
            (float, "fast", "a number"),
            (float, None, "a number"),
            (float, [1.0], "a number"),
            (str, 3, "text"),
            (bool, 1, "true or false"),
            (bool, "maybe", "true or false"),
            (int | None, "nun", "none or a whole number"),
            (tuple[int, ...], 64, "a list of whole numbers like 64,64"),
            (dict[str, Any], 3, "a table of names and values"),
            (Literal["red", "green"], "blue", "one of red, green"),
        ],
    )
    def test_it_refuses_what_does_not(self, hint, value, expected):
        with pytest.raises(InputError) as error:
            convert(hint, value, "it")
        assert str(error.value) == f"it is {value!r}: {expected} is expected."

    def test_numbers_are_never_rounded(self):
        with pytest.raises(InputError):
            convert(float, 2**53 + 1, "it")
        with pytest.raises(InputError):
            convert(tuple[int, ...], "64,1.5", "it")

    def test_the_nearest_choice_is_named(self):
        with pytest.raises(InputError, match=r"one of red, green is expected \(did you mean green\?\)\."):
            convert(Literal["red", "green"], "gren", "color")

    def test_words_of_a_table_need_a_name_and_a_value(self):
        for word in ("budget", "=3"):
            with pytest.raises(InputError, match="KEY=VALUE is expected"):
                convert(dict[str, Any], [word], "certificate")

    def test_numbers_that_are_not_any_are_kept_as_such(self):
        assert math.isnan(convert(float, "nan", "it"))


class TestRecords:
    def test_names_have_dots_for_parts(self):
        assert setting_names(Cart()) == [
            "name", "load", "sizes", "color", "horses", "extras",
            "axle.wheel.spokes", "axle.wheel.radius", "axle.stiff",
        ]  # fmt: skip
        assert list(field_types(Axle)) == ["wheel", "stiff"]

    def test_dots_and_tables_reach_the_same_fields(self):
        expected = Cart(name="van", axle=Axle(Wheel(12), True))
        by_dots = {"name": "van", "axle.wheel.spokes": "12", "axle.stiff": "yes"}
        by_tables = {"name": "van", "axle": {"wheel": {"spokes": 12.0}, "stiff": True}}
        mixed = {"name": "van", "axle": {"wheel.spokes": 12}, "axle.stiff": True}
        for given in (by_dots, by_tables, mixed, {"name": "van", "axle": Axle(Wheel(12), True)}):
            assert with_settings(Cart(), given, "cart") == expected

    def test_a_part_given_whole_can_be_changed_at_once(self):
        found = with_settings(Cart(), {"axle": Axle(stiff=True), "axle.wheel.spokes": 3}, "cart")
        assert found.axle == Axle(Wheel(3), True)

    def test_dashes_may_stand_for_underscores(self):
        @dataclass(frozen=True)
        class Long:
            max_load: float = 1.0

        assert with_settings(Long(), {"max-load": 3}, "it").max_load == 3.0

    def test_nothing_given_is_the_same_record(self):
        cart = Cart()
        assert with_settings(cart, {}, "cart") is cart

    @pytest.mark.parametrize(
        ("given", "complaint"),
        [
            ({"nmae": 1}, r"this cart has no setting 'nmae' \(did you mean name\?\)\."),
            ({"spokes": 1}, r"this cart has no setting 'spokes' \(did you mean axle.wheel.spokes\?\)\."),
            ({"axle.spoke": 1}, r"no setting 'axle.spoke' \(did you mean axle.wheel.spokes\?\)"),
            ({"axle": {"wheel": {"spoks": 1}}}, r"no setting 'axle.wheel.spoks' \(did you mean axle.wheel"),
            ({"name.first": 1}, "this cart has no setting 'name.first'"),
            ({"qqq": 1}, r"this cart has no setting 'qqq'\.$"),
            ({"axle": 3}, r"axle is 3: set its fields, such as axle.wheel.spokes\."),
            ({"axle.wheel.spokes": "many"}, "axle.wheel.spokes is 'many': a whole number is expected"),
        ],
    )
    def test_what_is_not_there_is_refused_with_the_nearest(self, given, complaint):
        with pytest.raises(InputError, match=complaint):
            with_settings(Cart(), given, "this cart")

    def test_values_that_need_each_other_can_be_given_together(self):
        @dataclass(frozen=True)
        class Pair:
            low: int = 0
            high: int = 1

            def __post_init__(self):
                if self.low >= self.high:
                    raise InputError("low must be below high.")

        assert with_settings(Pair(), {"low": 5, "high": 6}, "pair") == Pair(5, 6)
        with pytest.raises(InputError, match="below"):
            with_settings(Pair(), {"low": 5}, "pair")

    def test_a_record_survives_json(self):
        cart = Cart(load=math.inf, sizes=(1, 2), extras={"deep": {"x": (1, 2)}}, axle=Axle(Wheel(3, 0.25)))
        plain = to_plain(cart)
        assert plain["load"] == "inf"
        back = with_settings(Cart(load=0.0), json.loads(json.dumps(plain, allow_nan=False)), "cart")
        assert back.load == math.inf
        assert (back.sizes, back.axle, back.horses) == (cart.sizes, cart.axle, None)
        assert back.extras == {"deep": {"x": [1, 2]}}

    def test_help_stays_with_the_field(self):
        assert Cart.__dataclass_fields__["name"].metadata["help"] == "how it is called"
        assert Cart().extras is not Cart().extras


class TestFilesAndNames:
    def test_a_file_that_cannot_be_used_is_named(self, tmp_path):
        with pytest.raises(InputError, match=r"missing\.toml cannot be read: No such file"):
            read_toml(tmp_path / "missing.toml")
        (tmp_path / "bad.toml").write_text("seed = = 3")
        with pytest.raises(InputError, match=r"bad\.toml is not valid TOML"):
            read_toml(tmp_path / "bad.toml")
        (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
        with pytest.raises(InputError, match=r"bytes\.toml is not valid TOML"):
            read_toml(tmp_path / "bytes.toml")

    def test_names_lead_back_to_their_objects(self):
        assert import_named(named(Cart), "The cart") is import_named(f"{__name__}:Cart", "The cart")
        assert named(Cart()) == named(Cart) == f"{__name__}:Cart"
        assert import_named("math:sqrt", "The root") is math.sqrt
        assert import_named("os:path.join", "The path")("a", "b") == "a/b"

    def test_a_module_beside_the_user_is_found(self, tmp_path, monkeypatch):
        (tmp_path / "beside_the_user.py").write_text("answer = 42\n")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.path", ["/nowhere"])
        assert import_named("beside_the_user:answer", "The answer") == 42

    def test_what_is_not_there_is_refused_with_the_nearest(self):
        with pytest.raises(InputError, match=r"The root 'maths:sqrt' cannot be imported: .*import path\."):
            import_named("maths:sqrt", "The root")
        with pytest.raises(
            InputError, match=r"'math:sqqrt' is not there: math has no 'sqqrt' \(did you mean"
        ):
            import_named("math:sqqrt", "The root")
