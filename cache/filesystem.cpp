#include "cache/filesystem.hpp"

#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <array>
#include <string_view>

namespace broach::cache {
namespace {

struct Known {
  std::uint64_t magic;
  std::string_view name;
  Reach reach;
};

// Magic numbers of statfs(2). FUSE counts as a network, and so does what is not here: what is
// behind them cannot be told.
constexpr std::array kKnown{
    Known{0xEF53, "ext4", Reach::kLocal},          Known{0x58465342, "xfs", Reach::kLocal},
    Known{0x9123683E, "btrfs", Reach::kLocal},     Known{0x2FC12FC1, "zfs", Reach::kLocal},
    Known{0xF2F52010, "f2fs", Reach::kLocal},      Known{0xCA451A4E, "bcachefs", Reach::kLocal},
    Known{0x01021994, "tmpfs", Reach::kLocal},     Known{0x858458F6, "ramfs", Reach::kLocal},
    Known{0x794C7630, "overlayfs", Reach::kLocal}, Known{0x73717368, "squashfs", Reach::kLocal},
    Known{0xE0F5E1E2, "erofs", Reach::kLocal},     Known{0x6969, "nfs", Reach::kNetwork},
    Known{0x517B, "smb", Reach::kNetwork},         Known{0xFF534D42, "cifs", Reach::kNetwork},
    Known{0xFE534D42, "smb2", Reach::kNetwork},    Known{0x5346414F, "afs", Reach::kNetwork},
    Known{0x0BD00BD0, "lustre", Reach::kNetwork},  Known{0x47504653, "gpfs", Reach::kNetwork},
    Known{0x00C36400, "ceph", Reach::kNetwork},    Known{0x65735546, "fuse", Reach::kNetwork},
    Known{0x01021997, "9p", Reach::kNetwork},      Known{0x7461636F, "ocfs2", Reach::kNetwork},
    Known{0x01161970, "gfs2", Reach::kNetwork},    Known{0x19830326, "beegfs", Reach::kNetwork},
    Known{0xAAD7AAEA, "panfs", Reach::kNetwork},   Known{0x3153464A, "jfs", Reach::kLocal},
    Known{0x52654973, "reiserfs", Reach::kLocal},  Known{0x3434, "nilfs2", Reach::kLocal},
    Known{0xF15F, "ecryptfs", Reach::kLocal},      Known{0x61756673, "aufs", Reach::kLocal},
};

}  // namespace

Filesystem filesystem_named(std::uint64_t magic) {
  for (const Known& known : kKnown) {
    if (known.magic == magic) return {std::string(known.name), known.reach};
  }
  return {};
}

FreeSpace free_space_of(int fd) {
  struct statvfs status {};
  if (fstatvfs(fd, &status) != 0) return {};
  return {std::uint64_t{status.f_bavail} * status.f_frsize,
          std::uint64_t{status.f_blocks} * status.f_frsize, status.f_favail, status.f_files};
}

Filesystem filesystem_of(int fd) {
  struct statfs status {};
  if (fstatfs(fd, &status) != 0) return {};
  // The field is signed on some machines: only its low 32 bits are the number.
  return filesystem_named(static_cast<std::uint64_t>(status.f_type) & 0xFFFFFFFFU);
}

}  // namespace broach::cache
