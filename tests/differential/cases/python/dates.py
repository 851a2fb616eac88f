"""Dates, time zones and durations."""

import calendar
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

moment = datetime(2024, 3, 10, 1, 30, tzinfo=ZoneInfo("America/New_York"))
for hours in range(4):
    later = (moment.astimezone(UTC) + timedelta(hours=hours)).astimezone(moment.tzinfo)
    print(later.isoformat(), later.tzname())
print(datetime.fromisoformat("2024-02-29T12:00:00+05:30").astimezone(UTC))
print(datetime.strptime("31 Dec 1999 23:59", "%d %b %Y %H:%M").strftime("%A %j %U %G-W%V"))
print(date(2024, 2, 29).replace(year=2023, day=28) - date(2020, 2, 29))
print(calendar.month(2024, 2), calendar.isleap(1900), calendar.monthrange(2023, 2))
print(timedelta(days=-1, seconds=5), timedelta(hours=36) / timedelta(minutes=7))
print(datetime.fromtimestamp(0, timezone(timedelta(hours=-3, minutes=-30))))
print(max(date(2024, m, 1) for m in range(1, 13) if date(2024, m, 1).weekday() == 0))
