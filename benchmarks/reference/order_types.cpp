// The matching rule with ids in C++: order types, cancels and replaces, in price-time priority.
//
//   order_types MAX_PRICE PASSES TAPE [ANSWERS_FILE]
//
// The program reads the records of a tape, and matches them from memory to memory in batches: decode, validate, match,
// encode, note where each answer ends. Price levels are arrays with a bitmap, orders are doubly linked, and an index of
// buckets by the id's low bits, four for each order that fits, finds them. It prints a line for each pass: messages,
// answers, bytes of answers, CPU seconds. The seconds include writing the answers if there is an ANSWERS_FILE.

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

enum Record : uint8_t { kOrder = 1, kCancel = 10, kTypedOrder = 14, kReplaceRequest = 15, kCancelRequest = 17 };
enum OrderType : uint32_t { kLimit = 1, kMarket = 2, kImmediateOrCancel = 3, kFillOrKill = 4, kPostOnly = 5 };
enum Reason : uint8_t {
    kNoReason = 0,
    kBadSide = 1,
    kBadPrice = 2,
    kBadVolume = 3,
    kDuplicateId = 5,
    kUnknownId = 6,
    kBadType = 7,
    kWouldTrade = 8,
    kNothingToTradeWith = 9,
};
constexpr size_t kRoomBehindTape = 16;  // a record is loaded by words, which may reach beyond its end
constexpr uint32_t kFirstOrders = 1 << 18;
constexpr uint32_t kBuckets = 4 * kFirstOrders;

size_t record_size(uint8_t type) {
    switch (type) {
        case kOrder: return 10;
        case kCancel: return 5;
        case kTypedOrder: return 11;
        case kReplaceRequest: return 13;
        case kCancelRequest: return 9;
        default: return 0;
    }
}

template <class Word>
Word load(const uint8_t* at) {
    Word word;
    std::memcpy(&word, at, sizeof word);
    return word;
}

struct RestingOrder {
    uint32_t id;
    uint32_t volume;
    uint32_t next;
    uint32_t previous;
    uint32_t next_in_bucket;
    uint16_t price;
    uint16_t side;
};

class OrderBook {
public:
    explicit OrderBook(uint32_t max_price) : max_price_(max_price), best_{max_price + 1, 0} {
        for (auto& levels : levels_) levels.resize(max_price + 2);
        orders_.resize(kFirstOrders);  // touch the memory before the clock starts, as our book does
        orders_.clear();
        buckets_.assign(kBuckets, kNil);
    }

    // Match one record, and append the answers to it.
    void handle(const uint8_t* record, Answers& answers) {
        uint32_t id = load<uint32_t>(record + 1);
        switch (record[0]) {
            case kOrder:
                return enter(id, record[5], load<uint16_t>(record + 6), load<uint16_t>(record + 8), kLimit, answers);
            case kTypedOrder:
                return enter(id, record[5], load<uint16_t>(record + 6), load<uint16_t>(record + 8), record[10], answers);
            case kCancel:
                return cancel(id, id, answers);
            case kCancelRequest:
                return cancel(id, load<uint32_t>(record + 5), answers);
            default:
                return replace(id, load<uint32_t>(record + 5), load<uint16_t>(record + 9),
                               load<uint16_t>(record + 11), answers);
        }
    }

private:
    static bool may_rest(uint32_t order_type) { return order_type == kLimit || order_type == kPostOnly; }

    // Match an order of any type, or reject it.
    void enter(uint32_t id, uint32_t wire_side, uint32_t price, uint32_t volume, uint32_t order_type,
               Answers& answers) {
        answers.reserve(volume);
        if (wire_side < 1 || wire_side > 2) return answers.rejection(id, kBadSide);
        if (order_type < kLimit || order_type > kPostOnly) return answers.rejection(id, kBadType);
        if (order_type == kMarket) {
            if (price != 0) return answers.rejection(id, kBadPrice);
            price = wire_side == 2 ? max_price_ : 1;  // the last price that it could reach
        }
        if (price < 1 || price > max_price_) return answers.rejection(id, kBadPrice);
        if (volume == 0) return answers.rejection(id, kBadVolume);
        if (find(id) != kNil) return answers.rejection(id, kDuplicateId);
        if (wire_side == 1)
            take<kAsk>(id, price, volume, order_type, answers);
        else
            take<kBid>(id, price, volume, order_type, answers);
    }

    // Whether an order of this side trades at the best opposite price.
    template <int side>
    bool crosses(uint32_t price) const {
        return side == kBid ? best_[kAsk] <= price : best_[kBid] >= price;
    }

    // Trade an incoming order as far as it crosses; the rest of it rests, or is cancelled.
    template <int side>
    void take(uint32_t id, uint32_t price, uint32_t volume, uint32_t order_type, Answers& answers) {
        if (order_type == kPostOnly && crosses<side>(price)) return answers.rejection(id, kWouldTrade);
        if (order_type == kMarket && !crosses<side>(price)) return answers.rejection(id, kNothingToTradeWith);
        if (order_type == kFillOrKill && volume_within_reach<side>(price, volume) < volume)
            return answers.cancelled(id, volume);
        uint32_t ask_before = best_[kAsk];
        uint32_t bid_before = best_[kBid];
        uint32_t remaining = match<side>(id, price, volume, answers);
        bool rests = remaining && may_rest(order_type);
        if (rests) rest<side>(id, price, remaining);
        quote_if_changed(ask_before, bid_before, answers);
        if (remaining && !rests)
            answers.cancelled(id, remaining);
        else if (remaining == volume)
            answers.confirmation(id);
    }

    void quote_if_changed(uint32_t ask_before, uint32_t bid_before, Answers& answers) {
        if (best_[kAsk] != ask_before || best_[kBid] != bid_before) answers.quote(best_[kBid], best_[kAsk]);
    }

    // Trade level by level; returns the volume that remains.
    template <int side>
    uint32_t match(uint32_t id, uint32_t price, uint32_t remaining, Answers& answers) {
        while (remaining && crosses<side>(price)) remaining = trade_at_best<1 - side>(id, remaining, answers);
        return remaining;
    }

    // The volume with which an incoming order of this side would trade; at least `enough` if there is more.
    template <int side>
    uint32_t volume_within_reach(uint32_t price, uint32_t enough) const {
        constexpr int opposite = 1 - side;
        const PriceLevel* levels = levels_[opposite].data();
        uint32_t volume = 0;
        uint32_t at = best_[opposite];
        while (volume < enough && (side == kBid ? at <= price : at >= price)) {
            for (uint32_t slot = levels[at].head; slot != kNil && volume < enough; slot = orders_[slot].next)
                volume += orders_[slot].volume;
            at = next_price<opposite>(at);
        }
        return volume;
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
            if (level.head != kNil) orders_[level.head].previous = kNil;
            release(finished);
        }
        if (level.head == kNil) close<opposite>(price);
        answers.trade(id, price, before - remaining);
        return remaining;
    }

    // The next worse price with orders; max price + 1 for asks, or 0 for bids, if there is none.
    template <int side>
    uint32_t next_price(uint32_t price) const {
        const PriceLevel* levels = levels_[side].data();
        return side == kAsk ? search_[side].above(price, max_price_ + 1, levels) : search_[side].below(price, levels);
    }

    // Note that a level has no orders any more; if it was the best one, find the next.
    template <int side>
    void close(uint32_t price) {
        search_[side].vacate(price);
        if (best_[side] == price) best_[side] = next_price<side>(price);
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
        PriceLevel& level = levels_[side][price];
        uint32_t& bucket = buckets_[id & (kBuckets - 1)];
        uint32_t previous = level.head == kNil ? kNil : level.tail;
        orders_[slot] = {id, volume, kNil, previous, bucket, uint16_t(price), uint16_t(side)};
        bucket = slot;
        if (previous == kNil) {
            level.head = slot;
            search_[side].occupy(price);
            bool is_better = side == kAsk ? price < best_[side] : price > best_[side];
            if (is_better) best_[side] = price;
        } else {
            orders_[previous].next = slot;
        }
        level.tail = slot;
    }

    // The slot of the resting order with this id; kNil if there is none.
    uint32_t find(uint32_t id) const {
        uint32_t slot = buckets_[id & (kBuckets - 1)];
        while (slot != kNil && orders_[slot].id != id) slot = orders_[slot].next_in_bucket;
        return slot;
    }

    // Take an order out of the index, and free its slot.
    void release(uint32_t slot) {
        uint32_t* link = &buckets_[orders_[slot].id & (kBuckets - 1)];
        while (*link != slot) link = &orders_[*link].next_in_bucket;
        *link = orders_[slot].next_in_bucket;
        orders_[slot].next = free_;
        free_ = slot;
    }

    // Take an order out of the book.
    void remove(uint32_t slot) {
        const RestingOrder order = orders_[slot];
        PriceLevel& level = levels_[order.side][order.price];
        (order.previous == kNil ? level.head : orders_[order.previous].next) = order.next;
        (order.next == kNil ? level.tail : orders_[order.next].previous) = order.previous;
        release(slot);
        if (level.head != kNil) return;
        if (order.side == kAsk)
            close<kAsk>(order.price);
        else
            close<kBid>(order.price);
    }

    void cancel(uint32_t answer_id, uint32_t id, Answers& answers) {
        answers.reserve(0);
        uint32_t slot = find(id);
        if (slot == kNil) return answers.rejection(answer_id, kUnknownId);
        uint32_t ask_before = best_[kAsk];
        uint32_t bid_before = best_[kBid];
        uint32_t volume = orders_[slot].volume;
        remove(slot);
        quote_if_changed(ask_before, bid_before, answers);
        answers.cancelled(answer_id, volume);
    }

    void replace(uint32_t request_id, uint32_t id, uint32_t price, uint32_t volume, Answers& answers) {
        answers.reserve(volume);
        uint32_t slot = find(id);
        if (slot == kNil) return answers.rejection(request_id, kUnknownId);
        if (price < 1 || price > max_price_) return answers.rejection(request_id, kBadPrice);
        if (volume == 0) return answers.rejection(request_id, kBadVolume);
        RestingOrder& order = orders_[slot];
        if (order.price == price && volume <= order.volume) {
            order.volume = volume;
            return answers.replaced(request_id, price, volume);
        }
        if (order.side == kAsk)
            move<kAsk>(slot, request_id, price, volume, answers);
        else
            move<kBid>(slot, request_id, price, volume, answers);
    }

    // Take the order out, and let it come in again at another price or volume.
    template <int side>
    void move(uint32_t slot, uint32_t request_id, uint32_t price, uint32_t volume, Answers& answers) {
        uint32_t ask_before = best_[kAsk];
        uint32_t bid_before = best_[kBid];
        uint32_t id = orders_[slot].id;
        remove(slot);
        uint32_t remaining = match<side>(id, price, volume, answers);
        if (remaining) rest<side>(id, price, remaining);
        quote_if_changed(ask_before, bid_before, answers);
        answers.replaced(request_id, price, remaining);
    }

    uint32_t max_price_;
    uint32_t best_[2];      // the best ask and the best bid
    uint32_t free_ = kNil;  // the first free slot of orders_
    std::vector<PriceLevel> levels_[2];
    std::vector<RestingOrder> orders_;
    std::vector<uint32_t> buckets_;
    Bitmap search_[2];
};

// Match all messages of the tape in a new book, and print the line of this pass.
void run(uint32_t max_price, const std::vector<uint8_t>& tape, size_t tape_bytes, std::ofstream* out) {
    size_t messages = 0;
    size_t frames = 0;
    size_t bytes = 0;
    OrderBook book(max_price);
    Answers answers;
    double start = cpu_seconds();
    size_t at = 0;
    while (at < tape_bytes) {
        answers.clear();
        size_t batch_end = messages + kBatchMessages;
        while (at < tape_bytes && messages < batch_end) {
            book.handle(tape.data() + at, answers);
            at += record_size(tape[at]);
            ++messages;
        }
        frames += answers.frames();
        bytes += answers.bytes();
        if (out) out->write(reinterpret_cast<const char*>(answers.data()), answers.bytes());
    }
    std::printf("%zu %zu %zu %.9f\n", messages, frames, bytes, cpu_seconds() - start);
}

// Whether the tape consists of whole records of known types.
bool is_tape(const std::vector<uint8_t>& tape) {
    size_t at = 0;
    while (at < tape.size() && record_size(tape[at])) at += record_size(tape[at]);
    return at == tape.size();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: order_types MAX_PRICE PASSES TAPE [ANSWERS_FILE]\n");
        return 2;
    }
    uint32_t max_price = uint32_t(std::atoi(argv[1]));
    int passes = std::atoi(argv[2]);
    std::ifstream in(argv[3], std::ios::binary);
    std::vector<uint8_t> tape{std::istreambuf_iterator<char>(in), {}};
    if (!is_tape(tape)) {
        std::fprintf(stderr, "%s is no tape\n", argv[3]);
        return 2;
    }
    size_t tape_bytes = tape.size();
    tape.resize(tape_bytes + kRoomBehindTape);
    std::ofstream out;
    if (argc > 4) out.open(argv[4], std::ios::binary);
    for (int pass = 0; pass < passes; ++pass) run(max_price, tape, tape_bytes, argc > 4 ? &out : nullptr);
}
