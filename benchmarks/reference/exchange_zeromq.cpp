// The whole exchange in C++ on libzmq, with the design of the Python one: the same order stream, matching rule, window
// and waits, one message per order and per answer, one thread a side beside libzmq's own.
//
//   exchange_zeromq ORDERS RATE|max SEED WINDOW [GATEWAY_CPU ENGINE_CPU]
//
//   gateway (this process)  ==PAIR== tcp on loopback ==PAIR==  engine (its child)
//
// WINDOW is the most unanswered orders, 0 for no bound. The program prints one JSON object: orders/s, completion times,
// counts of answers, CPU seconds. It has no checksums, no statistics by the second and no reporter, which the Python
// exchange has.

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

// The part of libzmq's stable C interface that is used here. Python's wheel has the library, but not its header.
extern "C" {
void* zmq_ctx_new();
int zmq_ctx_term(void* context);
void* zmq_socket(void* context, int type);
int zmq_close(void* socket);
int zmq_setsockopt(void* socket, int option, const void* value, size_t size);
int zmq_getsockopt(void* socket, int option, void* value, size_t* size);
int zmq_bind(void* socket, const char* address);
int zmq_connect(void* socket, const char* address);
int zmq_send(void* socket, const void* data, size_t size, int flags);
int zmq_recv(void* socket, void* data, size_t size, int flags);
int zmq_errno();
const char* zmq_strerror(int error);
}

namespace {

// libzmq's numbers for a type of socket, its options, events and flags.
constexpr int kPair = 0;
constexpr int kFd = 14;
constexpr int kEvents = 15;
constexpr int kSendMark = 23;
constexpr int kReceiveMark = 24;
constexpr int kLastEndpoint = 32;
constexpr int kReadable = 1;
constexpr int kWritable = 2;
constexpr int kDontWait = 1;

constexpr int kHighWaterMark = 100'000;  // messages

// The types and sizes of messages, as in exchange/messages.py.
constexpr uint8_t kOrder = 1;
constexpr uint8_t kConfirmation = 2;
constexpr uint8_t kTrade = 3;
constexpr uint8_t kQuote = 4;
constexpr uint8_t kEnd = 7;
constexpr uint8_t kRejection = 8;
constexpr uint8_t kHello = 12;
constexpr size_t kOrderBytes = 10;
constexpr size_t kConfirmationBytes = 5;
constexpr size_t kTradeBytes = 9;
constexpr size_t kQuoteBytes = 5;
constexpr size_t kRejectionBytes = 6;

constexpr size_t kMostOffered = 1024;      // orders that are offered at a time
constexpr size_t kMostReceived = 1 << 14;  // messages that are received at a time

// The order stream's range of prices (ticks) and of volumes (lots), and the book's highest price.
constexpr uint32_t kMaxPrice = 999;
constexpr uint32_t kLowPrice = 450;
constexpr uint32_t kPrices = 100;
constexpr uint32_t kVolumes = 100;

constexpr int64_t kNever = INT64_MAX;

int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "%s failed: %s\n", what, zmq_strerror(zmq_errno()));
    std::exit(1);
}

template <class Field>
Field load(const uint8_t* at) {
    Field field;
    std::memcpy(&field, at, sizeof field);
    return field;
}

// Messages one after the other in one buffer, with the end of each.
struct Batch {
    std::vector<uint8_t> bytes = std::vector<uint8_t>(1 << 21);
    std::vector<uint32_t> ends = std::vector<uint32_t>(1 << 18);
    size_t count = 0;  // messages
    size_t size = 0;   // bytes

    void clear() {
        count = 0;
        size = 0;
    }
    const uint8_t* begin(size_t message) const { return bytes.data() + (message ? ends[message - 1] : 0); }
    size_t length(size_t message) const { return bytes.data() + ends[message] - begin(message); }
    // The address behind the last message.
    uint8_t* end() { return bytes.data() + size; }
    // Take the next `length` bytes, which have been written at end(), as a message.
    void close(size_t length) {
        size += length;
        ends[count] = uint32_t(size);
        ++count;
    }
    // Append a message whose bytes are those of `record`, the lowest first. 8 bytes are written at end(), whatever the
    // length is; for a longer message the caller has written the bytes from the ninth on.
    void put(uint64_t record, size_t length) {
        std::memcpy(end(), &record, 8);
        close(length);
    }
    // Make sure that there is space for so many messages.
    void reserve(size_t messages) {
        size_t needed = size + messages * kTradeBytes + 8;
        if (needed > bytes.size()) bytes.resize(2 * needed);
        if (count + messages > ends.size()) ends.resize(2 * (count + messages));
    }
};

// One end of a PAIR-PAIR connection. No call but `wait` blocks.
class Link {
public:
    Link() : context_(zmq_ctx_new()), socket_(zmq_socket(context_, kPair)) {
        for (int option : {kSendMark, kReceiveMark}) zmq_setsockopt(socket_, option, &kHighWaterMark, sizeof(int));
        size_t size = sizeof fd_;
        zmq_getsockopt(socket_, kFd, &fd_, &size);
    }
    ~Link() {
        zmq_close(socket_);
        zmq_ctx_term(context_);  // waits until everything is sent
    }

    // Listen on a free port of loopback; returns its address.
    std::string listen() {
        char address[64];
        size_t size = sizeof address;
        if (zmq_bind(socket_, "tcp://127.0.0.1:*") < 0) fail("bind");
        if (zmq_getsockopt(socket_, kLastEndpoint, address, &size) < 0) fail("endpoint");
        return address;
    }
    void connect(const std::string& address) {
        if (zmq_connect(socket_, address.c_str()) < 0) fail("connect");
    }

    // Send messages from `first` on, as far as the link takes them; returns the first that is not sent.
    size_t send(const Batch& batch, size_t first) {
        while (first < batch.count) {
            if (zmq_send(socket_, batch.begin(first), batch.length(first), kDontWait) < 0) {
                if (zmq_errno() != EAGAIN) fail("send");
                break;
            }
            ++first;
        }
        return first;
    }
    // Send all messages, and wait whenever the link is full.
    void send_all(const Batch& batch) {
        size_t first = send(batch, 0);
        while (first < batch.count) {
            wait(kNever, kWritable);
            first = send(batch, first);
        }
    }
    // Receive the messages that have arrived, in place of those in the batch.
    void receive(Batch& batch) {
        batch.clear();
        while (batch.count < kMostReceived) {
            int length = zmq_recv(socket_, batch.end(), 64, kDontWait);
            if (length < 0) {
                if (zmq_errno() != EAGAIN) fail("receive");
                break;
            }
            batch.close(size_t(length));
        }
    }

    // Sleep until one of the wanted events (kReadable, kWritable) or until `until_ns`, at most a second. The sleep may end
    // early. The socket's descriptor is edge-triggered: the events are read before each sleep, and after it by receiving.
    void wait(int64_t until_ns, int wanted) {
        if (events() & wanted) return;
        int64_t left_ns = std::clamp<int64_t>(until_ns - now_ns(), 0, 1'000'000'000);
        timespec timeout{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
        pollfd descriptor{fd_, POLLIN, 0};
        ppoll(&descriptor, 1, &timeout, nullptr);
    }

private:
    int events() {
        int value = 0;
        size_t size = sizeof value;
        zmq_getsockopt(socket_, kEvents, &value, &size);
        return value;
    }

    void* context_;
    void* socket_;
    int fd_ = -1;
};

// ---- the engine ----------------------------------------------------------------------------------------------------

// A book with price-time priority: an array of price levels on each side, walked to the next best price.
class OrderBook {
public:
    // Match one encoded order, and append the answers to it.
    void handle(const uint8_t* order, Batch& answers) {
        auto id = load<uint32_t>(order + 1);
        uint8_t side = order[5];
        auto price = load<uint16_t>(order + 6);
        auto volume = load<uint16_t>(order + 8);
        answers.reserve(2 * volume + 2u);  // each lot causes two trades at most; then a quote and a confirmation
        if (side < 1 || side > 2) return reject(id, 1, answers);
        if (price < 1 || price > kMaxPrice) return reject(id, 2, answers);
        if (volume == 0) return reject(id, 3, answers);
        if (side == 1)
            take<kAsk>(id, price, volume, answers);
        else
            take<kBid>(id, price, volume, answers);
    }

private:
    enum Side : int { kAsk = 0, kBid = 1 };
    static constexpr uint32_t kNil = UINT32_MAX;
    struct RestingOrder {
        uint32_t id;
        uint32_t volume;
        uint32_t next;  // the slot of the next order of its level, or of the next free slot
    };
    struct PriceLevel {
        uint32_t head = kNil;  // the slot of the oldest order
        uint32_t tail = kNil;  // the slot of the newest one
    };

    static void reject(uint32_t id, uint64_t reason, Batch& answers) {
        answers.put(kRejection | uint64_t(id) << 8 | reason << 40, kRejectionBytes);
    }
    static void trade(uint32_t id, uint64_t price, uint64_t volume, Batch& answers) {
        answers.end()[8] = uint8_t(volume >> 8);  // the ninth byte; put() writes the first eight
        answers.put(kTrade | uint64_t(id) << 8 | price << 40 | volume << 56, kTradeBytes);
    }

    // Whether an order of this side trades at the best opposite price.
    template <Side side>
    bool crosses(uint32_t price) const {
        return side == kBid ? best_[kAsk] <= price : best_[kBid] >= price;
    }

    // Trade an incoming order as far as it crosses; the rest of it rests.
    template <Side side>
    void take(uint32_t id, uint32_t price, uint32_t volume, Batch& answers) {
        constexpr Side opposite = side == kAsk ? kBid : kAsk;
        uint32_t ask_before = best_[kAsk];
        uint32_t bid_before = best_[kBid];
        uint32_t remaining = volume;
        while (remaining && crosses<side>(price)) remaining = trade_at_best<opposite>(id, remaining, answers);
        if (remaining) rest<side>(id, price, remaining);
        if (best_[kAsk] != ask_before || best_[kBid] != bid_before)
            answers.put(kQuote | uint64_t(best_[kBid]) << 8 | uint64_t(best_[kAsk]) << 24, kQuoteBytes);
        if (remaining == volume) answers.put(kConfirmation | uint64_t(id) << 8, kConfirmationBytes);
    }

    // Trade with the resting orders at the best price of this side, the oldest first; returns the volume that remains.
    template <Side side>
    uint32_t trade_at_best(uint32_t id, uint32_t remaining, Batch& answers) {
        uint32_t price = best_[side];
        uint32_t before = remaining;
        PriceLevel& level = levels_[side][price];
        while (remaining && level.head != kNil) {
            RestingOrder& order = orders_[level.head];
            uint32_t volume = std::min(order.volume, remaining);
            trade(order.id, price, volume, answers);
            remaining -= volume;
            order.volume -= volume;
            if (order.volume) break;
            uint32_t finished = level.head;
            level.head = order.next;
            order.next = free_;
            free_ = finished;
        }
        // Walk to the next price with orders; the price 0, or kMaxPrice + 1, says that the side has none.
        while (levels_[side][best_[side]].head == kNil && best_[side] != 0 && best_[side] != kMaxPrice + 1)
            best_[side] += side == kAsk ? 1 : -1;
        trade(id, price, before - remaining, answers);
        return remaining;
    }

    // Put an order behind all others of its price.
    template <Side side>
    void rest(uint32_t id, uint32_t price, uint32_t volume) {
        uint32_t slot = free_;
        if (slot == kNil) {
            slot = uint32_t(orders_.size());
            orders_.emplace_back();
        } else {
            free_ = orders_[slot].next;
        }
        orders_[slot] = {id, volume, kNil};
        PriceLevel& level = levels_[side][price];
        if (level.head == kNil)
            level.head = slot;
        else
            orders_[level.tail].next = slot;
        level.tail = slot;
        best_[side] = side == kAsk ? std::min(best_[side], price) : std::max(best_[side], price);
    }

    uint32_t best_[2] = {kMaxPrice + 1, 0};  // the best ask and the best bid
    uint32_t free_ = kNil;                   // the first free slot of orders_
    PriceLevel levels_[2][kMaxPrice + 2];
    std::vector<RestingOrder> orders_;
};

// Answer a hello, then every order; send an end after the answers to the last.
void serve(Link& link, uint64_t orders) {
    OrderBook book;
    Batch batch;
    Batch answers;
    uint64_t handled = 0;
    while (handled < orders) {
        link.receive(batch);
        answers.clear();
        for (size_t i = 0; i < batch.count; ++i) {
            const uint8_t* message = batch.begin(i);
            if (batch.length(i) == kOrderBytes && *message == kOrder) {
                book.handle(message, answers);
                ++handled;
            } else if (*message == kHello) {
                answers.put(kHello, 1);
            }
        }
        if (handled == orders) {
            answers.reserve(1);
            answers.put(kEnd, 1);
        }
        link.send_all(answers);
        link.wait(kNever, kReadable);
    }
}

// ---- the gateway ---------------------------------------------------------------------------------------------------

// The seeded stream of orders; gateway/seeded_orders.py has the formula.
class OrderFlow {
public:
    explicit OrderFlow(uint64_t seed) : key_(mix(seed + kStep)) {}

    // Append order `id`, encoded.
    void put(uint64_t id, Batch& batch) const {
        uint64_t bits = mix(key_ + id * kStep);
        uint64_t side = 1 + (bits >> 63);
        uint64_t price = kLowPrice + ((bits & UINT32_MAX) * kPrices >> 32);
        uint64_t volume = 1 + ((bits >> 32 & INT32_MAX) * kVolumes >> 31);
        std::memcpy(batch.end() + 8, &volume, 2);  // the ninth and tenth byte; put() writes the first eight
        batch.put(kOrder | id << 8 | side << 40 | price << 48, kOrderBytes);
    }

private:
    static constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
    static uint64_t mix(uint64_t z) {
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
        z = (z ^ z >> 27) * 0x94D049BB133111EB;
        return z ^ z >> 31;
    }
    uint64_t key_;
};

struct Counts {
    uint64_t trades = 0;
    uint64_t confirmations = 0;
    uint64_t quotes = 0;
    uint64_t rejections = 0;
};

// Offers orders when they are due, or as fast as the window of unanswered orders allows, and times their answers.
class Gateway {
public:
    Gateway(Link& link, uint64_t orders, double rate, uint64_t seed, uint64_t window)
        : link_(link), flow_(seed), orders_(orders), window_(window), period_ns_(rate > 0 ? 1e9 / rate : 0) {
        handed_ns_.reserve(orders);
        answered_ns_.reserve(orders);
    }

    // Run until the engine says end.
    void run() {
        greet();
        start_ns_ = now_ns();
        while (!ended_) {
            take_answers();
            offer(now_ns());
            int64_t due = next_due_ns();
            bool is_full = first_ < offered_.count;
            if (due > now_ns()) link_.wait(due, is_full ? kReadable | kWritable : kReadable);
        }
    }

    bool complete() const { return answered_ns_.size() == orders_; }

    // The time from the first order's hand-over to the last answer.
    double seconds() const { return double(last_answer_ns_ - handed_ns_[0]) / 1e9; }
    const Counts& counts() const { return counts_; }

    // The exact p50 and p99 of the completion times, from due time or from hand-over. The last order is left out, since
    // nobody waits behind it.
    std::pair<double, double> completion_us(bool from_due) const {
        std::vector<int64_t> times;
        for (uint64_t i = 0; i + 1 < orders_; ++i)
            times.push_back(answered_ns_[i] - (from_due ? due_ns(i + 1) : handed_ns_[i]));
        std::sort(times.begin(), times.end());
        auto percentile = [&](size_t percent) {  // the smallest time that so many per cent of all do not exceed
            return times.empty() ? 0.0 : double(times[(times.size() * percent + 99) / 100 - 1]) / 1e3;
        };
        return {percentile(50), percentile(99)};
    }

private:
    // Say hello, and wait for the engine's.
    void greet() {
        offered_.put(kHello, 1);
        link_.send_all(offered_);
        while (!answers_.count) {
            link_.wait(kNever, kReadable);
            link_.receive(answers_);
        }
        offered_.clear();
    }

    // Receive answers, count them, and note when each order was first answered.
    void take_answers() {
        link_.receive(answers_);
        int64_t now = now_ns();
        for (size_t i = 0; i < answers_.count; ++i) {
            const uint8_t* answer = answers_.begin(i);
            switch (*answer) {
                case kTrade: ++counts_.trades; break;
                case kConfirmation: ++counts_.confirmations; break;
                case kQuote: ++counts_.quotes; continue;
                case kRejection: ++counts_.rejections; break;
                default: ended_ = true; continue;
            }
            // Orders are answered one after the other. A trade with an earlier id is that of a resting order.
            if (load<uint32_t>(answer + 1) == answered_ns_.size() + 1) answered_ns_.push_back(now);
        }
        size_t without_end = answers_.count - (ended_ ? 1 : 0);
        if (without_end > 0) last_answer_ns_ = now;
    }

    int64_t due_ns(uint64_t id) const { return start_ns_ + int64_t(double(id - 1) * period_ns_); }

    // When the next order is due; kNever while it waits for something else than its time.
    int64_t next_due_ns() const {
        bool is_full = first_ < offered_.count;
        if (is_full || prepared_ == orders_ || permitted() == 0) return kNever;
        return due_ns(prepared_ + 1);
    }
    // How many further orders the window permits.
    uint64_t permitted() const {
        uint64_t left = orders_ - prepared_;
        uint64_t unanswered = prepared_ - answered_ns_.size();
        return window_ ? std::min(left, window_ - unanswered) : left;
    }
    // How many orders are due by now, those included that were offered already.
    uint64_t due_by(int64_t now) const {
        return period_ns_ > 0 ? uint64_t(double(now - start_ns_) / period_ns_) + 1 : orders_;
    }

    // Send the orders that are due, or those that the link did not take before.
    void offer(int64_t now) {
        bool is_all_sent = first_ == offered_.count;
        if (is_all_sent) prepare(std::min<uint64_t>({due_by(now) - prepared_, permitted(), kMostOffered}));
        int64_t handed = now_ns();
        first_ = link_.send(offered_, first_);
        uint64_t not_sent = offered_.count - first_;
        handed_ns_.resize(prepared_ - not_sent, handed);
    }
    // Encode the next orders.
    void prepare(uint64_t count) {
        offered_.clear();
        first_ = 0;
        for (uint64_t i = 0; i < count; ++i) {
            ++prepared_;
            flow_.put(prepared_, offered_);
        }
    }

    Link& link_;
    OrderFlow flow_;
    uint64_t orders_;
    uint64_t window_;
    uint64_t prepared_ = 0;  // orders that were encoded so far
    double period_ns_;       // time from one due order to the next; 0 for as fast as it goes
    int64_t start_ns_ = 0;
    int64_t last_answer_ns_ = 0;
    std::vector<int64_t> handed_ns_;    // when order i + 1 was handed over
    std::vector<int64_t> answered_ns_;  // when order i + 1 was first answered
    Batch offered_;
    Batch answers_;
    size_t first_ = 0;  // the first order of offered_ that is not sent
    bool ended_ = false;
    Counts counts_;
};

// ---- both processes -----------------------------------------------------------------------------------------------

double cpu_s(const rusage& usage) {
    auto seconds = [](const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) / 1e6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Keep this process, and the thread that libzmq starts in it, on one processor.
void stay_on(const char* processor) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(std::atoi(processor), &only);
    if (sched_setaffinity(0, sizeof only, &only) < 0) fail("sched_setaffinity");
}

void run_engine(int address_pipe, uint64_t orders) {
    Link link;
    std::string address = link.listen();
    if (write(address_pipe, address.c_str(), address.size() + 1) < 0) fail("pipe");
    serve(link, orders);
}

void print(const Gateway& gateway, uint64_t orders, bool scheduled, const rusage& engine) {
    rusage own;
    getrusage(RUSAGE_SELF, &own);
    const Counts& counts = gateway.counts();
    auto [p50, p99] = gateway.completion_us(false);
    std::printf("{\"orders_per_s\": %.1f, \"handed_over_us\": {\"p50\": %.3f, \"p99\": %.3f}, ",
                double(orders) / gateway.seconds(), p50, p99);
    if (scheduled) {
        auto [due_p50, due_p99] = gateway.completion_us(true);
        std::printf("\"due_us\": {\"p50\": %.3f, \"p99\": %.3f}, ", due_p50, due_p99);
    }
    std::printf("\"trades\": %lu, \"confirmations\": %lu, \"quotes\": %lu, \"rejections\": %lu, ", counts.trades,
                counts.confirmations, counts.quotes, counts.rejections);
    std::printf("\"gateway_cpu_s\": %.3f, \"engine_cpu_s\": %.3f}\n", cpu_s(own), cpu_s(engine));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5 && argc != 7) {
        std::fprintf(stderr, "usage: exchange_zeromq ORDERS RATE|max SEED WINDOW [GATEWAY_CPU ENGINE_CPU]\n");
        return 2;
    }
    uint64_t orders = std::strtoull(argv[1], nullptr, 10);
    double rate = std::strcmp(argv[2], "max") == 0 ? 0 : std::atof(argv[2]);
    uint64_t seed = std::strtoull(argv[3], nullptr, 10);
    uint64_t window = std::strtoull(argv[4], nullptr, 10);
    prctl(PR_SET_TIMERSLACK, 1);  // a sleep ends within a nanosecond or so, not within 50 us
    int pipe_ends[2];
    if (pipe(pipe_ends) < 0) fail("pipe");
    pid_t engine = fork();
    if (engine == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // the engine ends with the gateway
        if (argc == 7) stay_on(argv[6]);
        run_engine(pipe_ends[1], orders);
        return 0;
    }
    if (argc == 7) stay_on(argv[5]);
    char address[64];
    if (read(pipe_ends[0], address, sizeof address) <= 0) fail("pipe");
    Link link;
    link.connect(address);
    Gateway gateway(link, orders, rate, seed, window);
    gateway.run();
    rusage engine_usage;
    wait4(engine, nullptr, 0, &engine_usage);
    if (!gateway.complete()) {
        std::fprintf(stderr, "the engine ended before every order was answered\n");
        return 1;
    }
    print(gateway, orders, rate > 0, engine_usage);
}
