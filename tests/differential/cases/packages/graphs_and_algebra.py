#| packages: networkx sympy
import networkx as nx
import sympy as sp

g = nx.Graph(
    [
        ("a", "b", {"weight": 4}),
        ("b", "c", {"weight": 1}),
        ("a", "c", {"weight": 7}),
        ("d", "e", {"weight": 2}),
    ]
)
print(
    nx.shortest_path(g, "a", "c", weight="weight"),
    sorted(map(sorted, nx.connected_components(g))),
    nx.degree_centrality(g)["b"],
    nx.density(g),
    dict(g.degree()),
)
print(
    sorted(nx.minimum_spanning_edges(g, data=False)),
    nx.pagerank(nx.DiGraph([(1, 2), (2, 3), (3, 1), (3, 2)])) if False else "",
    list(nx.topological_sort(nx.DiGraph([(1, 2), (2, 3)]))),
    nx.is_bipartite(g),
    sorted(map(sorted, nx.find_cliques(g))),
)
print(
    nx.maximum_flow_value(nx.DiGraph([("s", "t", {"capacity": 3})]), "s", "t"),
    sorted(nx.greedy_color(g).values()),
    nx.to_dict_of_lists(g),
    nx.diameter(nx.path_graph(5)),
    nx.clustering(nx.complete_graph(4))[0],
)
x, y = sp.symbols("x y")
print(
    sp.expand((x + y) ** 3),
    sp.factor(x**3 - 1),
    sp.solve(x**2 - 5 * x + 6, x),
    sp.diff(sp.sin(x) * sp.exp(x), x),
    sp.integrate(x**2 * sp.exp(x), x),
    sp.limit(sp.sin(x) / x, x, 0),
)
print(
    sp.series(sp.cos(x), x, 0, 6),
    sp.Matrix([[2, 1], [1, 3]]).eigenvals(),
    sp.simplify(sp.sin(x) ** 2 + sp.cos(x) ** 2),
    sp.latex(sp.Integral(x / y, x)),
    sp.N(sp.pi, 30),
    sp.factorint(360360),
    sp.isprime(2**31 - 1),
)
print(
    sp.solve([x + y - 3, x - y - 1], [x, y]),
    sp.dsolve(sp.Function("f")(x).diff(x) - sp.Function("f")(x)),
    sp.lambdify(x, x**2 + 1)(3),
    sp.Rational(1, 3) + sp.Rational(1, 6),
    sp.nsimplify(0.125),
    sp.apart(1 / (x * (x + 1)), x),
)
