#| packages: matplotlib
#| pixels: 0.005
import matplotlib
import matplotlib.pyplot as plt
import numpy as np

print(matplotlib.get_backend().lower(), matplotlib.__version__)
x = np.linspace(0, 10, 200)
fig, ax = plt.subplots(figsize=(6, 4))
ax.plot(x, np.sin(x), label="sin(x)")
ax.plot(x, np.cos(x), "--", color="tab:red", lw=2, label=r"$\cos(x)$")
ax.fill_between(x, np.sin(x), 0, alpha=0.2)
ax.set(xlabel="x", ylabel="y", title="Waves: äöü", xlim=(0, 10))
ax.axhline(0, color="k", lw=0.5)
ax.annotate("max", (np.pi / 2, 1), (3, 1.3), arrowprops={"arrowstyle": "->"})
ax.legend(loc="lower left")
ax.grid(True, alpha=0.3)
fig.savefig("lines.png", dpi=100)
fig.savefig("lines.svg")
fig.savefig("lines.pdf")
print(
    len(ax.lines),
    ax.get_xlim(),
    [t.get_text() for t in ax.legend_.get_texts()],
    fig.get_size_inches(),
)
plt.close(fig)
fig, axes = plt.subplots(2, 2, figsize=(6, 5), layout="constrained")
axes[0, 0].semilogy(x, np.exp(x))
axes[0, 1].loglog(x + 1, x**2 + 1)
axes[1, 0].step(x[::20], np.sin(x[::20]), where="mid")
axes[1, 1].errorbar(x[::20], np.cos(x[::20]), yerr=0.2, fmt="o", capsize=3)
fig.suptitle("Four")
plt.savefig("grid.png")
print(plt.get_fignums())
