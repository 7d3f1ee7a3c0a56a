// ZeroMQ's own two measurements in C: throughput and latency between two processes, with blocking calls, one a message.
//
//   zeromq_messages flow BYTES MESSAGES      PUSH ══▶ PULL   prints messages/s, from the first arrival to the last
//   zeromq_messages bounce BYTES MESSAGES    PAIR ◀─▶ PAIR   prints the median round trip in us
//
// The parent listens on loopback; its child connects, and sends the first message.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
}

namespace {

// libzmq's numbers for types of sockets, and for options.
constexpr int kPair = 0;
constexpr int kPull = 7;
constexpr int kPush = 8;
constexpr int kSendMark = 23;
constexpr int kReceiveMark = 24;
constexpr int kLastEndpoint = 32;

constexpr int kHighWaterMark = 100'000;  // messages

int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "%s failed\n", what);
    std::_Exit(1);
}

// A socket with our high-water marks.
void* open(void* context, int type) {
    void* socket = zmq_socket(context, type);
    for (int option : {kSendMark, kReceiveMark}) zmq_setsockopt(socket, option, &kHighWaterMark, sizeof kHighWaterMark);
    return socket;
}

void send(void* socket, const std::string& message) {
    if (zmq_send(socket, message.data(), message.size(), 0) < 0) fail("send");
}

// Wait for a message, which must have the size of `message`.
void receive(void* socket, std::string& message) {
    int size = zmq_recv(socket, message.data(), message.size(), 0);
    while (size < 0) {
        if (errno != EINTR) fail("receive");
        size = zmq_recv(socket, message.data(), message.size(), 0);
    }
    if (static_cast<size_t>(size) != message.size()) fail("a message of this size");
}

// Receive all messages of a flow; returns messages/s from the first arrival to the last.
double flow_per_s(void* socket, std::string message, int64_t messages) {
    receive(socket, message);
    int64_t start_ns = now_ns();
    for (int64_t received = 1; received < messages; ++received) receive(socket, message);
    return (messages - 1) * 1e9 / (now_ns() - start_ns);
}

// Send each message and wait until it comes back; returns the median round trip in us.
double bounce_us(void* socket, std::string message, int64_t messages) {
    std::vector<int64_t> took_ns(messages);
    receive(socket, message);  // the child is ready
    for (int64_t& round_trip_ns : took_ns) {
        int64_t start_ns = now_ns();
        send(socket, message);
        receive(socket, message);
        round_trip_ns = now_ns() - start_ns;
    }
    std::nth_element(took_ns.begin(), took_ns.begin() + messages / 2, took_ns.end());
    return took_ns[messages / 2] / 1e3;
}

// The other process: it sends a flow, or sends each message back.
void child(const char* endpoint, bool flows, std::string message, int64_t messages) {
    void* context = zmq_ctx_new();
    void* socket = open(context, flows ? kPush : kPair);
    if (zmq_connect(socket, endpoint)) fail("connect");
    if (!flows) send(socket, message);
    for (int64_t done = 0; done < messages; ++done) {
        if (!flows) receive(socket, message);
        send(socket, message);
    }
    zmq_close(socket);
    zmq_ctx_term(context);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) fail("usage: zeromq_messages flow|bounce BYTES MESSAGES");
    bool flows = !std::strcmp(argv[1], "flow");
    std::string message(std::strtoul(argv[2], nullptr, 10), 'x');
    int64_t messages = std::atoll(argv[3]);
    int ends[2];
    if (pipe(ends)) fail("pipe");
    pid_t pid = fork();  // fork before there is a context: a context does not survive a fork
    if (pid == 0) {
        close(ends[1]);  // if the parent fails, the read below ends
        char endpoint[256] = {};
        if (read(ends[0], endpoint, sizeof endpoint - 1) <= 0) fail("the endpoint");
        child(endpoint, flows, message, messages);
        std::_Exit(0);
    }
    void* context = zmq_ctx_new();
    void* socket = open(context, flows ? kPull : kPair);
    if (zmq_bind(socket, "tcp://127.0.0.1:*")) fail("bind");
    char endpoint[256];
    size_t size = sizeof endpoint;
    zmq_getsockopt(socket, kLastEndpoint, endpoint, &size);
    if (write(ends[1], endpoint, size) != static_cast<ssize_t>(size)) fail("pipe");
    std::printf("%.2f\n", flows ? flow_per_s(socket, message, messages) : bounce_us(socket, message, messages));
    waitpid(pid, nullptr, 0);
    zmq_close(socket);
    zmq_ctx_term(context);
}
