#| packages: matplotlib pandas
#| pixels: 0.01
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(1)
fig, ((a, b), (c, d)) = plt.subplots(2, 2, figsize=(8, 6))
a.bar(["a", "b", "c"], [3, 7, 5], color=["C0", "C1", "C2"])
n, bins, _ = b.hist(rng.normal(size=1000), bins=20, edgecolor="white")
print(n.sum(), bins[0], bins[-1])
s = c.scatter(
    rng.random(50),
    rng.random(50),
    c=rng.random(50),
    s=100 * rng.random(50),
    cmap="viridis",
    alpha=0.7,
)
fig.colorbar(s, ax=c)
d.pie([30, 20, 50], labels=["x", "y", "z"], autopct="%1.1f%%", startangle=90)
fig.tight_layout()
fig.savefig("charts.png")
fig, (a, b) = plt.subplots(1, 2, figsize=(8, 3))
im = a.imshow(np.outer(np.sin(np.arange(20)), np.cos(np.arange(30))), cmap="magma")
a.set_title("imshow")
X, Y = np.meshgrid(np.linspace(-2, 2, 40), np.linspace(-2, 2, 40))
cs = b.contourf(X, Y, np.exp(-(X**2) - Y**2), levels=8)
b.contour(X, Y, X * Y, colors="w", linewidths=0.5)
fig.savefig("fields.png")
ax = pd.DataFrame(
    {"u": [1, 3, 2], "v": [2, 2, 4]}, index=pd.date_range("2024-01-01", periods=3)
).plot(kind="line", marker="o", figsize=(5, 3))
ax.figure.savefig("frame.png")
fig = plt.figure(figsize=(5, 4))
ax = fig.add_subplot(projection="3d")
ax.plot_surface(X, Y, np.sin(X * Y), cmap="coolwarm")
fig.savefig("surface.png")
fig, ax = plt.subplots(subplot_kw={"projection": "polar"})
ax.plot(np.linspace(0, 6.28, 50), np.linspace(0, 1, 50))
ax.boxplot
fig.savefig("polar.png")
fig, ax = plt.subplots(figsize=(4, 3))
ax.boxplot([rng.normal(size=30), rng.normal(1, 2, 30)], tick_labels=["p", "q"])
ax.text(1.5, 3, r"$\frac{\alpha^2}{\sqrt{\beta}}\;\sum_{i=0}^n x_i$", fontsize=14)
fig.savefig("boxes.png")
