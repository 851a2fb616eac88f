"""What is too large is an exception, and the program goes on."""

for act in (
    lambda: "x" * (1 << 70),
    lambda: range(1 << 70).__len__(),
    lambda: (1 << 62).to_bytes(4, "little"),
    lambda: 10 ** 5000 and str(10 ** 5000),
):
    try:
        act()
        print("fine")
    except (MemoryError, OverflowError, ValueError) as error:
        print(type(error).__name__, str(error)[:60])
print(len([None] * 100_000))
