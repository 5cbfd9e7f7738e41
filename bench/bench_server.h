#pragma once

#include <memory>

namespace muster::bench {

// A server to measure: one of its own. For a smoke run, which measures nothing, the shared one.
template <class Server>
class BenchServer {
 public:
  BenchServer(bool smoke, const typename Server::Options& options)
      : own_(smoke ? nullptr : std::make_unique<Server>(options)),
        server_(smoke ? Server::Shared() : *own_) {}

  Server& operator*() const { return server_; }
  Server* operator->() const { return &server_; }

 private:
  const std::unique_ptr<Server> own_;
  Server& server_;
};

}  // namespace muster::bench
