// Parts that both C++ references of the matching rule have: encoded answers, price levels, the bitmap of levels, a clock.

#pragma once

#include <cstdint>
#include <cstring>
#include <ctime>
#include <vector>

constexpr size_t kBatchMessages = 4096;
constexpr uint32_t kNil = 0xFFFFFFFF;
enum Side : int { kAsk = 0, kBid = 1 };

struct PriceLevel {
    uint32_t head = kNil;
    uint32_t tail = kNil;
};

// Encoded answers one after the other, with the end of each.
class Answers {
public:
    void clear() {
        bytes_ = 0;
        frames_ = 0;
    }
    // Make sure that there is space for the answers to an order of this volume: each lot causes two trades at most, and
    // then come a quote, and a confirmation or its like.
    void reserve(size_t volume) {
        size_t frames = 2 * volume + 3;
        if (bytes_ + 9 * frames + 8 > buffer_.size()) buffer_.resize(2 * (bytes_ + 9 * frames + 8));
        if (frames_ + frames > ends_.size()) ends_.resize(2 * (frames_ + frames));
    }
    void trade(uint32_t id, uint32_t price, uint32_t volume) { put_prices(3, id, price, volume); }
    void quote(uint32_t bid, uint32_t ask) {
        put(4 | uint64_t(bid) << 8 | uint64_t(ask) << 24, 5);
    }
    void confirmation(uint32_t id) { put(2 | uint64_t(id) << 8, 5); }
    void rejection(uint32_t id, uint8_t reason) { put(8 | uint64_t(id) << 8 | uint64_t(reason) << 40, 6); }
    void cancelled(uint32_t id, uint32_t volume) { put(11 | uint64_t(id) << 8 | uint64_t(volume) << 40, 7); }
    void replaced(uint32_t id, uint32_t price, uint32_t volume) { put_prices(16, id, price, volume); }

    const uint8_t* data() const { return buffer_.data(); }
    size_t bytes() const { return bytes_; }
    size_t frames() const { return frames_; }

private:
    // A record of 9 bytes: type, id, price, volume.
    void put_prices(uint64_t type, uint32_t id, uint32_t price, uint32_t volume) {
        uint8_t* at = buffer_.data() + bytes_;
        uint64_t head = type | uint64_t(id) << 8 | uint64_t(price) << 40 | uint64_t(volume) << 56;
        std::memcpy(at, &head, 8);
        at[8] = uint8_t(volume >> 8);
        close(9);
    }
    void put(uint64_t record, size_t size) {
        std::memcpy(buffer_.data() + bytes_, &record, 8);
        close(size);
    }
    void close(size_t size) {
        bytes_ += size;
        ends_[frames_++] = int64_t(bytes_);
    }

    std::vector<uint8_t> buffer_ = std::vector<uint8_t>(1 << 20);
    std::vector<int64_t> ends_ = std::vector<int64_t>(1 << 17);
    size_t bytes_ = 0;
    size_t frames_ = 0;
};

// The levels that hold orders: one bit for each price, and a summary bit for each word of 64 prices.
class Bitmap {
public:
    void occupy(uint32_t price) {
        words_[price >> 6] |= 1ull << (price & 63);
        summary_[price >> 12] |= 1ull << (price >> 6 & 63);
    }
    void vacate(uint32_t price) {
        uint64_t& word = words_[price >> 6];
        word &= ~(1ull << (price & 63));
        if (word == 0) summary_[price >> 12] &= ~(1ull << (price >> 6 & 63));
    }
    // The next price with orders above this one; `none` if there is no such price.
    uint32_t above(uint32_t price, uint32_t none, const PriceLevel*) const {
        uint32_t word = price >> 6;
        if (uint64_t bits = words_[word] & (~1ull << (price & 63))) return word << 6 | __builtin_ctzll(bits);
        uint32_t group = word >> 6;
        uint64_t words = summary_[group] & (~1ull << (word & 63));
        while (!words) {
            if (++group == 16) return none;
            words = summary_[group];
        }
        word = group << 6 | __builtin_ctzll(words);
        return word << 6 | __builtin_ctzll(words_[word]);
    }
    // The next price with orders below this one; 0 if there is no such price.
    uint32_t below(uint32_t price, const PriceLevel*) const {
        uint32_t word = price >> 6;
        if (uint64_t bits = words_[word] & ~(~0ull << (price & 63))) return word << 6 | (63 - __builtin_clzll(bits));
        int group = int(word >> 6);
        uint64_t words = summary_[group] & ~(~0ull << (word & 63));
        while (!words) {
            if (--group < 0) return 0;
            words = summary_[group];
        }
        word = uint32_t(group) << 6 | (63 - __builtin_clzll(words));
        return word << 6 | (63 - __builtin_clzll(words_[word]));
    }

private:
    uint64_t words_[1024] = {};
    uint64_t summary_[16] = {};
};

// The thread's CPU time, in which other programs count as little as possible.
double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}
