#include "tests/cache/fault_trial.hpp"

#include <chrono>
#include <iostream>
#include <set>

#include "cache/bundle.hpp"
#include "cache/bundle_writer.hpp"
#include "cache/key_file.hpp"
#include "cache/os_error.hpp"
#include "tests/cache/signing.hpp"

namespace broach::cache::test {
namespace {

namespace fs = std::filesystem;

Object sample(const Key& key) {
  for (const char* name : {"stored", "made", "layered", "shared", "bundled"}) {
    if (sample_key(name).key == key) return sample_object(name);
  }
  return {};
}

Result<Object> read_sample(const Key& key) { return sample(key); }

void open_to_all(const fs::path& dir) {
  fs::permissions(dir, fs::perms::all);
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    fs::permissions(entry, entry.is_directory() ? fs::perms::all : fs::perms(0666));
  }
}

// The binary of this name, as it was made or as a bundle has it.
bool right(const Hit& hit, const char* name) {
  const Object object = sample_object(name);
  return *hit.object == object || *hit.object == without_circumstances(object);
}

// What a look-up got, from wherever: the right binary, or none.
void check_found(Trial& trial, const std::optional<Hit>& found, const char* name) {
  trial.check(!found || right(*found, name), std::string("a look-up served wrong bytes: ") + name);
}

void make(Trial& trial, Opened& cache, const char* name) {
  const Object object = sample_object(name);
  const auto hit =
      cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; });
  trial.check(hit && right(*hit, name), std::string("a request for a binary failed: ") + name);
}

void check_notices(Trial& trial, const Opened& cache) {
  const std::set<std::string> distinct(cache.notices->begin(), cache.notices->end());
  trial.check(distinct.size() == cache.notices->size(), "a notice was given twice");
}

// A fault that stays is told of once: the third round of requests has nothing new to say.
void check_that_it_falls_silent(Trial& trial, Opened& cache) {
  std::size_t told = 0;
  for (const char* name : {"second round", "third round"}) {
    told = cache.notices->size();
    (void)cache->find(sample_key("stored"));
    make(trial, cache, name);
    (void)cache->entries();
  }
  trial.check(cache.notices->size() == told, "a fault that was told of was told of again");
}

// The export of one object: the whole bundle, or none.
void check_export(Trial& trial) {
  const fs::path file = trial.dir / "out.broach";
  const SecretKey signer = sample_signer(1);
  const auto written = write_bundle(file, {sample_key("bundled").key}, read_sample, &signer);
  test::disarm();
  const std::size_t expected = fs::exists(file) ? 1 : 0;
  trial.check(!written || expected == 1, "an export that succeeded left no file");
  // A file may be there although the sync of its folder failed; then it is whole.
  trial.check(expected == 0 || read_text(file) == read_text(trial.around.bundle),
              "an export left half a bundle");
  std::size_t drafts = 0;
  for (const auto& entry : fs::directory_iterator(trial.dir)) {
    if (entry.path().filename().string().starts_with("out.broach.")) ++drafts;
  }
  trial.check(drafts == 0 || trial.fault.call == "unlink", "an export left its draft");
}

}  // namespace

Surroundings::Surroundings(const fs::path& below)
    : image(below / "image"),
      shared(below / "shared"),
      bundle(below / "kernels.broach"),
      keys(below / "keys"),
      planted(below / "planted") {
  const SecretKey signer = sample_signer(1);
  Opened({image})->publish(sample_object("layered"));
  {
    Opened cache({shared});
    cache->publish(sample_object("shared"));
    (void)cache->sign(signer);
  }
  open_to_all(shared);
  (void)write_bundle(bundle, {sample_key("bundled").key}, read_sample, &signer);
  fs::create_directory(keys);
  fs::permissions(keys, fs::perms::owner_all);
  (void)write_public_key(keys / "sample.pub", signer.public_key());
  Opened enemy({planted});
  for (const char* name : {"stored", "made"}) {
    Object object = sample_object(name);
    object.payload[0] ^= std::byte{1};
    enemy->publish(object);
  }
}

void Trial::check(bool held, std::string_view what) {
  if (held) return;
  ++failures;
  std::cerr << fault.call << " #" << fault.nth << " " << errno_symbol(fault.error)
            << (fault.span == Fault::Span::kOnce ? " once" : " from then on") << ": " << what
            << '\n';
}

int requests_under_fault(Trial& trial) {
  const Object stored = sample_object("stored");
  test::arm(trial.fault);
  {
    Opened cache({trial.cache()});
    const auto found = cache->find(stored.key);
    check_found(trial, found, "stored");
    make(trial, cache, "made");
    cache->remember_memo("name", "value");
    trial.check(cache->memo("name") == "value", "a memo was lost in the process that made it");
    cache->record_miss({"family", "{}", "target", 1, 1});
    (void)cache->entries();
    (void)cache->verify();
    // Once a call and error: the trials are many.
    if (trial.fault.span == Fault::Span::kFromThenOn && trial.fault.nth == 1) {
      check_that_it_falls_silent(trial, cache);
    }
    check_notices(trial, cache);
  }
  return test::disarm();
}

int layers_under_fault(Trial& trial) {
  const Surroundings& around = trial.around;
  test::arm(trial.fault);
  int faults = 0;
  {
    Opened cache({trial.cache()}, {around.image, around.shared, around.bundle}, {around.keys});
    for (const char* name : {"layered", "shared", "bundled", "stored"}) {
      check_found(trial, cache->find(sample_key(name)), name);
    }
    make(trial, cache, "bundled");
    const auto refused = cache->find_or_make(sample_key("bad"), [](const Stage&) -> Result<Object> {
      return Error{ErrorCode::kCompileFailed, "does not compile", "log"};
    });
    trial.check(!refused && refused.error().code == ErrorCode::kCompileFailed,
                "a compile that failed looked like something else");
    for (const char* layer : {"user", "read_only"}) (void)cache->entries_of(layer);
    check_notices(trial, cache);
  }  // What the layers served is promoted here.
  faults = test::disarm();
  if (faults > 0) return faults;
  test::arm(trial.fault);
  check_export(trial);
  return test::disarm();
}

int remote_under_fault(Trial& trial, const std::string& url) {
  RemoteOptions remote;
  remote.url = url;
  remote.use = RemoteUse::kReadOnly;  // An upload's thread would make calls beside this one's.
  remote.first_byte = std::chrono::milliseconds(500);
  CacheOptions options;
  options.directories = {trial.cache()};
  options.trusted_keys = {trial.around.keys};
  options.remotes = {remote};
  std::set<std::string> told;
  bool twice = false;
  options.notice = [&](std::string_view line) { twice |= !told.emplace(line).second; };
  test::arm(trial.fault);
  {
    const auto cache = Cache::open(std::move(options));
    for (const char* name : {"made", "nowhere"}) {
      const Object object = sample_object(name);
      const auto hit =
          cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; });
      trial.check(hit && *hit->object == object, std::string("a request failed: ") + name);
    }
  }
  const int faults = test::disarm();
  trial.check(!twice, "a notice was given twice");
  return faults;
}

void afterwards(Trial& trial) {
  Opened cache({trial.cache()});
  const auto report = cache->verify();
  trial.check(report && report->damaged == 0, "a damaged object was left");
  for (const char* name : {"stored", "made"}) make(trial, cache, name);
  GcRequest sweep;
  sweep.mode = GcRequest::Mode::kRemove;
  trial.check(cache->gc(sweep).ok(), "a sweep failed after the fault was gone");
  const auto entries = cache->entries();
  trial.check(entries && entries->size() >= 2 && entries->size() == cache->verify()->objects,
              "the listing is not what is there");
  trial.check(files_in(trial.cache() / "tmp") == 0, "a temporary file was left");
  trial.check(files_in(trial.cache() / "locks") == 0, "a lock was left");
}

}  // namespace broach::cache::test
