#pragma once

#include <sys/types.h>

#include <string>

namespace muster::testing {

// A PostgreSQL server for tests: its own data folder, a free port on 127.0.0.1, nothing shared with
// one that may already run. Gone, with its data, when this object or the whole test process is.
//
// Roles: `muster`, a superuser without a password, whose database is `muster`; and `guarded`, who
// has to give the password `open sesame`. Functions throw std::runtime_error when something fails
// that a test does not mean to fail.
class PostgresServer {
 public:
  // Why no server can be had on this machine; empty if one can.
  static std::string Unavailable();

  struct Options {
    bool durable = false;  // wait for the disk at every commit, as in production
  };

  PostgresServer() : PostgresServer(Options{}) {}
  explicit PostgresServer(Options options);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  int port() const { return port_; }

  // For role and database `muster`; through `port`, where a proxy listens there.
  std::string Url() const { return Url(port_); }
  std::string Url(int port) const;

  void Start();  // returns once the server takes connections
  void Stop();  // breaks connections, as a crash of the server's machine would not: it says goodbye
  void Kill();  // SIGQUIT: no goodbye, recovery at the next start
  void Restart();

  // Stops and continues every process of the server: it then neither answers nor hangs up.
  void Pause();
  void Resume();

  // Runs SQL statements as the superuser; the first value of the last result, or "".
  std::string Exec(const std::string& sql) const;

 private:
  void Initialise();
  void Signal(int signal);
  void Terminate(int signal);

  Options options_;
  std::string folder_;
  int port_ = 0;
  pid_t postmaster_ = -1;
  pid_t janitor_ = -1;
  int janitor_pipe_ = -1;
};

}  // namespace muster::testing
