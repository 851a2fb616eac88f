"""Algorithms: matrices, shortest paths, edit distance, knapsack, sorting, permutations."""

import bisect
import heapq
from collections import defaultdict
from functools import cache


def multiply(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def power(matrix, n):
    result = [[int(i == j) for j in range(len(matrix))] for i in range(len(matrix))]
    while n:
        if n & 1:
            result = multiply(result, matrix)
        matrix, n = multiply(matrix, matrix), n >> 1
    return result


print(power([[1, 1], [1, 0]], 300)[0][1])
graph = defaultdict(dict)
for a, b, cost in [("A", "B", 7), ("A", "C", 3), ("C", "B", 1), ("B", "D", 2), ("C", "D", 8)]:
    graph[a][b] = graph[b][a] = cost


def shortest(start):
    distances, heap = {}, [(0, start)]
    while heap:
        distance, node = heapq.heappop(heap)
        if node in distances:
            continue
        distances[node] = distance
        for other, cost in graph[node].items():
            heapq.heappush(heap, (distance + cost, other))
    return distances


print(shortest("A"))


@cache
def edits(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(edits(a[1:], b) + 1, edits(a, b[1:]) + 1, edits(a[1:], b[1:]) + (a[0] != b[0]))


print(edits("kitten", "sitting"), edits("saturday", "sunday"))
sieve = bytearray([1]) * 100_000
for i in range(2, 317):
    if sieve[i]:
        sieve[i * i :: i] = bytes(len(range(i * i, 100_000, i)))
print(sum(sieve) - 2)


def queens(n, row=0, columns=0, left=0, right=0):
    if row == n:
        return 1
    total, free = 0, ((1 << n) - 1) & ~(columns | left | right)
    while free:
        bit = free & -free
        free ^= bit
        total += queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return total


print([queens(n) for n in range(1, 9)])
values = sorted([5, 3, 8, 1])
bisect.insort(values, 4)
print(values, bisect.bisect(values, 4), heapq.nsmallest(2, [9, 2, 7]), list(heapq.merge([1, 4], [2, 3])))
