// One way through a broker in C: a publisher and a consumer on rabbitmq-c, each a process, written as in its examples.
//
//   amqp_flow PORT USER PASSWORD MESSAGES BYTES
//
//   publisher (this process)  ──▶  direct exchange, queue at 127.0.0.1:PORT  ──▶  consumer (its child)
//
// Exchange, queue and consumer are as those of `exchange bench de-spsc`: lossy, without acknowledgements.
//
// The program prints messages/s from the first publish to the last delivery.

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace {

constexpr amqp_channel_t kChannel = 1;
constexpr int kFrameMax = 131072;
constexpr int64_t kReleaseEvery = 1024;  // messages after which the library may release its buffers

int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "%s failed\n", what);
    std::_Exit(1);
}

amqp_connection_state_t connect(int port, const char* user, const char* password) {
    amqp_connection_state_t connection = amqp_new_connection();
    amqp_socket_t* socket = amqp_tcp_socket_new(connection);
    if (amqp_socket_open(socket, "127.0.0.1", port)) fail("connect");
    auto login = amqp_login(connection, "/", 0, kFrameMax, 0, AMQP_SASL_METHOD_PLAIN, user, password);
    if (login.reply_type != AMQP_RESPONSE_NORMAL) fail("login");
    if (!amqp_channel_open(connection, kChannel)) fail("channel");
    return connection;
}

// Consume all messages; returns the time of the last delivery. `flow` is the name of queue, exchange and key. A byte is
// written to `ready` once messages can be published.
int64_t consume(amqp_connection_state_t connection, const std::string& flow, int64_t messages, int ready) {
    amqp_bytes_t name = amqp_cstring_bytes(flow.c_str());
    amqp_exchange_declare(connection, kChannel, name, amqp_cstring_bytes("direct"), 0, 0, 1, 0, amqp_empty_table);
    amqp_queue_declare(connection, kChannel, name, 0, 0, 0, 1, amqp_empty_table);
    amqp_queue_bind(connection, kChannel, name, name, name, amqp_empty_table);
    amqp_basic_consume(connection, kChannel, name, amqp_empty_bytes, 0, 1, 1, amqp_empty_table);
    if (amqp_get_rpc_reply(connection).reply_type != AMQP_RESPONSE_NORMAL) fail("consume");
    if (write(ready, "r", 1) != 1) fail("pipe");
    for (int64_t received = 0; received < messages; ++received) {
        amqp_envelope_t envelope;
        if (amqp_consume_message(connection, &envelope, nullptr, 0).reply_type != AMQP_RESPONSE_NORMAL) fail("receive");
        amqp_destroy_envelope(&envelope);
        if (received % kReleaseEvery == 0) amqp_maybe_release_buffers(connection);
    }
    return now_ns();
}

// Publish all messages; returns the time of the first publish.
int64_t publish(amqp_connection_state_t connection, const std::string& flow, int64_t messages, size_t bytes) {
    std::string body(bytes, 'x');
    amqp_bytes_t content{body.size(), body.data()};
    amqp_bytes_t name = amqp_cstring_bytes(flow.c_str());
    int64_t start_ns = now_ns();
    for (int64_t sent = 0; sent < messages; ++sent)
        if (amqp_basic_publish(connection, kChannel, name, name, 0, 0, nullptr, content)) fail("publish");
    return start_ns;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) fail("usage: amqp_flow PORT USER PASSWORD MESSAGES BYTES");
    int port = std::atoi(argv[1]);
    const char* user = argv[2];
    const char* password = argv[3];
    int64_t messages = std::atoll(argv[4]);
    size_t bytes = std::strtoul(argv[5], nullptr, 10);
    std::string flow = "flow-" + std::to_string(getpid());
    int ends[2];
    if (pipe(ends)) fail("pipe");
    pid_t child = fork();
    if (child == 0) {
        int64_t end_ns = consume(connect(port, user, password), flow, messages, ends[1]);
        std::_Exit(write(ends[1], &end_ns, sizeof end_ns) != sizeof end_ns);
    }
    close(ends[1]);  // if the consumer fails, the reads below end
    auto connection = connect(port, user, password);
    char ready;
    if (read(ends[0], &ready, 1) != 1) fail("the consumer's start");
    int64_t start_ns = publish(connection, flow, messages, bytes);
    int64_t end_ns;
    if (read(ends[0], &end_ns, sizeof end_ns) != sizeof end_ns) fail("the consumer's end");
    waitpid(child, nullptr, 0);
    amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
    std::printf("%.1f\n", messages * 1e9 / (end_ns - start_ns));
}
