#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "support/spawn.h"

namespace muster::testing {

// A PostgreSQL server for tests: its own data folder, a free port on 127.0.0.1. Removed, with its
// data, with this object or the whole test process. It takes a second or two to start, so tests
// that do not stop it use Shared().
//
// Roles: `muster`, a superuser without a password; and `guarded`, with the password `open sesame`.
// Functions throw std::runtime_error on unintended failures.
class PostgresServer {
 public:
  // Why a server is not available on this machine; empty if it is.
  static std::string Unavailable();

  struct Options {
    bool durable = false;  // sync at every commit, as in production
    bool logical = false;  // changes can be decoded
  };

  // A database of this process on the server shared by all processes of the test run; without one,
  // on a server that the first call starts. Dropped when the process ends, together with databases
  // whose names begin with database(). Such a server cannot be stopped or paused: that throws.
  static PostgresServer& Shared();

  PostgresServer() : PostgresServer(Options{}) {}
  explicit PostgresServer(Options options);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  int port() const { return port_; }

  // The database that the URLs and Exec are for.
  const std::string& database() const { return database_; }

  // For role `muster`; through `port`, if a proxy listens there.
  std::string Url() const { return Url(port_); }
  std::string Url(int port) const { return UrlOf("muster", port); }
  // For another role: "guarded:open%20sesame".
  std::string UrlAs(const std::string& role) const { return UrlOf(role, port_); }

  void Start();  // returns once the server accepts connections
  void Stop();   // closes connections gracefully, unlike a crash of the server's machine
  void Kill();   // SIGQUIT: no graceful shutdown, recovery at the next start
  void Restart();

  // Restarts in recovery, as a standby that only answers queries. `SELECT pg_promote()` makes it a
  // primary.
  void BecomeStandby();

  // Stops and continues every process of the server: while stopped it neither answers nor hangs up.
  void Pause();
  void Resume();

  // Runs SQL statements as the superuser; returns the first value of the last result, or "".
  std::string Exec(const std::string& sql) const;

  // Drops everything in the database, leaving an empty schema `public`.
  void Clear() const;

 private:
  struct ForAll {};
  explicit PostgresServer(ForAll);

  std::string UrlOf(const std::string& role, int port) const;
  void Launch();
  void DropDatabases() const;
  void RequireOwn() const;  // throws if this process may not disturb the server
  void Initialise();
  void Signal(int signal);
  void Terminate(int signal);

  const Options options_;
  const bool shared_ = false;
  std::string database_ = "muster";
  std::unique_ptr<Janitor> janitor_;
  std::string folder_;
  int port_ = 0;
  pid_t postmaster_ = -1;
};

}  // namespace muster::testing
