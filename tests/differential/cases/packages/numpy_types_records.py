#| packages: numpy
import numpy as np

people = np.array(
    [("Ada", 36, 1.65), ("Alan", 41, 1.78)],
    dtype=[("name", "U10"), ("age", "i4"), ("height", "f4")],
)
print(people, people["name"], people[people["age"] > 40], people.dtype)
print(np.rec.array(people).age, people.tobytes().hex()[:24], people.dtype.itemsize)
d = np.arange("2024-02-27", "2024-03-03", dtype="datetime64[D]")
print(
    d,
    d.astype("datetime64[M]"),
    np.datetime64("2024-03-01") - np.datetime64("2024-02-01"),
    np.is_busday(d).tolist(),
)
print(
    np.timedelta64(90, "m").astype("timedelta64[h]"),
    np.datetime64("2024-01-01T12:30") + np.timedelta64(1, "s"),
)
print(np.busday_count("2024-01-01", "2024-02-01"), np.datetime_as_string(d[:2], unit="s"))
s = np.array(["alpha", "Beta", " gamma "])
print(
    np.strings.upper(s),
    np.char.add(s, "!"),
    np.strings.strip(s),
    np.strings.find(s, "a"),
    np.char.split("a b c"),
)
print(
    np.array(["x", "yy"], dtype=np.dtypes.StringDType()),
    np.array([b"ab"]).dtype,
    np.array([1, "a"], dtype=object),
)
m = np.ma.masked_array([1, 2, 3, 4], mask=[0, 1, 0, 0])
print(m, m.mean(), m.filled(-1), np.ma.masked_greater([1, 5], 3), m.compressed(), m + 1)
print(
    np.frombuffer(b"\x01\x00\x02\x00", "<i2"),
    np.array([1, 2], ">i4").tobytes(),
    np.packbits([1, 0, 1]),
)
print(
    np.can_cast("i8", "f8"),
    np.result_type("i4", "f4"),
    np.promote_types("u1", "i1"),
    np.array([1.7]).astype(int),
)
for bad in (lambda: np.array(["a"]).astype(float), lambda: np.uint8(300)):
    try:
        bad()
    except (ValueError, OverflowError) as error:
        print(type(error).__name__, error)
