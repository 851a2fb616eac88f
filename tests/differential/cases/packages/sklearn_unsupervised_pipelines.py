#| packages: scikit-learn pandas
#| tolerance: 1e-5
import numpy as np
import pandas as pd
from sklearn import cluster, datasets, decomposition, manifold, metrics, mixture
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

X, y = datasets.make_blobs(150, centers=3, random_state=4)
k = cluster.KMeans(3, n_init=4, random_state=0).fit(X)
print(
    np.sort(k.cluster_centers_, axis=0),
    round(k.inertia_, 5),
    metrics.silhouette_score(X, k.labels_),
    metrics.adjusted_rand_score(y, k.labels_),
)
print(
    np.unique(cluster.DBSCAN(eps=1.0).fit_predict(X), return_counts=True),
    cluster.AgglomerativeClustering(3).fit_predict(X)[:8].max(),
    mixture.GaussianMixture(3, random_state=0).fit(X).converged_,
)
D = datasets.load_digits().data[:200]
p = decomposition.PCA(5, svd_solver="full").fit(D)
print(
    p.explained_variance_ratio_,
    np.abs(p.transform(D[:2])),
    decomposition.TruncatedSVD(3, random_state=0).fit(D).singular_values_.round(4),
    decomposition.NMF(3, random_state=0, max_iter=50, init="nndsvda")
    .fit(D)
    .reconstruction_err_.round(2),
)
print(
    manifold.Isomap(n_components=2).fit_transform(D).shape,
    decomposition.FastICA(2, random_state=0, whiten="unit-variance")
    .fit_transform(D[:, 10:20])
    .shape,
)
docs = ["the cat sat", "the dog sat on the mat", "cats and dogs"]
print(
    CountVectorizer().fit(docs).get_feature_names_out(),
    TfidfVectorizer().fit_transform(docs).toarray().round(5),
)
df = pd.DataFrame(
    {"age": [20, 30, None, 50, 41, 25] * 5, "city": ["a", "b", "a", "c", "b", "c"] * 5}
)
target = [0, 0, 1, 1, 1, 0] * 5
pre = ColumnTransformer(
    [
        ("n", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        ("c", OneHotEncoder(), ["city"]),
    ]
)
search = GridSearchCV(
    make_pipeline(pre, LogisticRegression()), {"logisticregression__C": [0.1, 1, 10]}, cv=3
).fit(df, target)
print(
    search.best_params_,
    search.best_score_,
    search.predict(df.head(4)),
    search.predict_proba(df.head(2)).round(5),
)
print(pre.fit(df).get_feature_names_out(), make_pipeline(pre, LogisticRegression()))
