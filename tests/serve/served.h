#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/http.h"
#include "support/server_process.h"

namespace muster::testing {

// `muster serve` as a separate process, on a free port. Throws std::runtime_error if it does not
// start.
class Served {
 public:
  // `arguments` follow "serve --store STORE"; the store is a SQLite file in the folder.
  explicit Served(const std::vector<std::string>& arguments = {},
                  const std::vector<std::string>& settings = {});

  ServerProcess& process() { return process_; }
  std::string folder() const { return process_.folder(); }
  std::string store_url() const { return "sqlite:" + folder() + "/store.db"; }
  int port() const { return port_; }
  const std::string& operator_token() const { return operator_; }
  const std::string& viewer_token() const { return viewer_; }
  std::string login_link() const;
  std::string cookie();  // of an operator

  void Start();  // again, on the same port

  net::HttpResponse Send(const std::string& method, const std::string& path,
                         net::HttpHeaders headers = {}, const std::string& body = "");
  net::HttpResponse Get(const std::string& path);  // as operator
  net::HttpResponse Post(const std::string& path, const std::string& body);

 private:
  std::string Url(const std::string& path) const;

  const std::vector<std::string> arguments_;
  const std::vector<std::string> settings_;
  ServerProcess process_;
  int port_ = 0;
  std::string operator_;
  std::string viewer_;
  net::HttpClient client_{{.verify_tls = false, .use_proxy = false}};
};

// A raw connection, for misbehaving clients.
class RawConnection {
 public:
  explicit RawConnection(int port);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool Send(const std::string& bytes);  // false: the other side has hung up
  // The bytes received until they contain `mark`, the other side hangs up or the time is up.
  std::string ReadUntil(const std::string& mark, int seconds = 30);
  bool closed() const { return closed_; }  // seen while reading

 private:
  int socket_ = -1;
  bool closed_ = false;
};

}  // namespace muster::testing
