#pragma once

#include <mutex>

// Mutexes whose use clang checks at compile time (-Wthread-safety, on in the `asan` and `tsan`
// builds): a member that is GUARDED_BY a mutex is touched only by code that holds it.
//
//   Mutex mutex_;
//   std::vector<Waiter> waiters_ GUARDED_BY(mutex_);
//   void WakeAll() REQUIRES(mutex_);   // the caller holds it
//   void Close() EXCLUDES(mutex_);     // the caller must not
//
// std::condition_variable_any waits with a MutexLock. Wait in a `while` loop, or declare the
// predicate REQUIRES(mutex_): clang cannot see that it runs under the lock.

#if defined(__clang__)
#define MUSTER_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define MUSTER_THREAD_SAFETY(attribute)
#endif

#define CAPABILITY(name) MUSTER_THREAD_SAFETY(capability(name))
#define SCOPED_CAPABILITY MUSTER_THREAD_SAFETY(scoped_lockable)
#define GUARDED_BY(mutex) MUSTER_THREAD_SAFETY(guarded_by(mutex))
#define PT_GUARDED_BY(mutex) MUSTER_THREAD_SAFETY(pt_guarded_by(mutex))
#define REQUIRES(...) MUSTER_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) MUSTER_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) MUSTER_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define RELEASE(...) MUSTER_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) MUSTER_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
// Only with a comment that explains why the code is right and clang cannot see it.
#define NO_THREAD_SAFETY_ANALYSIS MUSTER_THREAD_SAFETY(no_thread_safety_analysis)

namespace muster {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Holds a mutex until the end of its scope, except between unlock() and lock().
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex) {}
  ~MutexLock() RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ACQUIRE() { lock_.lock(); }
  void unlock() RELEASE() { lock_.unlock(); }

 private:
  std::unique_lock<Mutex> lock_;
};

}  // namespace muster
