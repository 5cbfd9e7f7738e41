#include "sim/work_redrive.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "sim/work_process.h"

namespace muster::sim {
namespace {

using std::chrono::seconds;

// A folder of its own, which nothing in a trace depends on.
class Folder {
 public:
  Folder() {
    static std::atomic<int> number = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("muster-sim-" + std::to_string(getpid()) + "-" + std::to_string(++number));
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string PathOf(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace

void WorkRedrive::Run(Env& env, std::stop_token stop) {
  while (!stop.stop_requested() && !scene_.is_finished) env.Sleep(seconds(10), stop);
  if (stop.stop_requested()) return;
  scene_.Cure();
  const Folder folder;
  const std::string path = folder.PathOf(kLettersFile);
  std::ofstream(path) << scene_.files->Content(kLettersFile);
  while (!stop.stop_requested() && !TryOnce(path, env, stop)) env.Sleep(seconds(5), stop);
}

bool WorkRedrive::TryOnce(const std::string& path, Env& env, const std::stop_token& stop) {
  const bool was_done = is_done_;
  const work::RedriveRequest request{
      .letters = path, .sink = {}, .store = [this]() -> Result<store::Store*> {
        return scene_.store.get();
      }};
  if (under_way_++ > 0) sim_.Sometimes("77 a redrive goes on where another has ended");
  const auto report = work::RedriveInto(request, scene_.NewSink(env), env, stop);
  if (!report) {
    // Only torn lines, or none.
    if (report.error().code == Code::kInvalid) return true;
    const bool again = IsTransient(report.error().code) || report.error().code == Code::kConflict ||
                       report.error().code == Code::kLeaseLost ||
                       report.error().code == Code::kCancelled;
    if (!again) sim_.Violate("V", "a redrive gave up: " + report.error().ToString());
    return !again;
  }
  under_way_ = 0;
  if (was_done && report->counts.read > 0)
    sim_.Violate("L", std::to_string(report->counts.read) + " letters are redriven twice");
  if (report->counts.read > 0) sim_.Sometimes("77 letters are redriven");
  if (report->counts.failed > 0) sim_.Violate("L", "a letter fails again");
  if (report->counts.read > 0 && report->recorded.empty())
    sim_.Violate("L", "what was redriven is not recorded in the run");
  is_done_ = true;
  return was_done;
}

}  // namespace muster::sim
