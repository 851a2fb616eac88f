/* Sorts numbers of 4 and 8 bytes without comparing them.
 *
 * numpy sorts with vector instructions of other processors, or by a quicksort whose comparisons are
 * branches that no processor can predict. A sort by digits of 8 bits has no such branches. Short
 * arrays, and those for which there is no memory, are sorted by comparing. */

#ifndef DIGIT_SORT_HPP
#define DIGIT_SORT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace digit_sort {

constexpr std::size_t FEWEST = 256;

template <typename T>
using Key = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/* Unsigned numbers that compare as the numbers do. NaN is the largest. */
template <typename T>
inline Key<T> to_key(T number)
{
    constexpr int last = sizeof(T) * 8 - 1;
    Key<T> bits;
    std::memcpy(&bits, &number, sizeof bits);
    if constexpr (std::is_floating_point_v<T>) {
        return number != number ? ~Key<T>(0) : bits ^ (Key<T>(1) << last | (0 - (bits >> last)));
    }
    return std::is_signed_v<T> ? bits ^ Key<T>(1) << last : bits;
}

/* Not for NaN. */
template <typename T>
inline T to_number(Key<T> key)
{
    constexpr int last = sizeof(T) * 8 - 1;
    T number;
    if constexpr (std::is_floating_point_v<T>) {
        key ^= Key<T>(1) << last | ((key >> last) - 1);
    }
    else if constexpr (std::is_signed_v<T>) {
        key ^= Key<T>(1) << last;
    }
    std::memcpy(&number, &key, sizeof key);
    return number;
}

template <typename K>
struct Alone {
    K key;
};

template <typename K, typename Place>
struct WithPlace {
    K key;
    Place place;
};

/* Sort `from`, using `to` of the same size; returns the one that has the result. */
template <typename Item>
Item *by_digits(Item *from, Item *to, std::size_t count)
{
    constexpr int digits = sizeof(from->key);
    std::size_t counts[digits][256];
    std::memset(counts, 0, sizeof counts);
    for (std::size_t i = 0; i < count; i++) {
        for (int digit = 0; digit < digits; digit++) {
            counts[digit][std::uint8_t(from[i].key >> (8 * digit))]++;
        }
    }
    for (int digit = 0; digit < digits; digit++) {
        std::size_t *next = counts[digit], position = 0;
        if (next[std::uint8_t(from[0].key >> (8 * digit))] == count) {
            continue;  /* All have the same. */
        }
        for (int value = 0; value < 256; value++) {
            std::size_t these = next[value];
            next[value] = position;
            position += these;
        }
        for (std::size_t i = 0; i < count; i++) {
            to[next[std::uint8_t(from[i].key >> (8 * digit))]++] = from[i];
        }
        std::swap(from, to);
    }
    return from;
}

/* Sort ascending, NaN last. */
template <typename T>
void sort(T *numbers, std::size_t count)
{
    T *end = numbers + count;
    if constexpr (std::is_floating_point_v<T>) {
        end = std::partition(numbers, end, [](T number) { return number == number; });
        count = end - numbers;
    }
    if (std::is_sorted(numbers, end)) {
        return;
    }
    using Item = Alone<Key<T>>;
    auto *items = count < FEWEST ? nullptr : static_cast<Item *>(std::malloc(count * sizeof(Item)));
    if (items == nullptr) {
        std::sort(numbers, end);
        return;
    }
    /* The numbers become keys where they are. */
    auto *own = reinterpret_cast<Item *>(numbers);
    for (std::size_t i = 0; i < count; i++) {
        own[i].key = to_key<T>(numbers[i]);
    }
    Item *sorted = by_digits(own, items, count);
    for (std::size_t i = 0; i < count; i++) {
        numbers[i] = to_number<T>(sorted[i].key);
    }
    std::free(items);
}

/* Order `places` of numbers as the numbers ascend, NaN last; equal ones keep their order. False if
 * that is not faster, or if there is no memory. */
template <typename T, typename Place>
bool sort_places(const T *numbers, Place *places, std::size_t count)
{
    using Item = WithPlace<Key<T>, Place>;
    if (count < FEWEST) {
        return false;
    }
    auto *items = static_cast<Item *>(std::malloc(2 * count * sizeof(Item)));
    if (items == nullptr) {
        return false;
    }
    for (std::size_t i = 0; i < count; i++) {
        items[i] = {to_key<T>(numbers[places[i]]), places[i]};
    }
    Item *sorted = by_digits(items, items + count, count);
    for (std::size_t i = 0; i < count; i++) {
        places[i] = sorted[i].place;
    }
    std::free(items);
    return true;
}

}  // namespace digit_sort

#endif
