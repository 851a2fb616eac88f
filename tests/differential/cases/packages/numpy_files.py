#| packages: numpy
import io
import numpy as np

a = np.arange(6).reshape(2, 3) / 4
np.save("a.npy", a)
np.savez_compressed("many.npz", a=a, b=np.arange(3))
with np.load("many.npz") as loaded:
    print(loaded.files, loaded["a"], loaded["b"])
mapped = np.load("a.npy", mmap_mode="r")
print(mapped.sum(), type(mapped).__name__, np.fromfile("a.npy", "u1")[:6])
np.savetxt("a.csv", a, fmt="%.3f", delimiter=",", header="x,y,z")
print(open("a.csv").read(), np.loadtxt("a.csv", delimiter=","))
text = "name,when,value\nada,2020,1.5\nalan,2021,\n"
print(np.genfromtxt(io.StringIO(text), delimiter=",", names=True, dtype=None, encoding="utf-8"))
a.tofile("raw.bin")
print(
    np.fromfile("raw.bin").reshape(2, 3),
    np.fromstring("1 2 3", sep=" "),
    np.memmap("m.dat", dtype="i4", mode="w+", shape=3),
)
np.set_printoptions(precision=3, suppress=True, threshold=8)
print(np.arange(20), np.array([1e-8, 1 / 3]), np.array2string(a, separator=";"))
print(
    np.format_float_positional(1e-5),
    np.format_float_scientific(12345.678, precision=2),
    np.base_repr(255, 16),
)
