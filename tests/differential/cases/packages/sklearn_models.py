#| packages: scikit-learn
#| tolerance: 1e-5
import numpy as np
from sklearn import (
    datasets,
    linear_model,
    metrics,
    model_selection,
    neighbors,
    preprocessing,
    svm,
    tree,
)
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.naive_bayes import GaussianNB

X, y = datasets.load_iris(return_X_y=True)
a, b, ya, yb = model_selection.train_test_split(X, y, random_state=0, test_size=0.3, stratify=y)
for model in (
    linear_model.LogisticRegression(max_iter=500),
    tree.DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(20, random_state=0),
    svm.SVC(),
    svm.LinearSVC(random_state=0),
    neighbors.KNeighborsClassifier(),
    GaussianNB(),
    linear_model.SGDClassifier(random_state=0),
    HistGradientBoostingClassifier(max_iter=10, random_state=0),
):
    model.fit(a, ya)
    print(type(model).__name__, round(model.score(b, yb), 6), model.predict(b[:6]))
print(
    metrics.classification_report(
        yb, linear_model.LogisticRegression(max_iter=500).fit(a, ya).predict(b)
    )
)
print(
    metrics.confusion_matrix(yb, GaussianNB().fit(a, ya).predict(b)),
    tree.export_text(tree.DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)),
)
D, t = datasets.load_diabetes(return_X_y=True)
for model in (
    linear_model.LinearRegression(),
    linear_model.Ridge(0.5),
    linear_model.Lasso(0.1),
    linear_model.ElasticNet(0.1),
    tree.DecisionTreeRegressor(max_depth=3, random_state=0),
    GradientBoostingRegressor(n_estimators=20, random_state=0),
):
    print(type(model).__name__, model_selection.cross_val_score(model, D, t, cv=3).round(5))
m = linear_model.LinearRegression().fit(D, t)
print(
    m.coef_.round(4),
    m.intercept_,
    metrics.mean_squared_error(t, m.predict(D)),
    metrics.r2_score(t, m.predict(D)),
    metrics.roc_auc_score(y == 2, X[:, 0]),
)
print(
    preprocessing.StandardScaler().fit_transform(X)[0],
    preprocessing.OneHotEncoder().fit_transform([["a"], ["b"]]).toarray(),
    preprocessing.LabelEncoder().fit_transform(["x", "y", "x"]),
    preprocessing.PolynomialFeatures(2).fit_transform([[2, 3]]),
)
