// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <mutex>

namespace forge::emulated {

// Objects that exist; handles that are not among them are errors.
template <class T>
class Handles {
 public:
  T* Add(std::unique_ptr<T> object) {
    std::lock_guard lock(mutex_);
    T* const p = object.get();
    all_[p] = std::move(object);
    return p;
  }
  bool Has(const T* p) const {
    std::lock_guard lock(mutex_);
    return all_.contains(const_cast<T*>(p));
  }
  std::unique_ptr<T> Remove(T* p) {
    std::lock_guard lock(mutex_);
    const auto found = all_.find(p);
    if (found == all_.end()) return nullptr;
    std::unique_ptr<T> object = std::move(found->second);
    all_.erase(found);
    return object;
  }

 private:
  mutable std::mutex mutex_;
  std::map<T*, std::unique_ptr<T>> all_;
};

}  // namespace forge::emulated
