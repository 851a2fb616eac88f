"""scikit-learn: its extension modules are part of the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Run = Callable[[str], str]


@pytest.fixture
def sklearn_python(full_python: Run) -> Run:
    """Like `full_python`; skips if the interpreter or a pure dependency is not there."""
    names = ("sklearn", "scipy", "joblib", "threadpoolctl", "narwhals", "cloudpickle")
    present = (
        f"from importlib.util import find_spec\nprint(*filter(lambda n: not find_spec(n), {names}))"
    )
    if missing := full_python(present).strip():
        pytest.skip(f"not built: {missing}; run `make packages`")
    return full_python


def test_lines_and_classes_are_fitted(sklearn_python: Run) -> None:
    printed = sklearn_python(
        """
import numpy as np
from sklearn.datasets import load_iris, make_regression
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    SGDClassifier,
)
from sklearn.model_selection import train_test_split

x, y, slopes = make_regression(100, 3, coef=True, random_state=0)
print(
    np.allclose(LinearRegression().fit(x, y).coef_, slopes),
    round(Ridge().fit(x, y).score(x, y), 3),
)
print(np.abs(Lasso(0.1).fit(x, y).coef_ - slopes).max() < 0.3)
x, y = load_iris(return_X_y=True)
parts = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
print([len(part) for part in parts], parts[3][:8].tolist())
model = LogisticRegression(max_iter=1000).fit(parts[0], parts[2])
print(
    model.score(parts[1], parts[3]) > 0.9,
    model.predict(x[:3]).tolist(),
    model.predict_proba(x[:1]).shape,
)
print(SGDClassifier(random_state=0).fit(parts[0], parts[2]).score(parts[1], parts[3]) > 0.6)
"""
    )
    assert printed.splitlines() == [
        "True 1.0",
        "True",
        "[105, 45, 105, 45] [2, 2, 0, 0, 1, 0, 1, 2]",
        "True [0, 0, 0] (1, 3)",
        "True",
    ]


def test_trees_forests_and_neighbours_classify(sklearn_python: Run) -> None:
    printed = sklearn_python(
        """
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, export_text

x, y = load_iris(return_X_y=True)
models = [
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(20, random_state=0, n_jobs=2),
    GradientBoostingClassifier(n_estimators=10, random_state=0),
    HistGradientBoostingClassifier(max_iter=10),
    KNeighborsClassifier(),
    GaussianNB(),
    SVC(),
    LinearSVC(random_state=0),
    MLPClassifier((10,), max_iter=500, solver="lbfgs", random_state=0),
]
for model in models:
    print(type(model).__name__, cross_val_score(model, x, y, cv=3).mean() > 0.9)
print(
    export_text(
        DecisionTreeClassifier(max_depth=1, random_state=0).fit(x, y),
        feature_names=list("abcd"),
    )
)
print((IsolationForest(random_state=0).fit_predict(x) == 1).mean() > 0.5)
"""
    )
    names = (
        *("DecisionTreeClassifier", "RandomForestClassifier", "GradientBoostingClassifier"),
        *("HistGradientBoostingClassifier", "KNeighborsClassifier", "GaussianNB", "SVC"),
        *("LinearSVC", "MLPClassifier"),
    )
    assert printed.splitlines() == [
        *(f"{name} True" for name in names),
        "|--- d <= 0.80",
        "|   |--- class: 0",
        "|--- d >  0.80",
        "|   |--- class: 1",
        "",
        "True",
    ]


def test_groups_and_directions_are_found(sklearn_python: Run) -> None:
    printed = sklearn_python(
        """
import numpy as np
from sklearn.cluster import DBSCAN, HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import NMF, PCA, TruncatedSVD
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score, silhouette_score

x, y = make_blobs(150, centers=[[0, 0], [8, 8], [0, 8]], random_state=0)
for model in (
    KMeans(3, random_state=0),
    DBSCAN(1.5),
    AgglomerativeClustering(3),
    HDBSCAN(copy=True),
):
    print(type(model).__name__, adjusted_rand_score(y, model.fit_predict(x)) > 0.85)
print(silhouette_score(x, y) > 0.6)
pca = PCA(2).fit(np.c_[x, x[:, 0] * 2])
print(
    pca.explained_variance_ratio_.sum().round(9),
    TruncatedSVD(1, random_state=0).fit_transform(x).shape,
)
print(
    NMF(2, init="nndsvda", max_iter=500).fit(np.abs(x)).reconstruction_err_ < 1,
    TSNE(perplexity=20, max_iter=250).fit_transform(x[:60]).shape,
)
"""
    )
    assert printed.splitlines() == [
        "KMeans True",
        "DBSCAN True",
        "AgglomerativeClustering True",
        "HDBSCAN True",
        "True",
        "1.0 (150, 1)",
        "True (60, 2)",
    ]


def test_pipelines_prepare_text_and_tables(sklearn_python: Run) -> None:
    printed = sklearn_python(
        """
import pickle
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

texts = ["good film", "bad film", "good story", "bad acting"] * 5
model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 0, 1, 0] * 5)
print(model.predict(["a good one", "so bad"]).tolist())
print(pickle.loads(pickle.dumps(model)).predict(["good"]).tolist())
table = pd.DataFrame({"n": [1.0, 2.0, None, 4.0], "kind": list("aabb")})
columns = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["n"]), (OneHotEncoder(), ["kind"])
)
print(columns.fit_transform(table).round(3).tolist())
x = np.r_[
    np.random.default_rng(0).normal(0, 1, (30, 2)),
    np.random.default_rng(1).normal(3, 1, (30, 2)),
]
y = np.repeat([0, 1], 30)
search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=3).fit(x, y)
print(search.best_score_ > 0.9, roc_auc_score(y, search.predict_proba(x)[:, 1]) > 0.95)
print(classification_report([0, 1, 1], [0, 1, 0], output_dict=True)["accuracy"].__round__(3))
"""
    )
    assert printed.splitlines() == [
        "[1, 0]",
        "[1]",
        "[[-1.234, 1.0, 0.0], [-0.309, 1.0, 0.0], [0.0, 0.0, 1.0], [1.543, 0.0, 1.0]]",
        "True True",
        "0.667",
    ]


def test_the_number_of_threads_is_one(sklearn_python: Run) -> None:
    program = """
import sklearn
from sklearn.utils._openmp_helpers import (
    _openmp_effective_n_threads,
    _openmp_parallelism_enabled,
)

print(sklearn.__version__, _openmp_parallelism_enabled(), _openmp_effective_n_threads())
"""
    assert sklearn_python(program) == "1.9.1 False 1\n"
