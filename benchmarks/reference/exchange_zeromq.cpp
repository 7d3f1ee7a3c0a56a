// The whole exchange in C++ on libzmq, with the design of the Python one: the same order stream, matching rule, window
// and waits, one message per order and per answer, one thread a side beside libzmq's own.
//
//   exchange_zeromq ORDERS RATE|max SEED WINDOW [GATEWAY_CPU ENGINE_CPU]
//
//   gateway (this process)  ==PAIR== tcp on loopback ==PAIR==  engine (its child)
//
// Prints one JSON object. Leaves out what the Python one does besides: checksums, statistics, a reporter.

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

// libzmq's stable C interface, as far as it is needed: Python's wheel has the library and not its header.
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

constexpr int kPair = 0, kFd = 14, kEvents = 15, kSendMark = 23, kReceiveMark = 24, kLastEndpoint = 32;
constexpr int kReadable = 1, kWritable = 2, kDontWait = 1;
constexpr int kHighWaterMark = 100'000;

constexpr uint8_t kOrder = 1, kConfirmation = 2, kTrade = 3, kQuote = 4, kEnd = 7, kRejection = 8, kHello = 12;
constexpr size_t kOrderBytes = 10, kConfirmationBytes = 5, kTradeBytes = 9, kQuoteBytes = 5, kRejectionBytes = 6;
constexpr size_t kOffered = 1024, kReceived = 1 << 14;  // most orders offered, and messages received, at a time
constexpr uint32_t kMaxPrice = 999, kLowPrice = 450, kPrices = 100, kVolumes = 100;
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

// Messages one after the other, and where each ends.
struct Batch {
    std::vector<uint8_t> bytes = std::vector<uint8_t>(1 << 21);
    std::vector<uint32_t> ends = std::vector<uint32_t>(1 << 18);
    size_t count = 0, size = 0;

    void clear() { count = size = 0; }
    const uint8_t* begin(size_t message) const { return bytes.data() + (message ? ends[message - 1] : 0); }
    size_t length(size_t message) const { return bytes.data() + ends[message] - begin(message); }
    uint8_t* room() { return bytes.data() + size; }
    void close(size_t length) { ends[count++] = uint32_t(size += length); }
    void put(uint64_t record, size_t length) {  // the caller has made sure of 8 bytes
        std::memcpy(room(), &record, 8);
        close(length);
    }
    void reserve(size_t messages) {
        size_t room_bytes = size + messages * kTradeBytes + 8;
        if (room_bytes > bytes.size()) bytes.resize(2 * room_bytes);
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
    ~Link() {  // libzmq lingers until everything is sent
        zmq_close(socket_);
        zmq_ctx_term(context_);
    }

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

    size_t send(const Batch& batch, size_t first) {
        for (; first < batch.count; ++first)
            if (zmq_send(socket_, batch.begin(first), batch.length(first), kDontWait) < 0) {
                if (zmq_errno() != EAGAIN) fail("send");
                break;
            }
        return first;
    }
    void send_all(const Batch& batch) {
        for (size_t first = send(batch, 0); first < batch.count; first = send(batch, first)) wait(kNever, kWritable);
    }
    void receive(Batch& batch) {
        batch.clear();
        while (batch.count < kReceived) {
            int length = zmq_recv(socket_, batch.room(), 64, kDontWait);
            if (length < 0) {
                if (zmq_errno() != EAGAIN) fail("receive");
                break;
            }
            batch.close(size_t(length));
        }
    }

    // The descriptor is edge-triggered: the events are read before each sleep, and after it by receiving.
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

// Price-time priority, with an array of price levels on each side, walked to the next best price.
class OrderBook {
public:
    void handle(const uint8_t* order, Batch& answers) {
        auto id = load<uint32_t>(order + 1);
        auto price = load<uint16_t>(order + 6), volume = load<uint16_t>(order + 8);
        uint8_t side = order[5];
        answers.reserve(2 * volume + 2u);  // a lot traded is two trades at most; then a quote and a confirmation
        if (side < 1 || side > 2) return reject(id, 1, answers);
        if (price < 1 || price > kMaxPrice) return reject(id, 2, answers);
        if (volume == 0) return reject(id, 3, answers);
        side == 1 ? take<kAsk>(id, price, volume, answers) : take<kBid>(id, price, volume, answers);
    }

private:
    enum Side : int { kAsk = 0, kBid = 1 };
    static constexpr uint32_t kNil = UINT32_MAX;
    struct RestingOrder {
        uint32_t id, volume, next;
    };
    struct PriceLevel {
        uint32_t head = kNil, tail = kNil;
    };

    static void reject(uint32_t id, uint64_t reason, Batch& answers) {
        answers.put(kRejection | uint64_t(id) << 8 | reason << 40, kRejectionBytes);
    }
    static void trade(uint32_t id, uint64_t price, uint64_t volume, Batch& answers) {
        answers.room()[8] = uint8_t(volume >> 8);
        answers.put(kTrade | uint64_t(id) << 8 | price << 40 | volume << 56, kTradeBytes);
    }

    template <Side side>
    void take(uint32_t id, uint32_t price, uint32_t volume, Batch& answers) {
        constexpr Side opposite = side == kAsk ? kBid : kAsk;
        uint32_t ask = best_[kAsk], bid = best_[kBid], remaining = volume;
        while (remaining && (side == kBid ? best_[kAsk] <= price : best_[kBid] >= price))
            remaining = trade_at_best<opposite>(id, remaining, answers);
        if (remaining) rest<side>(id, price, remaining);
        if (best_[kAsk] != ask || best_[kBid] != bid)
            answers.put(kQuote | uint64_t(best_[kBid]) << 8 | uint64_t(best_[kAsk]) << 24, kQuoteBytes);
        if (remaining == volume) answers.put(kConfirmation | uint64_t(id) << 8, kConfirmationBytes);
    }

    template <Side side>
    uint32_t trade_at_best(uint32_t id, uint32_t remaining, Batch& answers) {
        uint32_t price = best_[side], before = remaining;
        PriceLevel& level = levels_[side][price];
        while (remaining && level.head != kNil) {
            RestingOrder& order = orders_[level.head];
            uint32_t volume = std::min(order.volume, remaining);
            trade(order.id, price, volume, answers);
            remaining -= volume;
            if (order.volume -= volume) break;
            uint32_t finished = level.head;
            level.head = order.next;
            order.next = free_;
            free_ = finished;
        }
        while (levels_[side][best_[side]].head == kNil && best_[side] % (kMaxPrice + 1))
            best_[side] += side == kAsk ? 1 : -1;
        trade(id, price, before - remaining, answers);
        return remaining;
    }

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
        (level.head == kNil ? level.head : orders_[level.tail].next) = slot;
        level.tail = slot;
        best_[side] = side == kAsk ? std::min(best_[side], price) : std::max(best_[side], price);
    }

    uint32_t best_[2] = {kMaxPrice + 1, 0};
    uint32_t free_ = kNil;
    PriceLevel levels_[2][kMaxPrice + 2];
    std::vector<RestingOrder> orders_;
};

// Answers a hello, then every order; says end after the last.
void serve(Link& link, uint64_t orders) {
    OrderBook book;
    Batch batch, answers;
    for (uint64_t handled = 0; handled < orders; link.wait(kNever, kReadable)) {
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
    }
}

// ---- the gateway ---------------------------------------------------------------------------------------------------

// Order `id` of the seeded stream: the formula stands in gateway/seeded_orders.py.
class OrderFlow {
public:
    explicit OrderFlow(uint64_t seed) : key_(mix(seed + kStep)) {}

    void put(uint64_t id, Batch& batch) const {
        uint64_t bits = mix(key_ + id * kStep);
        uint64_t side = 1 + (bits >> 63), price = kLowPrice + ((bits & UINT32_MAX) * kPrices >> 32);
        uint64_t volume = 1 + ((bits >> 32 & INT32_MAX) * kVolumes >> 31);
        std::memcpy(batch.room() + 8, &volume, 2);
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
    uint64_t trades = 0, confirmations = 0, quotes = 0, rejections = 0;
};

// Offers orders when they are due, or as fast as the window of unanswered orders allows, and times their answers.
class Gateway {
public:
    Gateway(Link& link, uint64_t orders, double rate, uint64_t seed, uint64_t window)
        : link_(link), flow_(seed), orders_(orders), window_(window), period_ns_(rate > 0 ? 1e9 / rate : 0) {
        handed_ns_.reserve(orders);
        answered_ns_.reserve(orders);
    }

    void run() {
        greet();
        start_ns_ = now_ns();
        while (!ended_) {
            take();
            offer(now_ns());
            int64_t due = next_due_ns();
            if (due > now_ns()) link_.wait(due, first_ < offered_.count ? kReadable | kWritable : kReadable);
        }
    }

    bool complete() const { return answered_ns_.size() == orders_; }

    double seconds() const { return double(last_answer_ns_ - handed_ns_[0]) / 1e9; }
    const Counts& counts() const { return counts_; }

    // Exact, of all but the last order, which waits for nobody behind it.
    std::pair<double, double> completion_us(bool from_due) const {
        std::vector<int64_t> times;
        for (uint64_t i = 0; i + 1 < orders_; ++i)
            times.push_back(answered_ns_[i] - (from_due ? due_ns(i + 1) : handed_ns_[i]));
        std::sort(times.begin(), times.end());
        auto percentile = [&](size_t percent) {  // the smallest time that so many per cent do not pass
            return times.empty() ? 0.0 : double(times[(times.size() * percent + 99) / 100 - 1]) / 1e3;
        };
        return {percentile(50), percentile(99)};
    }

private:
    void greet() {
        offered_.put(kHello, 1);
        link_.send_all(offered_);
        for (; !answers_.count; link_.receive(answers_)) link_.wait(kNever, kReadable);
        offered_.clear();
    }

    void take() {
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
            // Orders are answered one after the other; a trade of an earlier id is that of a resting order.
            if (load<uint32_t>(answer + 1) == answered_ns_.size() + 1) answered_ns_.push_back(now);
        }
        if (answers_.count > ended_) last_answer_ns_ = now;
    }

    int64_t due_ns(uint64_t id) const { return start_ns_ + int64_t(double(id - 1) * period_ns_); }

    int64_t next_due_ns() const {
        bool waits = first_ < offered_.count || prepared_ == orders_ || !room();
        return waits ? kNever : due_ns(prepared_ + 1);
    }
    uint64_t room() const {
        uint64_t left = orders_ - prepared_;
        return window_ ? std::min(left, window_ - (prepared_ - answered_ns_.size())) : left;
    }
    uint64_t due_by(int64_t now) const {
        return period_ns_ > 0 ? uint64_t(double(now - start_ns_) / period_ns_) + 1 : orders_;
    }

    void offer(int64_t now) {
        if (first_ == offered_.count) prepare(std::min<uint64_t>({due_by(now) - prepared_, room(), kOffered}));
        int64_t handed = now_ns();
        first_ = link_.send(offered_, first_);
        handed_ns_.resize(prepared_ - (offered_.count - first_), handed);
    }
    void prepare(uint64_t count) {
        offered_.clear();
        first_ = 0;
        while (count--) flow_.put(++prepared_, offered_);
    }

    Link& link_;
    OrderFlow flow_;
    uint64_t orders_, window_, prepared_ = 0;
    double period_ns_;
    int64_t start_ns_ = 0, last_answer_ns_ = 0;
    std::vector<int64_t> handed_ns_, answered_ns_;  // of order i + 1
    Batch offered_, answers_;
    size_t first_ = 0;  // of `offered_` that is not sent
    bool ended_ = false;
    Counts counts_;
};

// ---- both ----------------------------------------------------------------------------------------------------------

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
    uint64_t orders = std::strtoull(argv[1], nullptr, 10), seed = std::strtoull(argv[3], nullptr, 10);
    double rate = std::strcmp(argv[2], "max") == 0 ? 0 : std::atof(argv[2]);
    prctl(PR_SET_TIMERSLACK, 1);
    int pipe_ends[2];
    if (pipe(pipe_ends) < 0) fail("pipe");
    pid_t engine = fork();
    if (engine == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (argc == 7) stay_on(argv[6]);
        run_engine(pipe_ends[1], orders);
        return 0;
    }
    if (argc == 7) stay_on(argv[5]);
    char address[64];
    if (read(pipe_ends[0], address, sizeof address) <= 0) fail("pipe");
    Link link;
    link.connect(address);
    Gateway gateway(link, orders, rate, seed, std::strtoull(argv[4], nullptr, 10));
    gateway.run();
    rusage engine_usage;
    wait4(engine, nullptr, 0, &engine_usage);
    if (!gateway.complete()) {
        std::fprintf(stderr, "the engine ended before every order was answered\n");
        return 1;
    }
    print(gateway, orders, rate > 0, engine_usage);
}
