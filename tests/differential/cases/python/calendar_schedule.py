"""Interval arithmetic: free slots in a calendar, business days, recurring dates."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta


@dataclass(frozen=True, order=True)
class Slot:
    start: datetime
    end: datetime

    def __str__(self) -> str:
        return f"{self.start:%a %H:%M}-{self.end:%H:%M}"


def free(day: date, busy: list[Slot]) -> list[Slot]:
    cursor, end = datetime.combine(day, time(9)), datetime.combine(day, time(17))
    gaps = []
    for slot in sorted(busy):
        if slot.start > cursor:
            gaps.append(Slot(cursor, slot.start))
        cursor = max(cursor, slot.end)
    return [*gaps, Slot(cursor, end)] if cursor < end else gaps


def business_days(start: date, count: int) -> date:
    while count:
        start += timedelta(days=1)
        count -= start.weekday() < 5
    return start


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2024, 5, 6, hour, minute)


print(*free(date(2024, 5, 6), [Slot(at(11), at(12, 30)), Slot(at(9, 30), at(11, 15)), Slot(at(16), at(18))]), sep="\n")
print(business_days(date(2024, 5, 3), 10), [business_days(date(2024, 12, 24), n).isoformat() for n in (1, 5)])
third_fridays = [
    date(2024, m, d) for m in range(1, 7) for d in range(15, 22) if date(2024, m, d).weekday() == 4
]
print([f"{d:%d %b}" for d in third_fridays], sum((d - date(2024, 1, 1)).days for d in third_fridays))
