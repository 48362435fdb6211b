// Mutations for network formats, in addition to libFuzzer's own: length fields, repeated parts,
// very large sizes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Random = std::minstd_rand;

size_t below(Random& random, size_t count) {
  return size_t(random()) % count;
}

/** Writes `value` in `width` bytes, in either byte order. */
void put(uint8_t* at, size_t width, uint32_t value, bool big_endian) {
  for (size_t i = 0; i < width; ++i) {
    at[big_endian ? width - 1 - i : i] = uint8_t(value >> (8 * i));
  }
}

/** Sets a random field to the number of bytes that follow it, or to a slightly different number. */
size_t set_length(Random& random, uint8_t* data, size_t size) {
  const size_t width = 1 + below(random, 4);
  if (size < width) {
    return size;
  }
  const size_t at = below(random, size - width + 1);
  const int64_t slips[] = {0, 0, 0, 1, -1, 4, -4, int64_t(width)};
  const int64_t length = int64_t(size - at - width) + slips[below(random, 8)];
  put(data + at, width, uint32_t(std::max<int64_t>(0, length)), below(random, 4) != 0);
  return size;
}

/** Repeats a part of the input in place, `most` times at most, up to `limit` bytes in total. */
size_t repeat(Random& random, uint8_t* data, size_t size, size_t limit, size_t most) {
  if (size == 0 || size >= limit) {
    return size;
  }
  const size_t from = below(random, size);
  const size_t length = 1 + below(random, std::min<size_t>(size - from, 64));
  const std::vector<uint8_t> part(data + from, data + from + length);
  const size_t copies = std::min(most, (limit - size) / length);
  std::memmove(data + from + copies * length, data + from, size - from);
  for (size_t i = 0; i < copies; ++i) {
    std::memcpy(data + from + i * length, part.data(), length);
  }
  return size + copies * length;
}

/**
 * Repeats a part of the data that a 16-bit length field covers, and corrects the length. Lists of
 * chunks, attributes and reports grow like that.
 */
size_t grow_field(Random& random, uint8_t* data, size_t size, size_t limit) {
  if (size < 8) {
    return size;
  }
  size_t at = below(random, size - 6);
  const auto length_at = [&](size_t place) { return size_t(data[place]) << 8 | data[place + 1]; };
  const auto fits = [&](size_t place) {
    return length_at(place) >= 4 && place + 2 + length_at(place) <= size;
  };
  while (at < size - 6 && !fits(at)) {
    ++at;
  }
  if (!fits(at)) {
    return size;
  }
  const size_t length = length_at(at);
  const size_t from = at + 2 + below(random, length / 4) * 4;
  const size_t part = std::min(size_t(4) << below(random, 5), at + 2 + length - from);
  const size_t room = std::min(limit - size, 0xffff - length);
  const size_t copies = std::min(size_t(1) << below(random, 10), room / part);
  const std::vector<uint8_t> content(data + from, data + from + part);
  std::memmove(data + from + copies * part, data + from, size - from);
  for (size_t i = 0; i < copies; ++i) {
    std::memcpy(data + from + i * part, content.data(), part);
  }
  put(data + at, 2, uint32_t(length + copies * part), true);
  return size + copies * part;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  Random random(seed | 1);
  const size_t kind = below(random, 256);
  if (kind == 0) {
    return repeat(random, data, size, max_size,
                  max_size);  // algorithms that are not linear in time show at full size
  }
  if (kind < 24) {
    return set_length(random, data, size);
  }
  if (kind < 32) {
    return repeat(random, data, size, max_size, 1 + below(random, 16));
  }
  if (kind < 48 && size < max_size) {
    return grow_field(random, data, size, max_size);
  }
  // Small inputs stay small, because they run faster.
  const size_t limit = std::min(max_size, std::max<size_t>(1024, size + size / 2));
  return LLVMFuzzerMutate(data, std::min(size, limit), limit);
}
