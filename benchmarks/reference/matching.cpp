// The same matching rule in C++: price-time priority, an array of price levels, orders in intrusive queues.
//
//   matching bitmap|levels MAX_PRICE PASSES ORDERS_FILE [ANSWERS_FILE]
//
// `bitmap` finds the next best price in a bitmap, `levels` by walking the array of levels. The program reads orders of
// 10 bytes each, and matches them from memory to memory in batches: decode, validate, match, encode, note where each
// answer ends. It prints a line for each pass: orders, answers, bytes of answers, CPU seconds. The seconds include
// writing the answers if there is an ANSWERS_FILE, and nothing but matching otherwise.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "book_parts.hpp"

namespace {

constexpr size_t kOrderBytes = 10;

struct RestingOrder {
    uint32_t id;
    uint32_t volume;
    uint32_t next;
};

// No index at all: the next best price is found level by level.
class Walk {
public:
    void occupy(uint32_t) {}
    void vacate(uint32_t) {}
    uint32_t above(uint32_t price, uint32_t none, const PriceLevel* levels) const {
        do ++price;
        while (price < none && levels[price].head == kNil);
        return price;
    }
    uint32_t below(uint32_t price, const PriceLevel* levels) const {
        do --price;
        while (price > 0 && levels[price].head == kNil);
        return price;
    }
};

template <class Search>
class OrderBook {
public:
    explicit OrderBook(uint32_t max_price) : max_price_(max_price), best_{max_price + 1, 0} {
        for (auto& levels : levels_) levels.resize(max_price + 2);
        orders_.resize(1 << 18);  // touch the memory before the clock starts, as our book does
        orders_.clear();
    }

    // Match one encoded order, and append the answers to it.
    void handle(const uint8_t* record, Answers& answers) {
        uint64_t head;
        uint16_t volume;
        std::memcpy(&head, record, 8);
        std::memcpy(&volume, record + 8, 2);
        uint32_t id = uint32_t(head >> 8);
        uint32_t side = head >> 40 & 0xFF;
        uint32_t price = uint32_t(head >> 48);
        answers.reserve(volume);
        if (side < 1 || side > 2) return answers.rejection(id, 1);
        if (price < 1 || price > max_price_) return answers.rejection(id, 2);
        if (volume == 0) return answers.rejection(id, 3);
        if (side == 1)
            take<kAsk>(id, price, volume, answers);
        else
            take<kBid>(id, price, volume, answers);
    }

private:
    // Whether an order of this side trades at the best opposite price.
    template <int side>
    bool crosses(uint32_t price) const {
        return side == kBid ? best_[kAsk] <= price : best_[kBid] >= price;
    }

    // Trade an incoming order as far as it crosses; the rest of it rests.
    template <int side>
    void take(uint32_t id, uint32_t price, uint32_t volume, Answers& answers) {
        uint32_t ask_before = best_[kAsk];
        uint32_t bid_before = best_[kBid];
        uint32_t remaining = volume;
        while (remaining && crosses<side>(price)) remaining = trade_at_best<1 - side>(id, remaining, answers);
        if (remaining) rest<side>(id, price, remaining);
        if (best_[kAsk] != ask_before || best_[kBid] != bid_before) answers.quote(best_[kBid], best_[kAsk]);
        if (remaining == volume) answers.confirmation(id);
    }

    // Trade with the resting orders at the best opposite price, the oldest first; returns the volume that remains.
    template <int opposite>
    uint32_t trade_at_best(uint32_t id, uint32_t remaining, Answers& answers) {
        uint32_t price = best_[opposite];
        uint32_t before = remaining;
        PriceLevel& level = levels_[opposite][price];
        while (remaining && level.head != kNil) {
            RestingOrder& order = orders_[level.head];
            uint32_t volume = order.volume < remaining ? order.volume : remaining;
            answers.trade(order.id, price, volume);
            remaining -= volume;
            order.volume -= volume;
            if (order.volume) break;
            uint32_t finished = level.head;
            level.head = order.next;
            order.next = free_;
            free_ = finished;
        }
        if (level.head == kNil) close<opposite>(price);
        answers.trade(id, price, before - remaining);
        return remaining;
    }

    // Note that the best level has no orders any more, and find the next best price.
    template <int side>
    void close(uint32_t price) {
        const PriceLevel* levels = levels_[side].data();
        search_[side].vacate(price);
        best_[side] = side == kAsk ? search_[side].above(price, max_price_ + 1, levels)
                                   : search_[side].below(price, levels);
    }

    // Put an order behind all others of its price.
    template <int side>
    void rest(uint32_t id, uint32_t price, uint32_t volume) {
        uint32_t slot = free_;
        if (slot != kNil) {
            free_ = orders_[slot].next;
        } else {
            slot = uint32_t(orders_.size());
            orders_.emplace_back();
        }
        orders_[slot] = {id, volume, kNil};
        PriceLevel& level = levels_[side][price];
        if (level.head == kNil) {
            level.head = slot;
            search_[side].occupy(price);
            bool is_better = side == kAsk ? price < best_[side] : price > best_[side];
            if (is_better) best_[side] = price;
        } else {
            orders_[level.tail].next = slot;
        }
        level.tail = slot;
    }

    uint32_t max_price_;
    uint32_t best_[2];      // the best ask and the best bid
    uint32_t free_ = kNil;  // the first free slot of orders_
    std::vector<PriceLevel> levels_[2];
    std::vector<RestingOrder> orders_;
    Search search_[2];
};

// Match all orders of the tape in a new book, and print the line of this pass.
template <class Search>
void run(uint32_t max_price, const std::vector<uint8_t>& tape, std::ofstream* out) {
    size_t orders = tape.size() / kOrderBytes;
    size_t frames = 0;
    size_t bytes = 0;
    OrderBook<Search> book(max_price);
    Answers answers;
    double start = cpu_seconds();
    for (size_t first = 0; first < orders; first += kBatchMessages) {
        size_t end = first + kBatchMessages < orders ? first + kBatchMessages : orders;
        answers.clear();
        for (size_t i = first; i < end; ++i) book.handle(tape.data() + i * kOrderBytes, answers);
        frames += answers.frames();
        bytes += answers.bytes();
        if (out) out->write(reinterpret_cast<const char*>(answers.data()), answers.bytes());
    }
    std::printf("%zu %zu %zu %.9f\n", orders, frames, bytes, cpu_seconds() - start);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        std::fprintf(stderr, "usage: matching bitmap|levels MAX_PRICE PASSES ORDERS_FILE [ANSWERS_FILE]\n");
        return 2;
    }
    auto run_pass = std::string(argv[1]) == "levels" ? run<Walk> : run<Bitmap>;
    uint32_t max_price = uint32_t(std::atoi(argv[2]));
    int passes = std::atoi(argv[3]);
    std::ifstream in(argv[4], std::ios::binary);
    std::vector<uint8_t> tape{std::istreambuf_iterator<char>(in), {}};
    std::ofstream out;
    if (argc > 5) out.open(argv[5], std::ios::binary);
    for (int pass = 0; pass < passes; ++pass) run_pass(max_price, tape, argc > 5 ? &out : nullptr);
}
