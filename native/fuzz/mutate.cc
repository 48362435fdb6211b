// The mutations of libFuzzer and a few that know how network formats are made: length fields,
// repeated parts, blown-up sizes.
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

/** Writes `value` with `width` bytes in one of the two byte orders. */
void put(uint8_t* at, size_t width, uint32_t value, bool big_endian) {
  for (size_t i = 0; i < width; ++i) {
    at[big_endian ? width - 1 - i : i] = uint8_t(value >> (8 * i));
  }
}

/** A field somewhere gets the number of bytes that follow it, or one that is wrong by a little. */
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

/** A part of the input comes again behind itself, until `limit` is reached or `most` copies are
 * made. */
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
 * What a 16-bit length covers grows: a part of it, of a whole number of words, comes many times
 * more, and the length says so. Lists of chunks, attributes and reports are made like that.
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
                  max_size);  // what is not linear in time shows at full size
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
  // Small inputs stay small: they run faster and say more.
  const size_t limit = std::min(max_size, std::max<size_t>(1024, size + size / 2));
  return LLVMFuzzerMutate(data, std::min(size, limit), limit);
}
