#include "support/postgres_server.h"

#include <postgresql/libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "support/await.h"
#include "support/server_process.h"
#include "support/shared_server.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

// Removes everything once its stdin closes, which happens even if the test process is killed.
constexpr const char* kJanitor = R"(
cat > /dev/null
read -r postmaster < "$1/data/postmaster.pid" || postmaster=
if [ -n "$postmaster" ]; then
  for stat in /proc/[0-9]*/stat; do
    read -r pid name state parent rest < "$stat" || continue
    [ "$parent" = "$postmaster" ] && kill -CONT "$pid"
  done
  kill -CONT "$postmaster"
  kill -QUIT "$postmaster"
  tries=0
  while [ -e "$1/data/postmaster.pid" ] && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
fi
rm -rf "$1"
)";

std::string BinFolder() {
  std::string newest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", error)) {
    const std::string bin = entry.path() / "bin";
    if (fs::exists(bin + "/initdb") && fs::exists(bin + "/postgres"))
      newest = std::max(newest, bin);
  }
  if (!newest.empty()) return newest;
  std::istringstream path(getenv("PATH") ? getenv("PATH") : "");
  for (std::string bin; std::getline(path, bin, ':');) {
    if (fs::exists(bin + "/initdb") && fs::exists(bin + "/postgres")) return bin;
  }
  return "";
}

// PostgreSQL refuses to run as root; null if this process is not.
const passwd* ServerUser() {
  if (geteuid() != 0) return nullptr;
  if (const passwd* postgres = getpwnam("postgres")) return postgres;
  return getpwnam("nobody");
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string pid, command, state;
    pid_t its_parent = 0;
    if (stat >> pid >> command >> state >> its_parent && its_parent == parent) {
      children.push_back(std::stoi(name));
    }
  }
  return children;
}

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using Connection = std::unique_ptr<PGconn, Finish>;

std::string MaintenanceUrl(int port) {
  return "postgresql://muster@127.0.0.1:" + std::to_string(port) + "/postgres?connect_timeout=5";
}

std::string ExecAt(const std::string& url, const std::string& sql) {
  const Connection connection(PQconnectdb(url.c_str()));
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), sql.c_str()),
                                                             &PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    throw std::runtime_error(sql + ": " + PQerrorMessage(connection.get()));
  }
  if (PQntuples(result.get()) == 0 || PQnfields(result.get()) == 0) return "";
  return PQgetvalue(result.get(), 0, 0);
}

}  // namespace

std::string PostgresServer::Unavailable() {
  if (BinFolder().empty()) return "PostgreSQL is not installed: apt-get install postgresql";
  if (geteuid() == 0 && ServerUser() == nullptr) {
    return "running as root, and there is neither a user postgres nor a user nobody";
  }
  return "";
}

PostgresServer& PostgresServer::Shared() {
  static PostgresServer server{ForAll{}};
  return server;
}

PostgresServer::PostgresServer(Options options) : options_(options) { Launch(); }

PostgresServer::PostgresServer(ForAll) : shared_(true), port_(SharedPort("MUSTER_TEST_POSTGRES")) {
  if (port_ == 0) {
    Launch();
    return;
  }
  database_ = UniqueName("db");
  // Unlike template1, template0 never has sessions that would block copying it.
  ExecAt(MaintenanceUrl(port_), "CREATE DATABASE " + database_ + " TEMPLATE template0");
}

void PostgresServer::Launch() {
  port_ = FreePort();
  if (const std::string reason = Unavailable(); !reason.empty()) throw std::runtime_error(reason);
  janitor_ = std::make_unique<Janitor>("postgres", kJanitor);
  folder_ = janitor_->folder();
  Initialise();
  Start();
  Exec("CREATE ROLE guarded LOGIN PASSWORD 'open sesame'");
}

PostgresServer::~PostgresServer() {
  if (folder_.empty()) {
    DropDatabases();
    return;
  }
  if (postmaster_ > 0) Terminate(SIGQUIT);
}

void PostgresServer::Initialise() {
  if (const passwd* user = ServerUser()) {
    if (chown(folder_.c_str(), user->pw_uid, user->pw_gid) != 0) {
      throw std::runtime_error("cannot give " + folder_ + " to " + user->pw_name);
    }
  }
  const std::string log = folder_ + "/initdb.log";
  const auto require = [&](pid_t process) {
    if (WaitFor(process) != 0) throw std::runtime_error("initdb failed: " + ReadText(log));
  };
  if (const char* made = getenv("MUSTER_TEST_POSTGRES_TEMPLATE")) {  // copying is cheaper
    require(Spawn({"cp", "-r", made, folder_ + "/data"}, {}, -1, log));
    if (const passwd* user = ServerUser()) {
      require(Spawn({"chown", "-R", user->pw_name, folder_ + "/data"}, {}, -1, log));
    }
  } else {
    const Arguments initdb{BinFolder() + "/initdb",
                           "--pgdata=" + folder_ + "/data",
                           "--username=muster",
                           "--auth=trust",
                           "--encoding=UTF8",
                           "--locale=C",
                           "--no-sync",
                           "--no-instructions"};
    require(Spawn(AsUser(ServerUser(), initdb), {}, -1, log));
  }
  std::ofstream(folder_ + "/data/pg_hba.conf") << "host all guarded 127.0.0.1/32 scram-sha-256\n"
                                                  "host all all 127.0.0.1/32 trust\n";
  std::ofstream configuration(folder_ + "/data/postgresql.conf", std::ios::app);
  configuration << "listen_addresses = '127.0.0.1'\n"
                   "unix_socket_directories = ''\n"
                   "dynamic_shared_memory_type = mmap\n"  // inside the data folder
                   "max_connections = 200\n"
                   "max_wal_size = 4GB\n";
  if (options_.logical) configuration << "wal_level = logical\n";
  if (!options_.durable) configuration << "fsync = off\nfull_page_writes = off\n";
}

void PostgresServer::DropDatabases() const {
  // On any failure here, the server is stopped soon after.
  try {
    const std::string url = MaintenanceUrl(port_);
    while (true) {
      const std::string name =
          ExecAt(url, "SELECT datname FROM pg_database WHERE starts_with(datname, '" + database_ +
                          "') LIMIT 1");
      if (name.empty()) return;
      ExecAt(url, "DROP DATABASE " + name + " WITH (FORCE)");
    }
  } catch (const std::exception&) {
  }
}

std::string PostgresServer::UrlOf(const std::string& role, int port) const {
  return "postgresql://" + role + "@127.0.0.1:" + std::to_string(port) + "/" + database_;
}

void PostgresServer::Start() {
  const std::string log = folder_ + "/server.log";
  const std::string maintenance = MaintenanceUrl(port_);
  const Arguments postgres{BinFolder() + "/postgres", "-D", folder_ + "/data", "-p",
                           std::to_string(port_)};
  postmaster_ = Spawn(AsUser(ServerUser(), postgres), {}, -1, log);
  const bool ready = Await([&] {
    const Connection connection(PQconnectdb(maintenance.c_str()));
    if (PQstatus(connection.get()) == CONNECTION_OK) {
      PQclear(PQexec(connection.get(), "CREATE DATABASE muster"));  // usually exists already
      return true;
    }
    if (waitpid(postmaster_, nullptr, WNOHANG) == postmaster_) {
      postmaster_ = -1;
      throw std::runtime_error("the server ended: " + ReadText(log));
    }
    return false;
  });
  if (!ready) throw std::runtime_error("the server does not start: " + ReadText(log));
}

void PostgresServer::RequireOwn() const {
  if (shared_) throw std::runtime_error("other tests use this server, too");
}

void PostgresServer::Stop() {
  RequireOwn();
  Terminate(SIGINT);
}

void PostgresServer::Kill() {
  RequireOwn();
  Terminate(SIGQUIT);
}

void PostgresServer::Restart() {
  Stop();
  Start();
}

void PostgresServer::BecomeStandby() {
  Stop();
  std::ofstream(folder_ + "/data/standby.signal").flush();
  Start();
}

void PostgresServer::Terminate(int signal) {
  Signal(SIGCONT);
  kill(postmaster_, signal);
  WaitFor(postmaster_);
  postmaster_ = -1;
}

void PostgresServer::Pause() {
  RequireOwn();
  Signal(SIGSTOP);
}

void PostgresServer::Resume() { Signal(SIGCONT); }

void PostgresServer::Signal(int signal) {
  kill(postmaster_, signal);  // first, so that it starts no more processes
  for (const pid_t child : ChildrenOf(postmaster_)) kill(child, signal);
}

std::string PostgresServer::Exec(const std::string& sql) const { return ExecAt(Url(), sql); }

void PostgresServer::Clear() const {
  Exec(
      "SET client_min_messages = error; DO $$ DECLARE name text; BEGIN FOR name IN SELECT nspname "
      "FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP EXECUTE "
      "format('DROP SCHEMA %I CASCADE', name); END LOOP; END $$; CREATE SCHEMA public");
}

}  // namespace muster::testing
