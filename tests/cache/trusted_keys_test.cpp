#include "cache/trusted_keys.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "cache/key_file.hpp"
#include "tests/cache/samples.hpp"
#include "tests/cache/signing.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::cache {
namespace {

using broach::test::TempDir;
using test::bytes_of;
using test::sample_signer;
using test::write_text;

bool has_problem(const TrustedKeys& keys, std::string_view part) {
  for (const std::string& line : keys.problems()) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

void give_to_another_user(const std::filesystem::path& path) {
  REQUIRE(lchown(path.c_str(), 12345, 12345) == 0);
}

}  // namespace

TEST_CASE("key files are read as they were written", "[cache][key_file]") {
  const TempDir dir;
  const SecretKey key = SecretKey::generate("release builds, 2026");
  REQUIRE(write_secret_key(dir.path() / "key", key));
  REQUIRE(write_public_key(dir.path() / "key.pub", key.public_key()));
  const auto secret = read_secret_key(dir.path() / "key");
  REQUIRE(secret);
  CHECK(secret->public_key() == key.public_key());
  const auto open = read_public_key(dir.path() / "key.pub");
  REQUIRE(open);
  CHECK(*open == key.public_key());

  SECTION("a secret key's file is its owner's alone") {
    struct stat status {};
    REQUIRE(stat((dir.path() / "key").c_str(), &status) == 0);
    CHECK((status.st_mode & 07777U) == 0600);
    REQUIRE(chmod((dir.path() / "key").c_str(), 0640) == 0);
    const auto refused = read_secret_key(dir.path() / "key");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kDenied);
    CHECK(refused.error().message.find("chmod 600") != std::string::npos);
  }
  SECTION("a key is never replaced") {
    const auto refused = write_secret_key(dir.path() / "key", SecretKey::generate("other"));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("never replaced") != std::string::npos);
    CHECK(read_secret_key(dir.path() / "key")->public_key() == key.public_key());
  }
  SECTION("another user's secret key is refused") {
    if (geteuid() != 0) BROACH_SKIP("only root can give a file away");
    give_to_another_user(dir.path() / "key");
    CHECK(read_secret_key(dir.path() / "key").error().code == ErrorCode::kDenied);
  }
}

TEST_CASE("what is not a key file is refused by name", "[cache][key_file]") {
  const std::string good = to_text(sample_signer(1).public_key());
  REQUIRE(parse_public_key(good));
  const auto refused = [](std::string_view text, std::string_view why) {
    const auto key = parse_public_key(text);
    INFO(text);
    REQUIRE_FALSE(key);
    CHECK(key.error().code == ErrorCode::kDamaged);
    CHECK(key.error().message.find(why) != std::string::npos);
  };
  refused("", "does not end");
  refused(good.substr(0, good.size() - 1), "does not end");
  refused(good.substr(0, 40) + "\n", "it is no line");
  refused("x" + good, "it is no line");
  refused(to_text(sample_signer(1)), "it is no line");  // A secret key in a public one's place.
  std::string changed = good;
  changed[30] = 'G';
  refused(changed, "hexadecimal digits");
  changed = good;
  changed[changed.size() - 2] = '\x1b';
  refused(changed, "printable");
  refused(good + good, "printable");
  refused("broach-public-key-1 " + std::string(64, '0') + " small order\n", "no Ed25519");
  refused("broach-public-key-1 01" + std::string(62, '0') + " identity\n", "no Ed25519");
}

TEST_CASE("a trusted key's signature is taken, any other's is not", "[cache][trusted_keys]") {
  const TempDir dir;
  const SecretKey signer = sample_signer(1);
  const auto bytes = bytes_of("a bundle's index");
  const Signature signature = signer.sign(Signed::kBundle, bytes);
  REQUIRE(write_public_key(dir.path() / "release.pub", signer.public_key()));
  write_text(dir.path() / "README", "not a key");

  const auto keys = TrustedKeys::load({dir.path(), dir.path() / "absent"});
  CHECK(keys.problems().empty());
  REQUIRE(keys.keys().size() == 1);
  const auto by = keys.verify(Signed::kBundle, bytes, signature);
  REQUIRE(by);
  CHECK(by->name == "sample");

  SECTION("a changed byte is forged") {
    auto changed = bytes;
    changed[3] ^= std::byte{1};
    const auto refused = keys.verify(Signed::kBundle, changed, signature);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().reason == Reason::kForged);
  }
  SECTION("another key is untrusted, and the refusal says where keys are looked for") {
    const auto refused =
        keys.verify(Signed::kBundle, bytes, sample_signer(2).sign(Signed::kBundle, bytes));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kDenied);
    CHECK(refused.error().reason == Reason::kUntrusted);
    CHECK(refused.error().message.find(dir.path().string()) != std::string::npos);
    CHECK(refused.error().message.find("broach key trust") != std::string::npos);
  }
  SECTION("without any key nothing is trusted") {
    CHECK(TrustedKeys().verify(Signed::kBundle, bytes, signature).error().reason ==
          Reason::kUntrusted);
  }
}

TEST_CASE("a key is trusted by being put there, and not after it is taken away",
          "[cache][trusted_keys]") {
  const TempDir dir;
  const auto path = dir.path() / "config" / "trusted_keys";
  const PublicKey& key = sample_signer(1).public_key();
  const auto place = trust_key(path, key);
  REQUIRE(place);
  CHECK(place->filename() == key.id().hex() + ".pub");
  CHECK(trust_key(path, key));  // Again: nothing to do.
  CHECK(TrustedKeys::load({path}).keys() == std::vector<PublicKey>{key});
  CHECK(distrust_key(path, sample_signer(2).public_key().id().hex()).error().code ==
        ErrorCode::kNotFound);
  REQUIRE(distrust_key(path, key.id().hex()));
  CHECK(TrustedKeys::load({path}).keys().empty());
  std::filesystem::permissions(path, std::filesystem::perms(0777));
  CHECK(trust_key(path, key).error().code == ErrorCode::kDenied);
}

TEST_CASE("keys that others could have put there are not trusted", "[cache][trusted_keys]") {
  const TempDir dir;
  const auto path = dir.path() / "trusted_keys";
  std::filesystem::create_directory(path);
  std::filesystem::permissions(path, std::filesystem::perms(0700));
  REQUIRE(write_public_key(path / "a.pub", sample_signer(1).public_key()));
  REQUIRE(TrustedKeys::load({path}).keys().size() == 1);

  SECTION("a directory that others can write to") {
    std::filesystem::permissions(path, std::filesystem::perms(0777));
    const auto keys = TrustedKeys::load({path});
    CHECK(keys.keys().empty());
    CHECK(has_problem(keys, "chmod go-w"));
  }
  SECTION("a file that others can write to") {
    std::filesystem::permissions(path / "a.pub", std::filesystem::perms(0666));
    const auto keys = TrustedKeys::load({path});
    CHECK(keys.keys().empty());
    CHECK(has_problem(keys, "could plant code"));
  }
  SECTION("another user's directory") {
    if (geteuid() != 0) BROACH_SKIP("only root can give a file away");
    give_to_another_user(path);
    const auto keys = TrustedKeys::load({path});
    CHECK(keys.keys().empty());
    CHECK(has_problem(keys, "owned by user 12345"));
  }
  SECTION("another user's file, and a link to it") {
    if (geteuid() != 0) BROACH_SKIP("only root can give a file away");
    give_to_another_user(path / "a.pub");
    std::filesystem::create_symlink(path / "a.pub", path / "b.pub");
    const auto keys = TrustedKeys::load({path});
    CHECK(keys.keys().empty());
    CHECK(keys.problems().size() == 2);
    CHECK(has_problem(keys, "symbolic link"));
  }
  SECTION("a damaged file leaves the others in force") {
    write_text(path / "b.pub", "broach-public-key-1 rubbish\n");
    const auto keys = TrustedKeys::load({path});
    CHECK(keys.keys().size() == 1);
    CHECK(has_problem(keys, "b.pub"));
  }
  SECTION("a pipe in a file's place is not waited for") {
    REQUIRE(mkfifo((path / "b.pub").c_str(), 0600) == 0);
    const auto keys = TrustedKeys::load({path});
    CHECK(keys.keys().size() == 1);
    CHECK(has_problem(keys, "not a regular file"));
  }
}

}  // namespace broach::cache
