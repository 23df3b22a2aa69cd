"""Reading costs: each format, and a clear refusal of everything that is not a list of costs."""

import io
import os
import threading

import numpy as np
import pytest

from steingate.certificates.io import CostParser, check_costs, read_costs
from steingate.errors import InputError


@pytest.mark.parametrize(
    "costs",
    [[1, 2.5, 0], (0.0,), np.arange(4), np.array([1.0, 2.0], dtype=np.float16), np.arange(6, dtype=np.uint8)[::2]],
)
def test_anything_one_dimensional_and_real_is_taken(costs):
    values = check_costs(costs)
    assert values.dtype == np.float64
    assert values.tolist() == [float(cost) for cost in costs]


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ([], "no costs"),
        ([1.0, float("nan")], "nan at position 1"),
        ([1.0, float("inf")], "inf at position 1"),
        ([3.0, 2.0, -0.5], "-0.5 at position 2"),
        ([[1.0, 2.0]], r"\(1, 2\)"),
        (5.0, r"shape \(\)"),
        ([True, False], "bool"),
        (["12", "13"], "'12'"),
        ([None, 1.0], "object"),
        ([[1.0], [1.0, 2.0]], "different lengths"),
        (np.ma.masked_greater(np.array([1.0, 9.0]), 5.0), "masked"),
        (iter([1.0, 2.0]), r"shape \(\)"),
    ],
)
def test_what_is_no_list_of_costs_is_refused_by_name(costs, words):
    with pytest.raises(InputError, match=words):
        check_costs(costs)


WANTED = [1.0, 20.5, 0.0]


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("one.csv", "1\n20.5\n0\n", None),
        ("other_header.csv", "EpCost\n1\n20.5\n0\n", None),
        ("bom.csv", "\ufeffcost\r\n1\r\n20.5\r\n0\r\n", None),
        ("many.csv", "step,cost,ret\n9,1,5\n9,20.5,5\n9,0,5\n", None),
        ("named.csv", "step,EpCost\n9,1\n9,20.5\n9,0\n", "EpCost"),
        ("quoted.csv", '"a, b",cost\n"x, y","1"\n"x",20.5\nz,0\n', None),
        ("tabs.tsv", "step\tcost\n9\t1\n9\t20.5\n9\t0\n", None),
        ("semicolons.txt", "step;cost\n9;1\n9;20.5\n9;0\n", None),
        ("array.json", "[1, 20.5, 0]", None),
        ("lines.jsonl", '{"cost": 1}\n{"cost": 20.5}\n\n{"cost": 0}\n', None),
        ("keyed.jsonl", '{"c": 1}\n{"c": 20.5}\n{"c": 0}\n', "c"),
        ("objects.json", '[{"cost": 1}, {"cost": 20.5}, {"cost": 0}]', None),
        ("numbers.jsonl", "1\n20.5\n0\n", None),
    ],
)
def test_each_text_format_gives_the_same_costs_from_file_and_stdin(tmp_path, name, text, column):
    path = tmp_path / name
    path.write_bytes(text.encode())
    data = read_costs(path, column)
    assert data.costs.tolist() == WANTED
    assert read_costs("-", column, io.BytesIO(text.encode())).costs.tolist() == WANTED


def test_npy_is_read_from_file_and_stdin(tmp_path):
    path = tmp_path / "costs.npy"
    np.save(path, np.array(WANTED, dtype=np.float32))
    assert read_costs(path).costs.tolist() == WANTED
    assert read_costs("-", None, io.BytesIO(path.read_bytes())).costs.tolist() == WANTED


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", None, "empty"),
        ("cost\n", None, "is empty"),
        ("1\n2\nabc\n", None, "line 3: 'abc'"),
        ("cost\n1\n\n-2\n", None, "line 4: '-2'"),
        ("NA\n1\n", None, "line 1: 'NA'"),
        ("[" * 100_000, None, "line 1: .* is not JSON"),
        ("1\n1_000\n", None, "line 2: '1_000'"),
        ("a,cost\n1,2\n1\n", None, "line 3: has 1 columns, but the first line has 2"),
        ("a,b\n1,2\n", None, "no column 'cost' .*a, b"),
        ("1,2\n", None, "no column 'cost' .*2 columns without names"),
        ("a,b\n1,2\n", "c", "no column 'c'.*a, b"),
        ("1,2\n", "3", "no column '3'"),
        ("[1, null]", None, "line 2: None"),
        ("[1, NaN]", None, "line 2: nan"),
        ("[[1, 2]]", None, r"line 1: \[1, 2\]"),
        ('{"cost": 1}\nnonsense\n', None, "line 2: 'nonsense' is not JSON"),
        ('{"ret": 1}\n', None, "no key 'cost'.*ret"),
        ("[1, 2]", "cost", "not an object"),
        ('[1, "20.5"]', None, "line 2: '20.5' is text; write costs as JSON numbers"),
        ('{"cost": 1}\n{"cost": "20.5"}\n', None, "line 2: '20.5' is text"),
    ],
)
def test_bad_text_is_refused_with_line_and_value(text, column, words):
    with pytest.raises(InputError, match=words):
        read_costs("-", column, io.BytesIO(text.encode()))


def test_bad_files_are_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"no file .*missing\.csv"):
        read_costs(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="folder"):
        read_costs(tmp_path)
    (tmp_path / "image.csv").write_bytes(b"\xff\xd8\xff\xe0")
    with pytest.raises(InputError, match=r"image\.csv, line 1: .* is not a cost"):
        read_costs(tmp_path / "image.csv")
    np.savez(tmp_path / "costs.npz", cost=np.ones(3))
    with pytest.raises(InputError, match="archive"):
        read_costs(tmp_path / "costs.npz")
    np.save(tmp_path / "cut.npy", np.ones(3))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:-4])
    with pytest.raises(InputError, match="damaged"):
        read_costs(tmp_path / "cut.npy")
    np.save(tmp_path / "plain.npy", np.ones(3))
    with pytest.raises(InputError, match="an array without columns"):
        read_costs(tmp_path / "plain.npy", "cost")


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (3L,), }",
        b"((((((((",
        b"",
    ],
)
@pytest.mark.parametrize("version", [b"\x01\x00", b"\x03\x00", b"\x09\x00"])
def test_damaged_npy_headers_are_refused_by_name(tmp_path, header, version):
    size = len(header).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    path = tmp_path / "odd.npy"
    path.write_bytes(b"\x93NUMPY" + version + size + header + b"\0" * 8)
    with pytest.raises(InputError, match=r"odd\.npy is damaged"):
        read_costs(path)


class Payload:
    """Unpickling this would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_an_npy_with_python_objects_is_refused_and_runs_nothing(tmp_path):
    trap = tmp_path / "trap"
    np.save(tmp_path / "objects.npy", np.array([Payload(str(trap))], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        read_costs(tmp_path / "objects.npy")
    assert not trap.exists()


@pytest.mark.parametrize("column", [None, "cost"])
def test_labels_of_clusters(tmp_path, column):
    path = tmp_path / "costs.csv"
    path.write_text("day,cost\nmon,1\nmon,20.5\ntue,0\n")
    data = read_costs(path, column, cluster="day")
    assert (data.costs.tolist(), data.clusters.tolist()) == (WANTED, ["mon", "mon", "tue"])
    text = '{"day": 1, "cost": 1}\n{"day": 1, "cost": 20.5}\n{"day": 2, "cost": 0}'
    assert read_costs("-", column, io.BytesIO(text.encode()), "day").clusters.tolist() == ["1", "1", "2"]
    with pytest.raises(InputError, match=r"no column 'night' \(it has day, cost\)"):
        read_costs(path, column, cluster="night")
    with pytest.raises(InputError, match="1 columns without names"):
        read_costs("-", column, io.BytesIO(b"1\n2\n"), "day")
    with pytest.raises(InputError, match="has no key 'day'"):
        read_costs("-", column, io.BytesIO(b'{"cost": 1}'), "day")


def test_sources_without_end_are_refused(monkeypatch):
    monkeypatch.setattr("steingate.certificates.io.MAX_BYTES", 1 << 20)
    with pytest.raises(InputError, match="/dev/zero is larger than 1 MiB"):
        read_costs("/dev/zero")


def test_named_pipes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("1\n20.5\n0\n",))
    writer.start()
    assert read_costs(tmp_path / "pipe").costs.tolist() == WANTED
    writer.join()


def test_training_episodes_are_of_many_policies(tmp_path):
    with pytest.raises(InputError, match="is a folder; name the file"):
        read_costs(tmp_path)
    path = tmp_path / "0.monitor.csv"
    path.write_text('#{"t_start": 1700000000.0, "env_id": "Safe-v0"}\nr,l,t,ep_cost\n1.5,200,0.5,30\n1.0,200,1.5,1\n')
    with pytest.raises(InputError, match=r"many policies if it was written in training.*--column cost"):
        read_costs(path)
    assert read_costs(path, "ep_cost").costs.tolist() == [30.0, 1.0]


# Lines


def test_lines_of_several_costs():
    parser = CostParser(("a", "b"))
    assert parser.line(1, "b, a") is None
    assert parser.line(2, "1, 2") == {"a": 2.0, "b": 1.0}
    assert parser.line(3, "") is None
    with pytest.raises(InputError, match="Line 4: has 1 columns"):
        parser.line(4, "1")
    objects = CostParser(("a", "b"))
    assert objects.line(1, '{"a": 1, "b": 2, "c": 3}') == {"a": 1.0, "b": 2.0}
    with pytest.raises(InputError, match=r"Line 2: has no key 'b' \(it has a\)"):
        objects.line(2, '{"a": 1}')


def test_comments_are_skipped_before_the_header_only():
    parser = CostParser(("cost",))
    lines = ['#{"t_start": 1.0, "env_id": "Safe-v0"}', "r,l,t,cost", "1.5,200,3.25,7"]
    found = [parser.line(number, text) for number, text in enumerate(lines, start=1)]
    assert found == [None, None, {"cost": 7.0}]
    with pytest.raises(InputError, match="Line 4"):
        parser.line(4, "#1.5,200,3.25,#7")
