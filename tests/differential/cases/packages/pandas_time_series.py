#| packages: pandas
import numpy as np
import pandas as pd

idx = pd.date_range("2024-01-30 22:00", periods=300, freq="6h")
ts = pd.Series(np.sin(np.arange(300) / 10) * 10, index=idx)
print(
    ts.resample("ME").mean(),
    ts.resample("W").agg(["min", "max"]),
    ts["2024-02-01"],
    ts.asfreq("D").head(3),
    sep="\n",
)
print(
    ts.rolling("2D").mean().tail(3),
    ts.shift(1, freq="D").head(2),
    ts.diff().abs().max(),
    ts.expanding().std().iloc[-1],
    sep="\n",
)
local = ts.tz_localize("UTC").tz_convert("Europe/Berlin")
print(local.index[:3], local["2024-03-31"].index.strftime("%H:%M %Z").tolist(), local.index.tz)
print(
    pd.Timestamp("2024-02-29") + pd.DateOffset(years=1),
    pd.Timestamp("2024-03-15").to_period("Q"),
    pd.bdate_range("2024-03-28", periods=3),
)
print(
    pd.period_range("2024-01", periods=3, freq="M"),
    pd.Timedelta("1 days 02:03:04").total_seconds(),
    pd.to_timedelta(["1h", "2min"]),
)
s = pd.Series(pd.to_datetime(["2024-01-01 10:15:00", "2024-12-31 23:59:59", None]))
print(
    s.dt.day_of_year,
    s.dt.day_name(),
    s.dt.quarter,
    s.dt.floor("h"),
    s.dt.isocalendar(),
    s - s.min(),
    sep="\n",
)
print(
    pd.to_datetime(["1/2/2024", "2024-02-30"], errors="coerce", format="mixed"),
    pd.Timestamp(0, unit="s", tz="Asia/Tokyo"),
)
print(
    pd.tseries.offsets.BMonthEnd().rollforward(pd.Timestamp("2024-06-15")),
    pd.infer_freq(idx),
    pd.date_range("2024", periods=2, freq="YE"),
)
print(
    ts.interpolate().iloc[5],
    ts.between_time("03:00", "05:00").size,
    ts.at_time("04:00").size,
    ts.idxmax(),
    ts.autocorr(1),
)
print(
    pd.Timestamp.now().year > 2000,
    pd.Timestamp("2024-05-05").isoformat(),
    pd.NaT is pd.Timestamp("NaT"),
    pd.DataFrame({"y": [2024], "m": [5]}).shape,
)
