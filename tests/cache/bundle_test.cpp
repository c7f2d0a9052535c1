#include "cache/bundle.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "cache/bundle_writer.hpp"
#include "tests/cache/made_bundle.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {
namespace {

using broach::test::TempDir;
using test::MadeBundle;
using test::read_text;
using test::sample_object;
using test::sample_signer;
using test::write_text;

const SecretKey& signer() {
  static const SecretKey key = sample_signer(1);
  return key;
}

TrustedKeys trusting(const PublicKey& key) {
  TrustedKeys keys;
  keys.add(key);
  return keys;
}

/// Writes the samples of these names as `broach export` would.
Result<WrittenBundle> write(const std::filesystem::path& path, std::vector<std::string> names,
                            const SecretKey* key = &signer()) {
  std::map<Key, Object> objects;
  std::vector<Key> keys;
  for (const std::string& name : names) {
    Object object = sample_object(name);
    keys.push_back(object.key.key);
    objects.emplace(object.key.key, std::move(object));
  }
  return write_bundle(
      path, keys, [&](const Key& wanted) -> Result<Object> { return objects.at(wanted); }, key);
}

/// Opens bytes as a bundle that was signed by a key that is trusted.
Error refusal(const TempDir& dir, std::string_view bytes) {
  const auto path = dir.path() / "refused.broach";
  write_text(path, bytes);
  const auto bundle = Bundle::open(path, trusting(signer().public_key()), BundleTrust::kSignature);
  REQUIRE_FALSE(bundle);
  CHECK(bundle.error().message.find(path.string()) != std::string::npos);
  return bundle.error();
}

bool says(const Error& error, std::string_view part) {
  UNSCOPED_INFO(error.message);
  return error.message.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a bundle gives back each object, alone and in any order", "[cache][bundle]") {
  const TempDir dir;
  const auto path = dir.path() / "kernels.broach";
  const auto written = write(path, {"a", "b", "c"});
  REQUIRE(written);
  CHECK(written->objects == 3);
  CHECK(written->file_bytes == std::filesystem::file_size(path));
  const auto bundle = Bundle::open(path, trusting(signer().public_key()), BundleTrust::kSignature);
  REQUIRE(bundle);
  REQUIRE((*bundle)->entries().size() == 3);
  CHECK((*bundle)->signed_by()->id() == signer().public_key().id());
  for (const char* name : {"c", "a", "b"}) {
    const BundleEntry* entry = (*bundle)->entry(test::sample_key(name).key);
    REQUIRE(entry != nullptr);
    const auto object = (*bundle)->object(*entry);
    REQUIRE(object);
    CHECK(*object == without_circumstances(sample_object(name)));
    const auto head = (*bundle)->object_head(*entry);
    REQUIRE(head);
    CHECK(head->object.description == object->description);
    CHECK(head->object.payload.empty());
  }
  CHECK((*bundle)->entry(test::sample_key("d").key) == nullptr);
}

TEST_CASE("the same objects give the same bytes, whenever and in whatever order they were made",
          "[cache][bundle]") {
  const TempDir dir;
  REQUIRE(write(dir.path() / "one", {"a", "b", "c"}));
  REQUIRE(write(dir.path() / "two", {"c", "a", "b", "a"}));
  const std::string one = read_text(dir.path() / "one");
  CHECK(one == read_text(dir.path() / "two"));

  Object later = sample_object("a");
  later.provenance.created_unix_ms += 86'400'000;
  later.provenance.compile_ms = 7;
  later.provenance.log = "another machine's log";
  const auto read = [&](const Key&) -> Result<Object> { return later; };
  REQUIRE(write_bundle(dir.path() / "three", {later.key.key}, read, &signer()));
  REQUIRE(write(dir.path() / "four", {"a"}));
  CHECK(read_text(dir.path() / "three") == read_text(dir.path() / "four"));

  // The comparison can fail.
  later.payload[0] ^= std::byte{1};
  REQUIRE(write_bundle(dir.path() / "three", {later.key.key}, read, &signer()));
  CHECK(read_text(dir.path() / "three") != read_text(dir.path() / "four"));
}

TEST_CASE("the library writes what the documented grammar says", "[cache][bundle]") {
  const TempDir dir;
  REQUIRE(write(dir.path() / "written", {"a", "b"}));
  MadeBundle made;
  for (const Object& object : test::sorted_samples({"a", "b"})) {
    made.add(without_circumstances(object));
  }
  CHECK(read_text(dir.path() / "written") == made.bytes(&signer()));
}

TEST_CASE("a changed byte anywhere in a bundle is refused when it is opened or read",
          "[cache][bundle]") {
  const TempDir dir;
  const auto path = dir.path() / "kernels.broach";
  REQUIRE(write(path, {"a", "b"}));
  const std::string whole = read_text(path);
  const auto keys = trusting(signer().public_key());
  const auto usable = [&] {
    const auto bundle = Bundle::open(path, keys, BundleTrust::kSignature);
    if (!bundle) return false;
    return std::all_of((*bundle)->entries().begin(), (*bundle)->entries().end(),
                       [&](const BundleEntry& entry) { return (*bundle)->object(entry).ok(); });
  };
  REQUIRE(usable());
  std::size_t used = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    write_text(path, changed);
    used += usable() ? 1U : 0U;
  }
  CHECK(used == 0);
}

TEST_CASE("a truncated bundle is refused at every length", "[cache][bundle]") {
  const TempDir dir;
  const auto path = dir.path() / "kernels.broach";
  REQUIRE(write(path, {"a", "b"}));
  const std::string whole = read_text(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Error error = refusal(dir, std::string_view(whole).substr(0, size));
    CHECK(error.code == ErrorCode::kDamaged);
  }
  CHECK(says(refusal(dir, whole.substr(0, whole.size() - 1)), "truncated"));
  CHECK(says(refusal(dir, whole + "x"), "longer than it was made"));
  CHECK(says(refusal(dir, ""), "at least 96 bytes"));
  CHECK(says(refusal(dir, std::string(200, 'x')), "not a bundle's"));
}

TEST_CASE("only a trusted key's signature makes a bundle usable", "[cache][bundle]") {
  const TempDir dir;
  const auto path = dir.path() / "kernels.broach";
  const auto keys = trusting(signer().public_key());
  const auto open = [&](BundleTrust trust) { return Bundle::open(path, keys, trust); };

  SECTION("another key's is not") {
    const SecretKey stranger = sample_signer(2);
    REQUIRE(write(path, {"a"}, &stranger));
    const auto refused = open(BundleTrust::kSignature);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kDenied);
    CHECK(refused.error().reason == Reason::kUntrusted);
    CHECK(says(refused.error(), stranger.public_key().id().hex()));
    CHECK(open(BundleTrust::kOwner));
  }
  SECTION("none at all is not, unless the owner vouches for it") {
    REQUIRE(write(path, {"a"}, nullptr));
    const auto refused = open(BundleTrust::kSignature);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().reason == Reason::kUnsigned);
    const auto vouched = open(BundleTrust::kOwner);
    REQUIRE(vouched);
    CHECK_FALSE((*vouched)->signed_by());
  }
  SECTION("a forged one is not, whoever vouches") {
    REQUIRE(write(path, {"a"}));
    std::string bytes = read_text(path);
    bytes[96 + 95 + 40] = static_cast<char>(bytes[96 + 95 + 40] ^ 1);  // In the Ed25519 signature.
    write_text(path, bytes);
    CHECK(open(BundleTrust::kSignature).error().reason == Reason::kForged);
    CHECK(open(BundleTrust::kOwner).error().reason == Reason::kForged);
  }
  SECTION("a file that others can write is not vouched for") {
    REQUIRE(write(path, {"a"}, nullptr));
    REQUIRE(chmod(path.c_str(), 0666) == 0);
    const auto refused = open(BundleTrust::kOwner);
    REQUIRE_FALSE(refused);
    CHECK(says(refused.error(), "could plant code"));
  }
  SECTION("a signed one may be another's, in a place that anybody can write") {
    REQUIRE(write(path, {"a"}));
    REQUIRE(chmod(path.c_str(), 0666) == 0);
    if (geteuid() == 0) REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
    CHECK(open(BundleTrust::kSignature));
  }
}

TEST_CASE("what changes in a bundle after it was opened is not believed", "[cache][bundle]") {
  const TempDir dir;
  const auto path = dir.path() / "kernels.broach";
  REQUIRE(write(path, {"a"}));
  const auto bundle = Bundle::open(path, trusting(signer().public_key()), BundleTrust::kSignature);
  REQUIRE(bundle);
  const BundleEntry& entry = (*bundle)->entries()[0];
  REQUIRE((*bundle)->object(entry));
  std::string bytes = read_text(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_text(path, bytes);  // In place: the same inode.
  const auto refused = (*bundle)->object(entry);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kDamaged);
  CHECK(says(refused.error(), object_name(entry.key)));
}

TEST_CASE("a trusted signer's bundle is still held to the format", "[cache][bundle]") {
  const TempDir dir;
  MadeBundle made;
  for (const Object& object : test::sorted_samples({"a", "b"})) made.add(object);
  {
    const auto path = dir.path() / "fine.broach";
    write_text(path, made.bytes(&signer()));
    REQUIRE(Bundle::open(path, trusting(signer().public_key()), BundleTrust::kSignature));
  }
  SECTION("an entry that climbs out of the cache") {
    for (const char* name : {"../../../etc/cron.d/x", "objects/../../x", "/etc/passwd",
                             "objects/ab/../../../../home/user/.bashrc"}) {
      made.entries[0].name = name;
      const Error error = refusal(dir, made.bytes(&signer()));
      CHECK(error.code == ErrorCode::kDenied);
      CHECK(says(error, "climbs out of the cache"));
      CHECK(says(error, name));
    }
  }
  SECTION("an entry with another object's place, or none") {
    const std::string good = made.entries[0].name;
    for (const std::string& name :
         {std::string(), std::string("objects"), good.substr(11), "objects/zz" + good.substr(10),
          good + "/", std::string("index.sqlite3"), "objects/" + good, std::string("\x1b[2J"),
          std::string("a\0b", 3), std::string(100'000, 'x')}) {
      made.entries[0].name = name;
      const Error error = refusal(dir, made.bytes(&signer()));
      CHECK(error.code == ErrorCode::kDenied);
      CHECK(says(error, "is no object's"));
      CHECK(error.message.find('\x1b') == std::string::npos);
      CHECK(error.message.size() < 1000);
    }
  }
  SECTION("an entry that occurs twice") {
    made.entries[1] = made.entries[0];
    CHECK(says(refusal(dir, made.bytes(&signer())), "occurs twice"));
  }
  SECTION("entries out of order") {
    std::swap(made.entries[0], made.entries[1]);
    CHECK(says(refusal(dir, made.bytes(&signer())), "out of order"));
  }
  SECTION("more entries than there are, and more than a bundle has") {
    made.claimed_entries = 3;
    CHECK(says(refusal(dir, made.bytes(&signer())), "cut short"));
    made.claimed_entries = 4;
    CHECK(says(refusal(dir, made.bytes(&signer())), "do not fit"));
    made.claimed_entries = 1;
    CHECK(says(refusal(dir, made.bytes(&signer())), "longer than its entries"));
    made.claimed_entries = kMaxBundleEntries + 1;
    const Error error = refusal(dir, made.bytes(&signer()));
    CHECK(error.code == ErrorCode::kLimitExceeded);
    CHECK(says(error, "1000001 entries"));
    made.claimed_entries = ~std::uint64_t{0};
    CHECK(refusal(dir, made.bytes(&signer())).code == ErrorCode::kLimitExceeded);
  }
  SECTION("an index longer than a bundle's may be") {
    made.claimed_index_bytes = kMaxBundleIndexBytes + 1;
    CHECK(refusal(dir, made.bytes(&signer())).code == ErrorCode::kLimitExceeded);
    made.claimed_index_bytes = ~std::uint64_t{0} - 95;  // The front's length would wrap around.
    CHECK(refusal(dir, made.bytes(&signer())).code == ErrorCode::kLimitExceeded);
  }
  SECTION("a frame that reaches beyond the file") {
    made.entries[1].frame_bytes = made.entries[1].frame.size() + 1;
    CHECK(says(refusal(dir, made.bytes(&signer())), "do not add up"));
    made.entries[1].frame_bytes = ~std::uint64_t{0};
    CHECK(refusal(dir, made.bytes(&signer())).code == ErrorCode::kLimitExceeded);
  }
  SECTION("another format") {
    made.version = 2;
    CHECK(refusal(dir, made.bytes(&signer())).code == ErrorCode::kUnsupported);
  }
}

TEST_CASE("a decompression bomb is refused before it is unpacked", "[cache][bundle]") {
  const TempDir dir;
  MadeBundle made;
  made.add(sample_object("a"));
  SECTION("by the ratio that it claims") {
    // A frame of zeros that does come to what is claimed.
    const std::vector<std::byte> zeros(std::size_t{64} << 20);
    const auto frame = FrameCompressor().compress(zeros);
    REQUIRE(frame);
    REQUIRE(zeros.size() / frame->size() > kMaxBundleRatio);
    made.entries[0].frame.assign(reinterpret_cast<const char*>(frame->data()), frame->size());
    made.entries[0].object_bytes = zeros.size();
    const Error error = refusal(dir, made.bytes(&signer()));
    CHECK(error.code == ErrorCode::kLimitExceeded);
    CHECK(says(error, "decompression bomb"));
    CHECK(says(error, made.entries[0].name));
  }
  SECTION("by an object of more than an object's size") {
    made.entries[0].object_bytes = kMaxObjectBytes + 1;
    CHECK(says(refusal(dir, made.bytes(&signer())), "no object has more"));
  }
  SECTION("by the sum") {
    made.claimed_object_bytes = kMaxBundleObjectBytes + 1;
    CHECK(refusal(dir, made.bytes(&signer())).code == ErrorCode::kLimitExceeded);
  }
  SECTION("a frame that comes to more, or less, than the index claims") {
    for (const int off : {-1, 1}) {
      MadeBundle lying = made;
      lying.entries[0].object_bytes += static_cast<std::uint64_t>(off);
      const auto path = dir.path() / "lying.broach";
      write_text(path, lying.bytes(&signer()));
      const auto bundle =
          Bundle::open(path, trusting(signer().public_key()), BundleTrust::kSignature);
      REQUIRE(bundle);
      const auto object = (*bundle)->object((*bundle)->entries()[0]);
      REQUIRE_FALSE(object);
      CHECK(says(object.error(), "that the index claims"));
      CHECK_FALSE((*bundle)->object_head((*bundle)->entries()[0]));
    }
  }
}

TEST_CASE("an object under another's name is refused", "[cache][bundle]") {
  const TempDir dir;
  MadeBundle made;
  made.add(sample_object("a"));
  made.entries[0].name = object_name(test::sample_key("b").key);
  const auto path = dir.path() / "renamed.broach";
  write_text(path, made.bytes(&signer()));
  const auto bundle = Bundle::open(path, trusting(signer().public_key()), BundleTrust::kSignature);
  REQUIRE(bundle);
  const BundleEntry& entry = (*bundle)->entries()[0];
  CHECK(says((*bundle)->object(entry).error(), "the object is named"));
  CHECK_FALSE((*bundle)->object_head(entry));
}

TEST_CASE("a bundle that cannot be written leaves nothing behind", "[cache][bundle]") {
  const TempDir dir;
  const auto path = dir.path() / "kernels.broach";
  SECTION("because an object cannot be read") {
    const auto refused = write_bundle(
        path, {test::sample_key("a").key},
        [](const Key&) -> Result<Object> {
          return Error{ErrorCode::kIo, "no", ""};
        },
        nullptr);
    CHECK(refused.error().code == ErrorCode::kIo);
  }
  SECTION("because there is nothing to write") {
    CHECK(write(path, {}).error().code == ErrorCode::kInvalidArgument);
  }
  SECTION("because the folder is not there") {
    CHECK(write(dir.path() / "absent" / "x", {"a"}).error().code == ErrorCode::kNotFound);
  }
  CHECK(test::files_in(dir.path()) == 0);
}

}  // namespace broach::cache
